# SPDX-License-Identifier: GPL-2.0-only
"""A protocol that no host has: its family's sockets are the stack's where the stack's kernel has
the extension, and the host's where it does not."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from topology.extended import IMAGE
from topology.side import BUILD, GUISE

MOTE = BUILD / "test" / "extension" / "mote"


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    assert IMAGE.exists(), f"{IMAGE} is missing; make check builds it"
    return {**os.environ, "GUISE_RUNDIR": str(tmp_path / "run")}


Cable = tuple[socket.socket, socket.socket]


@pytest.fixture
def cable() -> Iterator[Cable]:
    ends = socket.socketpair()
    yield ends
    for end in ends:
        end.close()


def command(host: int, end: socket.socket, *words: str) -> list[str]:
    link = ["--link", f"stream:fd={end.fileno()}", "--ip", f"192.0.2.{host}/24"]
    return [str(GUISE), "run", "--extension", "mote", *link, "--", str(MOTE), *words]


def ask(env: dict[str, str], end: socket.socket, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(2, end, *words),
        env=env,
        pass_fds=[end.fileno()],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@contextmanager
def serving(env: dict[str, str], end: socket.socket) -> Iterator[subprocess.Popen[str]]:
    server = subprocess.Popen(
        command(1, end, "serve", "7"),
        env=env,
        pass_fds=[end.fileno()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout and server.stdout.readline() == "ready\n"
        yield server
    finally:
        server.kill()
        server.communicate(timeout=60)


def test_datagrams_go_from_one_stack_to_another(env: dict[str, str], cable: Cable) -> None:
    with serving(env, cable[0]) as server:
        long = "x" * 2000  # two packets of IP
        asked = ask(env, cable[1], "ask", "192.0.2.1", "7", "hello", long, "end")
        assert asked.stdout == f"hello\n{long}\nend\npeer's port 7, 0 lost\n", asked.stderr
        assert server.wait(timeout=60) == 0


def test_a_port_that_nobody_has_is_refused(env: dict[str, str], cable: Cable) -> None:
    with serving(env, cable[0]):
        refused = ask(env, cable[1], "refused", "192.0.2.1", "8")
        assert refused.stdout == "recv: ECONNREFUSED\n", refused.stderr


def alone(env: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(GUISE), "run", "--link", "none", *words],
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_stack_without_it_leaves_the_family_to_the_host(env: dict[str, str]) -> None:
    """Which has no such family, either, and says so as it does without guise."""
    done = alone(env, "--trace-calls", "--", str(MOTE), "socket")
    assert done.stdout == "socket: EAFNOSUPPORT\n"
    assert "EAFNOSUPPORT: the host's" in done.stderr
    done = alone(env, "--trace-calls", "--extension", "mote", "--", str(MOTE), "socket")
    assert done.returncode == 0, done.stdout
    assert "the stack's" in done.stderr
    wrong = alone(env, "--extension", "mote", "--", "/usr/bin/python3", "-c", STREAM)
    assert wrong.stdout == "ESOCKTNOSUPPORT\n", wrong.stderr


STREAM = """
import errno, socket
try:
    socket.socket(19, socket.SOCK_STREAM)
except OSError as error:
    print(errno.errorcode[error.errno])
"""


def test_served_programs_have_it_too(env: dict[str, str]) -> None:
    done = alone(env, "--served", "--extension", "mote", "--", str(MOTE), "socket")
    assert done.returncode == 0, (done.stdout, done.stderr)


@pytest.mark.parametrize("text", [b"", bytes(11), b"\xff" * 40], ids=["empty", "short", "wrong"])
def test_what_is_no_datagram_of_its_own_harms_nothing(
    env: dict[str, str], cable: Cable, text: bytes
) -> None:
    """Packets that another stack makes by a raw socket: too short, or with a wrong length and sum;
    the server still answers."""
    script = (
        "import socket, subprocess, sys\n"
        "raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, 253)\n"
        f"for _ in range(20): raw.sendto({text!r}, ('192.0.2.1', 0))\n"
        f"sys.exit(subprocess.run([{str(MOTE)!r}, 'ask', '192.0.2.1', '7', 'still there'])"
        ".returncode)\n"
    )
    with serving(env, cable[0]):
        words = [*command(2, cable[1])[:-1], "/usr/bin/python3", "-c", script]
        done = subprocess.run(
            words,
            env=env,
            pass_fds=[cable[1].fileno()],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.stdout == "still there\npeer's port 7, 0 lost\n", done.stderr
