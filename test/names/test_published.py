# SPDX-License-Identifier: GPL-2.0-only
"""Ports of a stack that are published on the host, the namespace far."""

from __future__ import annotations

import hashlib
import re
import socket
from pathlib import Path

import pytest
from topology.exhausted import descriptors, no_descriptor_left, sleeps_for_long
from topology.holders import carrier_of, wardens
from topology.namespace import Namespace
from topology.process import DEADLINE, eventually
from topology.side import PYTHON, GuiseSide, wait_until_says

SERVER = [PYTHON, "-u", "-m", "http.server", "80", "--bind"]


@pytest.mark.also_without_root
@pytest.mark.parametrize(
    ("published", "reached", "bound"),
    [
        ("8080:80", "127.0.0.1:8080", "0.0.0.0"),
        ("8080:80", "127.0.0.1:8080", "127.0.0.1"),
        ("8080:80", "127.0.0.1:8080", "::1"),
        ("8080:80", "127.0.0.1:8080", "address"),
        ("8080:80", "127.0.0.1:8080", "address6"),
        ("[::1]:8080:80", "[::1]:8080", "0.0.0.0"),
        ("0.0.0.0:8080:80", "127.0.0.1:8080", "::"),
        ("[::]:8080:80", "127.0.0.1:8080", "::"),
    ],
)
def test_curl_downloads_from_a_published_server(
    far: Namespace, guise: GuiseSide, tmp_path: Path, published: str, reached: str, bound: str
) -> None:
    blob = bytes(range(256)) * 20000
    (tmp_path / "blob").write_bytes(blob)
    bound = {"address": guise.address, "address6": guise.address6}.get(bound, bound)
    with guise.start(*SERVER, bound, "-d", tmp_path, options=["-p", published]) as server:
        wait_until_says(server, "Serving HTTP")
        words = ["curl", "-sS", "--retry-connrefused", "--retry", "50", "--retry-delay", "1"]
        done = far.run(*words, f"http://{reached}/blob").expect()
        assert hashlib.sha256(done.stdout).digest() == hashlib.sha256(blob).digest()
        # The program sees the client under another address than its own.
        wait_until_says(server, '"GET /blob HTTP/1.1" 200')
        said = server.said().errors
        assert re.search(r"^(::ffff:)?169\.254\.77\.2 |^fd67:7569:7365::2 ", said, re.M), said


@pytest.mark.also_without_root
def test_connections_are_refused_until_a_program_listens(far: Namespace, guise: GuiseSide) -> None:
    script = (
        "import socket, sys\n"
        "for line in sys.stdin:\n"
        "    if line == 'listen\\n':\n"
        "        s = socket.create_server(('127.0.0.1', 80))\n"
        "        c, _ = s.accept()\n"
        "        c.sendall(b'welcome')\n"
        "        c.close(), s.close()\n"
        "    print(line, end='', flush=True)\n"
    )

    def status() -> int:
        with far.socket() as client:
            return client.connect_ex(("127.0.0.1", 8080))

    with guise.start(PYTHON, "-c", script, stdin=-1, options=["-p", "8080:80"]) as program:
        assert program.stdin
        for _ in range(2):  # it may stop listening, and begin again
            program.stdin.write(b"ready\n")
            program.stdin.flush()
            wait_until_says(program, "ready")
            # A connection that comes when the server has gone is reset; from then on the port is
            # closed.
            eventually(lambda: status() == 111, "the port refuses")
            program.stdin.write(b"listen\n")
            program.stdin.flush()

            def welcomed() -> bool:
                with far.socket() as client:
                    if client.connect_ex(("127.0.0.1", 8080)):
                        return False
                    try:
                        return client.recv(100) == b"welcome"
                    except ConnectionResetError:
                        return False

            eventually(welcomed, "the program is reached")
        program.stdin.close()
        program.finish().expect()


def test_a_connection_waits_while_the_holder_has_no_descriptor(
    far: Namespace, guise: GuiseSide
) -> None:
    script = (
        "import os, socket\n"
        "with socket.create_server(('127.0.0.1', 80)) as s:\n"
        "    print('ready', flush=True)\n"
        "    while True:\n"
        "        c, _ = s.accept()\n"
        "        c.sendall(b'welcome'), c.close()\n"
    )

    def connected() -> bool:
        return client.connect_ex(("127.0.0.1", 8080)) in (0, 106)

    with guise.start(PYTHON, "-c", script, options=["-p", "8080:80"]) as program:
        wait_until_says(program, "ready")
        [warden] = wardens(far)
        holder = carrier_of(warden)
        before = descriptors(holder)
        # The port listens as soon as the holder has seen the server.
        with far.socket() as client:
            eventually(connected, "the port is open")
            assert client.recv(100) == b"welcome"
        eventually(lambda: descriptors(holder) <= before, "the connection is over there, too")
        with far.socket() as client:
            with no_descriptor_left(holder):
                assert connected()
                eventually(lambda: sleeps_for_long(holder), "the holder sleeps")
                client.setblocking(False)
                with pytest.raises(BlockingIOError):
                    client.recv(100)
            client.settimeout(DEADLINE)
            assert client.recv(100) == b"welcome"


def test_a_port_in_use_is_said_before_the_program_starts(
    far: Namespace, guise: GuiseSide, tmp_path: Path
) -> None:
    kinds = [(socket.SOCK_STREAM, ""), (socket.SOCK_DGRAM, "/udp")]
    for kind, protocol in kinds:
        with far.socket(kind=kind) as taken:
            taken.bind(("127.0.0.1", 0))
            if kind == socket.SOCK_STREAM:
                taken.listen()
            port = taken.getsockname()[1]
            flag = f"{port}:80{protocol}"
            with guise.start("touch", tmp_path / "started", options=["-p", flag]) as run:
                done = run.finish()
        assert done.status == 2, done
        assert f"--publish {flag}: cannot listen on 127.0.0.1:{port}/" in done.errors
        assert "another program has that port" in done.errors
        assert not (tmp_path / "started").exists()


def test_two_stacks_do_not_share_a_port(far: Namespace, guise: GuiseSide) -> None:
    """Even while neither has a program that listens."""
    options = ["-p", "8080:80"]
    with guise.start("cat", stdin=-1, options=options) as first:
        eventually(lambda: far.processes("guise-holder"), "the first stack is there")
        other = GuiseSide(far, guise.run_dir, paths=0)
        with other.start("true", options=["--link", "none", *options]) as second:
            # The second may be the first to bind: then it succeeds, and is no test yet.
            done = second.finish()
        assert done.status == 2, done
        assert "another program has that port" in done.errors
        assert first.stdin
        first.stdin.close()
        first.finish().expect()


def test_port_0_is_one_that_is_free_and_said(far: Namespace, guise: GuiseSide) -> None:
    script = "import socket; s = socket.create_server(('', 80)); s.accept()[0].sendall(b'hello')"
    with guise.start(PYTHON, "-c", script, options=["-p", "0:80"]) as server:
        wait_until_says(server, "port 80/tcp of the stack is 127.0.0.1:")
        found = re.search(r"127\.0\.0\.1:(\d+) of the host", server.said().errors)
        assert found

        def greeted() -> bool:
            with far.socket() as client:
                if client.connect_ex(("127.0.0.1", int(found[1]))):
                    return False
                return client.recv(100) == b"hello"

        eventually(greeted, "the port that was said answers")
        server.finish().expect()


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_iperf3_sends_datagrams_to_a_published_port(
    far: Namespace, guise: GuiseSide, address: str
) -> None:
    name = f"[{address}]" if ":" in address else address
    options = ["-p", f"{name}:5201:5201", "-p", f"{name}:5201:5201/udp"]
    with guise.start("iperf3", "-s", "-1", "--forceflush", options=options) as server:
        wait_until_says(server, "Server listening")
        words = ["iperf3", "-c", address, "-u", "-b", "2M", "-l", "1000", "-n", "200K", "--json"]

        def sent() -> str | None:
            client = far.run(*words)
            return None if "Connection refused" in client.text else client.expect().text

        text = eventually(sent, "iperf3 finds the port open")
        assert text
        assert '"lost_packets":\t0' in text
        server.finish().expect()


def test_an_answer_comes_from_the_address_that_was_asked(far: Namespace, guise: GuiseSide) -> None:
    """A socket on all addresses answers from the right one of them."""
    script = (
        "import socket\n"
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "s.bind(('', 53))\n"
        "print('bound', flush=True)\n"
        "while True:\n"
        "    data, peer = s.recvfrom(65536)\n"
        "    s.sendto(data[::-1], peer)\n"
    )
    far.ip("address", "add", "192.0.2.1/32", "dev", "lo")
    far.ip("address", "add", "192.0.2.2/32", "dev", "lo")
    options = ["-p", "0.0.0.0:5300:53/udp"]
    with guise.start(PYTHON, "-c", script, options=options) as server:
        wait_until_says(server, "bound")
        for at in ("192.0.2.2", "192.0.2.1", "127.0.0.1"):
            for _ in range(3):
                with far.socket(kind=socket.SOCK_DGRAM) as client:
                    client.sendto(b"abc", (at, 5300))
                    assert client.recvfrom(100) == (b"cba", (at, 5300))
        server.stop()


def test_what_a_program_sent_before_it_ended_arrives(far: Namespace, guise: GuiseSide) -> None:
    script = (
        "import socket\n"
        "s = socket.create_server(('', 80))\n"
        "c, _ = s.accept()\n"
        "c.sendall(bytes(3000000))\n"
    )
    with guise.start(PYTHON, "-c", script, options=["-p", "8080:80"]) as server:
        client = far.socket()

        def connected() -> bool:
            nonlocal client
            client.close()
            client = far.socket()
            return client.connect_ex(("127.0.0.1", 8080)) == 0

        eventually(connected, "the program is reached")
        got = 0
        with client:
            while data := client.recv(65536):
                got += len(data)
        assert got == 3000000
        server.finish().expect()


def test_the_port_is_free_when_the_program_has_ended(far: Namespace, guise: GuiseSide) -> None:
    for _ in range(3):
        with guise.start("true", options=["-p", "8080:80", "-p", "8080:80/udp"]) as run:
            run.finish().expect()
