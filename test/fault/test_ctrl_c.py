# SPDX-License-Identifier: GPL-2.0-only
"""Ctrl-C at any moment ends what runs on guise as it ends what runs on the host: two processes
that are inside the stack nearly all the time are interrupted from their terminal."""

from __future__ import annotations

import os
import pty
import random
import signal
import time
from pathlib import Path

import pytest
from topology.namespace import Word
from topology.process import Process, eventually
from topology.side import BUILD, GUISE

BULK = BUILD / "test" / "fault" / "bulk"


def interrupted(folder: Path, *options: str) -> None:
    keyboard, screen = pty.openpty()
    rundir = folder / "run"
    command: list[Word] = [GUISE, "run", "--link", "none", *options, "--", BULK]
    env = {"GUISE_RUNDIR": str(rundir)}
    with (
        open(keyboard, "wb", buffering=0) as keys,
        open(screen, "rb", buffering=0) as tty,
        Process(command, terminal=tty.fileno(), env=env) as process,
    ):
        eventually(lambda: "ready" in process.said().text, "it sends", pause=0.002)
        time.sleep(random.random() / 50)
        keys.write(b"\x03")
        done = process.finish()
    assert done.status == 128 + signal.SIGINT, done
    # What is said is said by the tool (-v), and is no complaint.
    assert "lost" not in done.errors, done
    # The folder goes with the holder, and with that all that the stack was.
    eventually(lambda: not any(f or d for _, d, f in os.walk(rundir)), "nothing is left behind")


@pytest.mark.parametrize("options", [[], ["-v"]], ids=["exec", "verbose"])
def test_ctrl_c_in_the_middle_of_a_transfer(tmp_path: Path, options: list[str]) -> None:
    for _ in range(8):
        interrupted(tmp_path, *options)


@pytest.mark.slow
def test_ctrl_c_two_hundred_times(tmp_path: Path) -> None:
    for _ in range(200):
        interrupted(tmp_path)
