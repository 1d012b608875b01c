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


def go_program(name: str, folder: Path) -> Path:
    """One of test/program, which uses the C library."""
    program = folder / name
    subprocess.run(
        [ROOT / "make" / "go", "build", "-o", program, f"./test/program/{name}"],
        cwd=ROOT,
        env={**os.environ, "CGO_ENABLED": "1"},
        check=True,
    )
    return program


def on_guise(program: Path) -> tuple[str, int]:
    """What it printed on a stack where nothing escaped, and how many connections there were."""
    text = output(GUISE, "run", "-v", "--link", "none", "--", program)
    summary = re.search(
        r"guise: \S+ within .*, \d+ programs, (\d+) connections, 0 sockets escaped to the host\n",
        text,
    )
    assert summary, text
    return text.replace(summary[0], ""), int(summary[1])


def test_go_program_with_cgo_serves_itself_on_the_stack(tmp_path: Path) -> None:
    program = go_program("cgo", tmp_path)
    expected = output(program)
    assert expected.startswith("child\n <nil>\n"), expected
    text, connections = on_guise(program)
    assert text == expected
    assert connections >= 2


def test_go_program_with_cgo_hands_its_sockets_to_its_children(tmp_path: Path) -> None:
    """os/exec's ExtraFiles, and servers that restart without losing a connection."""
    program = go_program("handover", tmp_path)
    expected = output(program)
    assert expected.endswith("generation 4: hello\ngeneration 4: end\nended with 0\n"), expected
    for _ in range(3):
        text, connections = on_guise(program)
        assert text == expected
        assert connections >= 2 * expected.count("generation ")


def test_where_raw_calls_cannot_be_seen_the_summary_says_so() -> None:
    text = output(*WITHOUT_DISPATCH, GUISE, "run", "-v", "--link", "none", "--", "true")
    unknown = "1 program, 0 connections; whether sockets escaped by raw system calls is not known"
    assert unknown in text and "0 sockets" not in text, text


def test_a_socket_that_escaped_is_counted() -> None:
    """One that the program was given is none; one that it gets past every hook is."""
    program = BUILD / "test" / "preload" / "past"
    with socket.socket() as given:
        given.set_inheritable(True)
        words: list[str | Path] = [*WITHOUT_DISPATCH, GUISE, "run", "-v", "--link", "none", "--"]
        text = output(*words, program, inherited=[given.fileno()])
    assert "0 connections, 1 socket escaped to the host; whether sockets escaped by raw" in text, (
        text
    )
