# SPDX-License-Identifier: GPL-2.0-only
"""Two stacks joined by two cables: a Multipath TCP connection between them uses both.
test/arm64/test_emulated.py has the same on arm64."""

from __future__ import annotations

from topology.cables import both_carry
from topology.process import run
from topology.side import BUILD


def test_a_connection_uses_both_cables() -> None:
    both_carry(run([BUILD / "test/multipath/cables"]).expect())
