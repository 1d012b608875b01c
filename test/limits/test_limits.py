# SPDX-License-Identifier: GPL-2.0-only
"""How many threads and processes one stack takes, and which error the next one gets. Each number is
reached, and not only written down. crowd.c makes them."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest
from topology.namespace import Word
from topology.process import Finished, run
from topology.side import BUILD, GUISE

CROWD = BUILD / "test" / "limits" / "crowd"
PROCESSES = 1022  # docs/limitations.md
THREADS = 4095
FORKS = ("fork", "raw", "vfork", "spawn")  # of a process that has a socket


@dataclass
class Crowd:
    came: int
    ended: str  # "ok", or the errno of the first that could not come
    again: str
    said: Finished


def crowd(how: str, most: int, *options: str, files: str = "", seconds: float = 110) -> Crowd:
    before: list[Word] = ["prlimit", f"--nofile={files}"] if files else []
    stack: list[Word] = [GUISE, "run", "--link", "none", *options, "--"]
    done = run([*before, *stack, CROWD, how, str(most)], seconds=seconds).expect()
    lines = [line.split() for line in done.text.splitlines()]
    came, again = (line for line in lines if line[0] != "took")
    # As many as a tenth of them must have room when they are gone.
    assert again[0] == "again" and int(again[1]) == (int(came[1]) + 9) // 10, done
    return Crowd(int(came[1]), came[2], again[2], done)


def test_hundreds_of_processes_are_taken_though_programs_may_open_few_files() -> None:
    """The holder has descriptors for each of them: it may have more than it was started with."""
    got = crowd("fork", 300, files="256:4096")
    assert (got.came, got.ended, got.again) == (300, "ok", "ok"), got


@pytest.mark.parametrize("how", FORKS)
def test_where_the_holder_may_have_no_more_descriptors_a_process_is_not_made(how: str) -> None:
    """No process begins without the sockets of its parent, and none is reported to have done so."""
    got = crowd(how, 400, files="240:240")
    assert (got.ended, got.again) == ("EAGAIN", "ok"), got
    assert 20 < got.came < 120 and not got.said.errors, got


def test_who_cannot_join_is_told_how_many_there_are_and_what_is_lacking() -> None:
    got = crowd("join", 400, files="240:240")
    assert (got.ended, got.again) == ("EPIPE", "ok"), got
    # This program has joined, too.
    sentence = f"the stack has {got.came + 1} processes already, .* 240 descriptors .ulimit -Hn."
    assert re.search(sentence, got.said.errors), got


@pytest.mark.parametrize("how", FORKS)
def test_where_the_memory_is_used_up_a_process_is_not_made(how: str) -> None:
    got = crowd(how, 1000, "--memory", "40M")
    assert got.ended in ("ENOMEM", "EAGAIN") and got.again == "ok", got
    assert got.came > 50 and not got.said.errors, got


def test_hundreds_of_threads_are_taken() -> None:
    got = crowd("threads", 900)
    assert (got.came, got.ended, got.again) == (900, "ok", "ok"), got


@pytest.mark.slow
@pytest.mark.parametrize("how", [*FORKS, "join"])
def test_all_processes_that_are_promised_come(how: str) -> None:
    got = crowd(how, 2000, seconds=500)
    # One is the program itself.
    assert got.came == PROCESSES - 1 and got.again == "ok", got
    assert got.ended == ("EPIPE" if how == "join" else "EAGAIN"), got


@pytest.mark.slow
def test_all_threads_that_are_promised_come() -> None:
    got = crowd("threads", 5000, seconds=500)
    # The program's first one is one of them, and two are the holder's.
    assert (got.came, got.ended, got.again) == (THREADS - 3, "EAGAIN", "ok"), got
