# SPDX-License-Identifier: GPL-2.0-only
"""Which thread is woken when several processes of a stack wait beside descriptors of the host."""

from __future__ import annotations

from topology.process import run
from topology.side import GUISE, PYTHON, program

IDLE, ROUNDS = 8, 1000


def test_a_wake_up_is_for_whom_it_concerns_only() -> None:
    """Processes for which nothing comes go on sleeping while two others talk. It was a fault that
    each of 2000 messages woke all of them."""
    words = [PYTHON, program("beside.py"), str(IDLE), str(ROUNDS)]
    done = run([GUISE, "run", "--link", "none", "--", *words]).expect()
    assert int(done.text) < ROUNDS / 5, done
