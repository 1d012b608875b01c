# SPDX-License-Identifier: GPL-2.0-only
"""A member that is stopped (SIGSTOP, Ctrl-Z) while it waits in the stack: the others get their
frames, although it was the leader, and no thread uses a processor all the time because of it."""

from __future__ import annotations

import time
from pathlib import Path
from subprocess import PIPE

import pytest
from topology.holders import carrier_of, wardens
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


def run_and_denied(task: Path) -> tuple[int, int]:
    """Nanoseconds for which a thread has run, and for which it was ready and had to wait."""
    run, denied, _ = (task / "schedstat").read_text().split()
    return int(run), int(denied)


def share_of_a_processor(pid: int, seconds: float) -> float:
    """The share that its busiest thread takes of the time in which it could have a processor: so a
    thread that is always ready to run is found on a busy machine, too."""
    tasks = list(Path(f"/proc/{pid}/task").iterdir())
    began, before = time.monotonic_ns(), [run_and_denied(task) for task in tasks]
    time.sleep(seconds)  # what is measured
    shares = []
    for task, (run, denied) in zip(tasks, before, strict=True):
        run_now, denied_now = run_and_denied(task)
        could = time.monotonic_ns() - began - (denied_now - denied)
        shares.append((run_now - run) / max(could, 1))
    return max(shares)


# More than there are bells, so that each sleeper's bell is one that another thread has not seen.
THREADS = 250


def test_nobody_waits_for_a_stopped_one_that_was_woken(guise: GuiseSide) -> None:
    """The holder, which watches the tap, has a bell before it that the stopped one has not seen."""
    with guise.start(*STOPPED, "woken", str(THREADS), stdin=PIPE) as process:
        wait_until_says(process, "stopped")
        (warden,) = wardens(guise.far)
        assert share_of_a_processor(carrier_of(warden), 1) < 0.1
        go_on(process)
        done = process.finish().expect()
    assert done.text.endswith("y" * THREADS + "\n"), done
