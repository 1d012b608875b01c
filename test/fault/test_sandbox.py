# SPDX-License-Identifier: GPL-2.0-only
"""A program that gives up nearly all system calls goes on moving data over its connections: what it
may not do any more, the holder does."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from topology.process import run
from topology.side import BUILD, GUISE, PYTHON, GuiseSide, program, proof, wait_until_says

SANDBOX = BUILD / "test" / "fault" / "sandbox"
FILTERED = BUILD / "test" / "fault" / "filtered"
SERVER = [PYTHON, program("echo_server.py"), "5000"]
HOW = pytest.mark.parametrize("how", ["prctl", "seccomp"])


@HOW
def test_it_talks_to_another_machine(guise: GuiseSide, how: str) -> None:
    with guise.far.start(*SERVER) as server:
        wait_until_says(server, "ready")
        done = guise.run(str(SANDBOX), guise.peer, "5000", "3000000", how).expect()
        assert done.text == "ok\n"


@HOW
def test_it_talks_to_another_program_of_its_stack(tmp_path: Path, how: str) -> None:
    script = f"""
        mkfifo {tmp_path}/says
        {shlex.join(SERVER)} > {tmp_path}/says &
        read ready < {tmp_path}/says
        {SANDBOX} 127.0.0.1 5000 3000000 {how}
        kill $!
    """
    done = run([GUISE, "run", "--link", "none", "--", "sh", "-c", script])
    assert done.text == "ok\n", done


def test_a_sandbox_with_threads_and_epolls() -> None:
    """As Chromium's: asked for first, and entered by a fork that has no sockets."""
    on_host = run([FILTERED]).expect()
    done = run([GUISE, "run", "-v", "--link", "none", "--", FILTERED]).expect()
    assert done.text == on_host.text == "ok\n"
    assert proof(done)["escaped"] == "0"
