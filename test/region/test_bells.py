# SPDX-License-Identifier: GPL-2.0-only
"""Threads that sleep in poll are each woken by a bell of their own: docs/architecture.md."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from topology.holders import carrier_of
from topology.process import Process, eventually, run
from topology.side import BUILD, GUISE, wait_until_says

MANY = 48
FIRST = 8  # GUISE_BELLS_FIRST


class Crowd:
    """Processes that sleep in poll, each on a connection and a pipe."""

    def __init__(self, run_dir: Path, n: int) -> None:
        self.n = n
        self.turns = 0
        self.env = {"GUISE_RUNDIR": str(run_dir)}
        program = str(BUILD / "test" / "region" / "bells")
        command = [str(GUISE), "run", "--link", "none", "--", program, str(n)]
        self.process = Process(command, stdin=-1, env=self.env)
        wait_until_says(self.process, "made")
        [stack] = json.loads(run([GUISE, "ls", "--json"], env=self.env).expect().text)
        self.holder: int = stack["holder"]
        self.pids: list[int] = stack["pids"]

    def turn(self, word: bytes = b"x") -> int:
        """Each process gets a byte and sends it back. How often they slept for that."""
        assert self.process.stdin is not None
        self.process.stdin.write(word + b"\n")
        self.process.stdin.flush()
        self.turns += 1

        def slept() -> list[str] | None:
            words = self.process.said().text.split()
            return words if len(words) > self.turns else None

        return int(eventually(slept, f"turn {self.turns} ends")[-1])  # type: ignore[index]

    def pipes(self, pid: int) -> int:
        """How many of its descriptors are pipes, the host says."""
        folder = f"/proc/{pid}/fd"
        return sum(os.readlink(f"{folder}/{fd}").startswith("pipe:") for fd in os.listdir(folder))


@pytest.fixture
def crowd(run_dir: Path) -> Iterator[Crowd]:
    crowd = Crowd(run_dir, MANY)
    with crowd.process:
        yield crowd


def test_a_program_alone_has_few_bells(run_dir: Path) -> None:
    crowd = Crowd(run_dir, 1)
    with crowd.process:
        crowd.turn()
        # Of its own, and the one that says that the holder is gone.
        assert crowd.pipes(crowd.pids[0]) <= FIRST + 4


def test_each_sleeper_has_a_bell(crowd: Crowd) -> None:
    # They get them in the first turns. One that shared a bell would be woken for others. A leader
    # also wakes for the clock.
    eventually(lambda: crowd.turn() < 2 * MANY, "each process sleeps about once in a turn")
    assert max(crowd.pipes(pid) for pid in crowd.pids) >= MANY


def test_who_closes_all_descriptors_keeps_the_bells(crowd: Crowd) -> None:
    """Also those that came after the program had begun."""
    for word in (b"x", b"x", b"c", b"x"):
        crowd.turn(word)
    assert max(crowd.pipes(pid) for pid in crowd.pids) >= MANY


def test_sleepers_wake_without_their_holder(crowd: Crowd) -> None:
    """Also those that sleep on a bell that only the holder could have rung for some."""
    os.kill(crowd.holder, signal.SIGKILL)
    for _ in range(3):
        crowd.turn()


def test_sleepers_wake_without_their_holder_later(crowd: Crowd) -> None:
    crowd.turn()
    os.kill(crowd.holder, signal.SIGKILL)
    for _ in range(3):
        crowd.turn()


@pytest.mark.parametrize("turns", [0, 1])
def test_sleepers_wake_while_their_holder_is_stopped(crowd: Crowd, turns: int) -> None:
    for _ in range(turns):
        crowd.turn()
    both = [crowd.holder, carrier_of(crowd.holder)]
    for pid in both:
        os.kill(pid, signal.SIGSTOP)
    try:
        for _ in range(3):
            crowd.turn()
    finally:
        for pid in both:
            os.kill(pid, signal.SIGCONT)
    crowd.turn()
