# SPDX-License-Identifier: GPL-2.0-only
"""The region of a stack that many processes have lies in huge pages."""

from __future__ import annotations

import os

import pytest
from topology.process import run
from topology.side import BUILD, GUISE

PROGRAM = BUILD / "test" / "region" / "huge"
HUGE = 2 << 10  # KiB


def crowd(n: int) -> list[int]:
    done = run([GUISE, "run", "--link", "none", "--", PROGRAM, str(n)])
    return [int(word) for word in done.expect().text.split()]


def test_a_stack_with_many_processes_has_huge_pages() -> None:
    if run([PROGRAM, "able"]).expect().text != "1\n":
        pytest.skip("the host does not make huge pages of shared memory")
    shared, image = crowd(24)
    assert shared >= 4 * HUGE, shared
    # An image that the user names is mapped as it is.
    assert image >= 3 * HUGE or "GUISE_KERNEL" in os.environ, image


def test_a_stack_with_few_processes_keeps_small_pages() -> None:
    assert crowd(3) == [0, 0]
