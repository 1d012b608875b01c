# SPDX-License-Identifier: GPL-2.0-only
"""What test/multipath/cables.c must have said."""

from __future__ import annotations

from topology.process import Finished

SIZE = 4_000_000


def both_carry(finished: Finished) -> None:
    """Each byte of both directions arrived, over two subflows, and over both cables. They have one
    rate, but the second begins later, and a processor that is slow sends in larger pieces."""
    whole, subflows, *interfaces = finished.text.splitlines()
    assert whole == f"right {SIZE} {SIZE}", finished
    assert subflows == "subflows 1 fallback 0", finished
    sent, received = [], []
    for line, name in zip(interfaces, ("eth0", "eth1"), strict=True):
        dev, tx, rx = line.split()
        assert dev == name, finished
        sent.append(int(tx))
        received.append(int(rx))
    for carried in sent, received:
        assert min(carried) > SIZE / 10, finished
        assert sum(carried) > SIZE, finished
