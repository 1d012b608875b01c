# SPDX-License-Identifier: GPL-2.0-only
"""Programs whose system calls are not libc's are on the stack all the same."""

from __future__ import annotations

import os
import platform
import re
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from topology.side import BUILD, DENY, GUISE

ROOT = Path(__file__).resolve().parents[2]
# PR_SET_SYSCALL_USER_DISPATCH is newer than Linux 5.10.
WITHOUT_DISPATCH = (DENY, "prctl:0==3b=EINVAL", "--")

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64",
    reason="the host's kernel has no user dispatch on this processor",
)


def output(*command: str | Path, inherited: Sequence[int] = ()) -> str:
    done = subprocess.run(
        [str(word) for word in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        pass_fds=inherited,
    )
    return f"{done.stdout}ended with {done.returncode}\n"


def test_go_program_with_cgo_serves_itself_on_the_stack(tmp_path: Path) -> None:
    program = tmp_path / "cgo"
    subprocess.run(
        [ROOT / "make" / "go", "build", "-o", program, "./test/program/cgo"],
        cwd=ROOT,
        env={**os.environ, "CGO_ENABLED": "1"},
        check=True,
    )
    expected = output(program)
    assert expected.startswith("child\n <nil>\n"), expected
    text = output(GUISE, "run", "-v", "--link", "none", "--", program)
    summary = re.search(
        r"guise: \S+ on the wire, (\d+) connections, 0 sockets escaped to the host\n", text
    )
    assert summary, text
    assert int(summary[1]) >= 2
    assert text.replace(summary[0], "") == expected


def test_where_raw_calls_cannot_be_seen_the_summary_says_so() -> None:
    text = output(*WITHOUT_DISPATCH, GUISE, "run", "-v", "--link", "none", "--", "true")
    assert "0 sockets escaped to the host (raw system calls were not seen, 1 times" in text


def test_a_socket_that_escaped_is_counted() -> None:
    """One that the program was given is none; one that it gets past every hook is."""
    program = BUILD / "test" / "preload" / "past"
    with socket.socket() as given:
        given.set_inheritable(True)
        words: list[str | Path] = [*WITHOUT_DISPATCH, GUISE, "run", "-v", "--link", "none", "--"]
        text = output(*words, program, inherited=[given.fileno()])
    assert "0 connections, 1 socket escaped to the host (raw system calls" in text, text
