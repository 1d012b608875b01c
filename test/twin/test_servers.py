# SPDX-License-Identifier: GPL-2.0-only
"""Servers with processes of their own, under another user too: each serves far as on the host."""

from __future__ import annotations

import contextlib
import http.client
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from topology import nginx, sshd
from topology.content import blob, digest
from topology.namespace import Namespace, Word
from topology.process import DEADLINE, Process, eventually, run
from topology.side import BUILD, PYTHON, GuiseSide, HostSide, Side
from topology.unpacked import UNPACKED, libraries, server

BLOB = blob(300_000)


def get(side: Side, port: int) -> bytes:
    """One request of far's, on a connection of its own; an error of any kind is raised."""
    with side.far.entered():
        connection = http.client.HTTPConnection(side.address, port, timeout=DEADLINE)
        with contextlib.closing(connection):
            connection.request("GET", "/blob")
            answer = connection.getresponse()
            assert answer.status == 200
            return answer.read()


class Load:
    """Threads that request one thing after the other, until they are told to end."""

    def __init__(self, side: Side, port: int) -> None:
        self.wrong: list[str] = []
        self.done = 0
        self._ended = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(side, port), daemon=True) for _ in range(3)
        ]

    def _run(self, side: Side, port: int) -> None:
        while not self._ended.is_set():
            try:
                if get(side, port) != BLOB:
                    self.wrong.append("another content")
            except Exception as error:
                self.wrong.append(repr(error))
            self.done += 1

    def more(self) -> None:
        """Waits until some requests have been made from beginning to end."""
        enough = self.done + 10
        eventually(lambda: self.done >= enough, "requests are answered")

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()


def later_than(before: int, now: Callable[[], int], what: str) -> None:
    eventually(lambda: now() > before, what)


def listens(side: Side, port: int) -> None:
    eventually(lambda: side.far.reaches(side.address, port), f"port {port} is served")


@pytest.fixture
def open_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder that workers under another user can read: tmp_path is in one that they cannot."""
    folder = Path("/tmp") / f"guise-servers-{tmp_path.parent.name}-{tmp_path.name}"
    folder.mkdir(mode=0o755)
    (folder / "www").mkdir(mode=0o755)
    (folder / "www/blob").write_bytes(BLOB)
    try:
        yield folder
    finally:
        run(["rm", "-r", folder]).expect()


@pytest.mark.also_served
def test_nginx_reloads_and_ends_with_no_request_failed(
    host: HostSide, guise: GuiseSide, open_folder: Path
) -> None:
    words = nginx.prepare(open_folder, f"/ {{ root {open_folder}/www; }}")

    def ended(master: Process) -> int:
        return master.said().errors.count("exited with code 0")

    def serve(side: Side) -> tuple[int, int]:
        with side.start(*words, env=libraries()) as master:
            listens(side, 8080)
            with Load(side, 8080) as load:
                load.more()
                for reloads in (1, 2):
                    master.signal(signal.SIGHUP)
                    later_than(2 * reloads - 1, lambda: ended(master), "old workers end")
                    load.more()
            assert not load.wrong, load.wrong[:3]
            assert load.done >= 30
            # One request is under way when it is told to end, and is answered to its end.
            with side.far.socket() as slow:
                slow.connect((side.address, 8080))
                slow.sendall(b"GET /blob HTTP/1.0\r\n\r\n")
                received = slow.recv(1)
                master.signal(signal.SIGQUIT)
                while piece := slow.recv(65536):
                    received += piece
            assert received.endswith(BLOB)
            done = master.finish()
            return done.status, ended(master)

    on_host = serve(host)
    assert on_host == (0, 6)
    assert serve(guise) == on_host


APPLICATION = """
import os
def application(environ, start_response):
    start_response("200 OK", [("X-Worker", str(os.getpid()))])
    return [open("{}", "rb").read()]
"""


def test_gunicorn_serves_with_two_workers(
    host: HostSide, guise: GuiseSide, open_folder: Path
) -> None:
    (open_folder / "served.py").write_text(
        APPLICATION.format(open_folder / "www/blob"), encoding="ascii"
    )
    packages = UNPACKED / "usr/lib/python3/dist-packages"
    if not (packages / "gunicorn").is_dir():
        pytest.skip(f"{packages}/gunicorn is not there: make/unpack fetches it with apt-get")
    words = [PYTHON, "-m", "gunicorn", "-w", "2", "-b", "0.0.0.0:8000", "-u", "nobody"]
    words += ["--worker-tmp-dir", "/dev/shm", "served:application"]

    def serve(side: Side) -> int:
        env = {"PYTHONPATH": f"{packages}:{open_folder}"}
        with side.start(*words, env=env, cwd="/") as gunicorn:
            listens(side, 8000)
            with Load(side, 8000) as load:
                load.more()
                booted = gunicorn.said().errors.count("Booting worker")
                gunicorn.signal(signal.SIGHUP)
                eventually(
                    lambda: gunicorn.said().errors.count("Booting worker") >= booted + 2,
                    "new workers have started",
                )
                load.more()
            assert not load.wrong, load.wrong[:3]
            gunicorn.signal(signal.SIGTERM)
            return gunicorn.finish().status

    on_host = serve(host)
    assert on_host == 0
    assert serve(guise) == on_host


@pytest.mark.also_served
def test_sshd_takes_a_file_and_runs_a_command(
    host: HostSide, guise: GuiseSide, far: Namespace, tmp_path: Path
) -> None:
    """sshd executes itself for each connection, and a part of it is another user in a chroot."""
    words = sshd.prepare(tmp_path)
    options = sshd.options(tmp_path)
    (tmp_path / "source").write_bytes(BLOB)

    def serve(side: Side) -> tuple[str, str, int]:
        with side.serve(*words, says="Server listening on 0.0.0.0 port 2222", env=libraries()):
            there = tmp_path / side.name
            to = f"root@{side.address}"
            far.run(
                "scp", "-q", "-P", "2222", *options, tmp_path / "source", f"{to}:{there}"
            ).expect()
            ssh = ["ssh", "-p", "2222", *options, to]
            sums = far.run(*ssh, f"sha256sum <{there}; exec cat {there}").expect()
            head = sums.stdout.index(b"\n")
            return (
                digest(there.read_bytes()),
                digest(sums.stdout[head + 1 :]),
                far.run(*ssh, "exit 3").status,
            )

    on_host = serve(host)
    assert on_host == (digest(BLOB), digest(BLOB), 3)
    assert serve(guise) == on_host


def test_redis_saves_in_a_child_while_it_serves(
    host: HostSide, guise: GuiseSide, far: Namespace, tmp_path: Path
) -> None:
    def save(side: Side) -> tuple[list[str], int]:
        folder = tmp_path / side.name
        folder.mkdir()
        words: list[Word] = [BUILD / "test/redis-server", "--port", "6379", "--bind", "0.0.0.0"]
        words += ["--protected-mode", "no", "--save", "", "--dir", folder]
        with side.serve(*words, says="Ready to accept connections"):

            def cli(*words: str) -> str:
                return far.run("redis-cli", "-h", side.address, *words).expect().text.strip()

            answers = [cli("debug", "populate", "20000", "key", "1000")]
            load = ["redis-benchmark", "-h", side.address, "-c", "20", "-n", "20000"]
            with far.start(*load, "-t", "set", "-r", "20000", "--csv") as benchmark:
                for _ in range(3):
                    before = int(cli("lastsave"))
                    later_than(before, lambda: int(time.time()), "a second, in which it counts")
                    answers.append(cli("bgsave"))
                    later_than(before, lambda: int(cli("lastsave")), "it has saved")
                rate = benchmark.finish().expect().text
            answers.append(str("SET" in rate))
            return answers, (folder / "dump.rdb").stat().st_size > 1000

    on_host = save(host)
    assert on_host[0][1] == "Background saving started"
    assert save(guise) == on_host


HAPROXY = """
global
    nbthread 2
    user nobody
defaults
    mode http
    timeout connect 20s
    timeout client 20s
    timeout server 20s
listen front
    bind 0.0.0.0:8001
    server back 127.0.0.1:8002
"""


def test_haproxy_under_its_master(host: HostSide, guise: GuiseSide, open_folder: Path) -> None:
    """Its master executes itself anew when it is told to reload, and keeps the listener."""
    (open_folder / "haproxy.cfg").write_text(HAPROXY, encoding="ascii")
    script = f"""
        {PYTHON} -m http.server -d {open_folder}/www --bind 127.0.0.1 8002 >/dev/null 2>&1 &
        exec "$1" -W -db -f {open_folder}/haproxy.cfg
    """
    words: list[Word] = ["sh", "-c", script, "sh", server("usr/sbin/haproxy")]

    def serve(side: Side) -> int:
        with side.start(*words, env=libraries(), cwd="/") as haproxy:
            eventually(lambda: answers(side), "the server behind it answers")
            with Load(side, 8001) as load:
                load.more()
                loaded = haproxy.said().errors.count("New worker")
                haproxy.signal(signal.SIGUSR2)
                eventually(
                    lambda: haproxy.said().errors.count("New worker") > loaded,
                    "a new worker has started",
                )
                load.more()
            assert not load.wrong, load.wrong[:3]
            return len(load.wrong)

    def answers(side: Side) -> bool:
        try:
            return get(side, 8001) == BLOB
        except (OSError, AssertionError, http.client.HTTPException):
            return False

    host.near.ip("link", "set", "lo", "up")
    on_host = serve(host)
    assert serve(guise) == on_host
