# SPDX-License-Identifier: GPL-2.0-only
"""Members of a stack are killed, stopped, or end at random moments, and the others go on: killed.c
is the server and its clients. Nothing of the dead is left in the stack."""

from __future__ import annotations

import os
from dataclasses import dataclass

import pytest
from topology.namespace import Word
from topology.process import Finished, Process, eventually
from topology.side import BUILD, DENY, GUISE

KILLED = BUILD / "test" / "fault" / "killed"
# Connections that have ended take memory for a minute: only so many of them are kept.
FEW = ("--sysctl", "net.ipv4.tcp_max_tw_buckets=64")
ON_GUISE: tuple[Word, ...] = (GUISE, "run", "--link", "none", *FEW, "--")
LOADS = ("bulk", "rr", "light")
NO_TRACER: tuple[Word, ...] = (DENY, "ptrace=EPERM", "--")
SOAK_SECONDS = int(os.environ.get("SOAK_SECONDS", "3600"))


@dataclass(frozen=True)
class Outcome:
    rounds: int
    finished: int  # sections that the holder went on with for the dead
    lost: bool
    said: Finished


def outcome(
    how: str,
    load: str,
    rounds: int,
    *words: str,
    before: tuple[Word, ...] = (),
    seconds: float = 600,
) -> Outcome:
    command: list[Word] = [*before, *ON_GUISE, KILLED, how, load, str(rounds), *words]
    with Process(command) as process:
        done = process.finish(seconds).expect()
    first, *rest = [line.split() for line in done.text.splitlines()]
    lost = first[5] == "1"
    if lost:
        # The holder says so, which may be a moment after the members know, and have ended.
        eventually(lambda: "is lost" in process.said().errors, "the loss is said")
        done = process.said()
    else:
        # Threads, processes, sockets and memory, more than before.
        threads, processes, sockets, kib = (int(n) for n in rest[0][1::2])
        assert max(threads, processes, sockets) <= 0, done
        assert kib < 1024, done
    return Outcome(int(first[1]), int(first[3]), lost, done)


@pytest.mark.parametrize("load", LOADS)
def test_a_killed_member_costs_the_others_nothing(load: str) -> None:
    got = outcome("kill", load, 70)
    assert (got.rounds, got.lost) == (70, False), got
    # Under this load it is in the middle of a change more often than not.
    assert load != "bulk" or got.finished > 0, got


@pytest.mark.parametrize("how", ["thread", "stop"])
def test_other_ends(how: str) -> None:
    """Threads come and go in the member that is then killed; it is stopped, and goes on."""
    got = outcome(how, "bulk", 20)
    assert (got.rounds, got.lost) == (20, False), got


@pytest.mark.parametrize("how", ["exit", "exec"])
def test_who_ends_by_itself_leaves_the_stack_first(how: str) -> None:
    """No tracer is needed for that."""
    got = outcome(how, "bulk", 150, before=NO_TRACER)
    assert (got.rounds, got.lost) == (150, False), got


def test_without_a_tracer_a_lost_stack_is_said_and_nothing_hangs() -> None:
    """Where ptrace is refused, about one kill in three hits a change."""
    lost = 0
    for _ in range(6):
        got = outcome("kill", "bulk", 10, before=NO_TRACER)
        lost += got.lost
        said = "is lost" in got.said.errors and "could not be traced" in got.said.errors
        assert said == got.lost, got
    assert lost > 0


@pytest.mark.soak
@pytest.mark.timeout(SOAK_SECONDS + 3600)
@pytest.mark.parametrize("load", LOADS)
def test_many_are_killed(load: str) -> None:
    got = outcome("kill", load, 3000, seconds=3000)
    assert (got.rounds, got.lost) == (3000, False), got


@pytest.mark.soak
@pytest.mark.timeout(SOAK_SECONDS + 3600)
@pytest.mark.parametrize("how", ["exit", "exec", "thread", "stop"])
def test_many_end_otherwise(how: str) -> None:
    got = outcome(how, "bulk", 3000, seconds=3000)
    assert (got.rounds, got.lost) == (3000, False), got


@pytest.mark.soak
@pytest.mark.timeout(SOAK_SECONDS + 3600)
def test_an_hour_of_kills() -> None:
    got = outcome("kill", "bulk", 10**9, str(SOAK_SECONDS), seconds=SOAK_SECONDS + 600)
    assert not got.lost, got
