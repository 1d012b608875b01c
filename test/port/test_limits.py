# SPDX-License-Identifier: GPL-2.0-only
"""How many there may be of what a stack has: the numbers that limitations.md promises."""

from __future__ import annotations

import pytest
from topology.process import run
from topology.side import BUILD, GUISE

PLACES = 4095
# The holder's pump and relays are threads of the stack, too.
HOLDERS = 5


def threads(memory: str, wanted: int) -> tuple[int, str]:
    """How many threads of a program had a socket at the same time, and what the next was told."""
    tasks = BUILD / "test" / "port" / "tasks"
    words = ["run", "--link", "none", "--memory", memory, "--", str(tasks), str(wanted)]
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
