# SPDX-License-Identifier: GPL-2.0-only
"""How many there may be of what a stack has: the numbers that limitations.md promises."""

from __future__ import annotations

from pathlib import Path

import pytest
from topology.process import run
from topology.side import BUILD, GUISE, PYTHON

PLACES = 4095
# The holder's pump and relays are threads of the stack, too.
HOLDERS = 5


TASKS = BUILD / "test" / "port" / "tasks"
LANES = 1024  # the most threads of a served program


def threads(memory: str, wanted: int) -> tuple[int, str]:
    """How many threads of a program had a socket at the same time, and what the next was told."""
    words = ["run", "--link", "none", "--memory", memory, "--", str(TASKS), str(wanted)]
    done = run([str(GUISE), *words]).expect().text.strip()
    if done.startswith("the host"):
        pytest.skip(done)
    number, error = done.split()
    return int(number), error


def test_a_stack_has_a_thread_for_each_of_its_places() -> None:
    number, error = threads("256M", PLACES + 1)
    assert PLACES - HOLDERS <= number <= PLACES, (number, error)
    assert error == "EAGAIN"


def test_a_thread_for_which_there_is_no_memory_is_told_so() -> None:
    """Half of the memory that they would all take; the stack is none the worse for it."""
    number, error = threads("64M", PLACES + 1)
    assert 500 < number < PLACES - HOLDERS
    assert error == "EAGAIN"


# Each takes what it gets, and is there until all have said how many threads that were.
GREEDY = """
import subprocess, sys
programs = []
for _ in range(6):
    words = [sys.argv[1], sys.argv[2], "stay"]
    pipe = subprocess.PIPE
    programs.append(subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True))
    print(programs[-1].stdout.readline(), end="", flush=True)
for program in programs:
    program.stdin.close()
"""


def test_served_programs_leave_room_for_others() -> None:
    """However many threads each of them wants, the next one gets as many as are left, about half of
    them, and so does each that comes then."""
    words: list[str | Path] = [GUISE, "run", "--link", "none", "--served", "--", PYTHON, "-c"]
    done = run([*words, GREEDY, TASKS, str(LANES + 1)]).expect().text.split()
    if "host" in done:
        pytest.skip(" ".join(done))
    numbers, errors = [int(word) for word in done[0::2]], done[1::2]
    left = PLACES - HOLDERS
    for number, error in zip(numbers, errors, strict=True):
        assert abs(number - min(LANES, left // 2)) < 16 and error == "EAGAIN", done
        left -= number
    assert numbers[-1] > 100, done
