# SPDX-License-Identifier: GPL-2.0-only
"""A member that is stopped (SIGSTOP, Ctrl-Z) while it waits in the stack: the others get their
frames, although it was the one that watched the links, and nobody pays for it with a processor."""

from __future__ import annotations

import os
import time
from pathlib import Path
from subprocess import PIPE

import pytest
from topology.namespace import Word
from topology.process import Process
from topology.side import DENY, PYTHON, GuiseSide, program, wait_until_says

STOPPED = (PYTHON, program("stopped.py"))
SERVER = (PYTHON, program("echo_server.py"), "5000")


def go_on(process: Process) -> None:
    wait_until_says(process, "stopped")
    assert process.stdin
    process.stdin.write(b"\n")
    process.stdin.flush()


@pytest.mark.parametrize("tracer", ["traced", "not traced"])
def test_the_others_go_on_without_a_stopped_leader(guise: GuiseSide, tracer: str) -> None:
    denied: tuple[Word, ...] = (DENY, "ptrace=EPERM", "--") if tracer == "not traced" else ()
    words = guise.words(*STOPPED, "leads", guise.peer, "5000", options=["-v"])
    with guise.far.start(*SERVER) as server:
        wait_until_says(server, "ready")
        with guise.far.start(*denied, *words, env=guise.environment(), stdin=PIPE) as process:
            go_on(process)
            done = process.finish().expect()
    assert done.text.endswith("ok\n"), done


def seconds_of_processor(pid: int) -> float:
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(n) for n in words[11:13]) / os.sysconf("SC_CLK_TCK")


def test_nobody_waits_for_a_stopped_one_that_was_woken(guise: GuiseSide) -> None:
    """The holder, which watches the tap, has a bell before it that the stopped one has not seen."""
    with guise.start(*STOPPED, "woken", stdin=PIPE) as process:
        wait_until_says(process, "stopped")
        holders = guise.far.processes("guise-holder")
        began, before = time.monotonic(), sum(map(seconds_of_processor, holders))
        time.sleep(1)  # what is measured
        took = sum(map(seconds_of_processor, holders)) - before
        assert holders and took < (time.monotonic() - began) / 2, took
        go_on(process)
        done = process.finish().expect()
    assert done.text.endswith("y\n"), done
