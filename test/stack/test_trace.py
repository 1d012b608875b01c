# SPDX-License-Identifier: GPL-2.0-only
"""guise run --trace-calls: which socket went where, and why."""

from __future__ import annotations

import platform
import re
from pathlib import Path

import pytest
from topology.named import Named
from topology.namespace import Word
from topology.process import run
from topology.side import BUILD, DENY, GUISE, PYTHON

SCRIPT = """
import ctypes, socket
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname())
accepted = server.accept()
socket.socketpair()
socket.socket(socket.AF_UNIX)
socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 15)
try:
    socket.socket(socket.AF_INET6, socket.SOCK_STREAM, 999)
except OSError as error:
    print(error.errno)
"""

EXPECTED = [
    r"socket\(AF_INET, SOCK_STREAM, \d\) = \d+: the stack's, for it carries IP",
    r"accept\((\d+)\) = \d+: the stack's, for \1 is",
    r"socketpair\(AF_UNIX, SOCK_STREAM, 0\) = \d+: the host's, for it does not leave the host",
    r"socket\(AF_UNIX, SOCK_STREAM, 0\) = \d+: the host's, for it does not leave the host",
    r"socket\(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE\) = \d+: the stack's, for .* about networking",
    r"socket\(AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT\) = \d+: the host's, for .* not about",
    r"socket\(AF_INET6, SOCK_STREAM, 999\) = E\w+: the stack's, for it carries IP",
]

RAW = """
import ctypes, os
libc = ctypes.CDLL(None)
fd = libc.syscall(41, 2, 1, 0)
print(fd)
"""


@pytest.fixture
def alone(tmp_path: Path) -> dict[str, str]:
    return {"GUISE_RUNDIR": f"{tmp_path}/run"}


def trace(alone: dict[str, str], script: str, *flags: str) -> tuple[str, list[str]]:
    words: list[Word] = [GUISE, "run", "--link", "none", *flags, "--", PYTHON, "-c", script]
    done = run(words, env=alone).expect()
    return done.text, done.errors.splitlines()


def test_each_socket_is_said_with_where_it_went_and_why(alone: dict[str, str]) -> None:
    _, lines = trace(alone, SCRIPT, "--trace-calls")
    prefix = r"guise: python3: \[\d+\] "
    assert all(re.match(prefix, line) for line in lines), lines
    for pattern in EXPECTED:
        assert any(re.fullmatch(prefix + pattern + r".*", line) for line in lines), (pattern, lines)


def test_raw_calls_are_said_too(alone: dict[str, str]) -> None:
    fd, lines = trace(alone, RAW, "--trace-calls")
    assert any(f"socket(AF_INET, SOCK_STREAM, 0) = {fd.strip()}: the stack's" in x for x in lines)


def test_without_the_flag_nothing_is_said(alone: dict[str, str]) -> None:
    _, lines = trace(alone, SCRIPT)
    assert lines == []


def test_errors_are_as_without_it(alone: dict[str, str]) -> None:
    assert trace(alone, SCRIPT)[0] == trace(alone, SCRIPT, "--trace-calls")[0] != ""


def test_a_program_on_a_named_stack_is_traced(tmp_path: Path) -> None:
    named = Named(tmp_path)
    named.up()
    try:
        script = "import socket; socket.socket()"
        words = ["run", "--stack", "web", "--trace-calls", "--", PYTHON, "-c", script]
        assert "the stack's, for it carries IP" in named.call(*words).expect().errors
    finally:
        named.call("down", "web").expect()


@pytest.mark.skipif(platform.machine() != "x86_64", reason="what it denies is x86-64's")
def test_one_that_escaped_is_said_at_the_end(alone: dict[str, str]) -> None:
    deny: list[Word] = [DENY, "prctl:0==3b=EINVAL", "--"]  # raw calls cannot be seen then
    program = BUILD / "test" / "preload" / "past"
    guise: list[Word] = [GUISE, "run", "--link", "none", "--trace-calls", "--"]
    words: list[Word] = [*deny, *guise, program]
    lines = run(words, env=alone).errors.splitlines()
    escaped = r"guise: past: \[\d+\] \d+ is the host's at the end: it escaped, .*"
    assert any(re.fullmatch(escaped, line) for line in lines), lines
