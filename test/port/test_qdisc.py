# SPDX-License-Identifier: GPL-2.0-only
"""Queueing disciplines hold their rates, in simulated time: to the nanosecond, on any machine."""

from __future__ import annotations

import pytest
from topology.process import run
from topology.side import BUILD

SIZE = 2_000_000
RATE = 10_000_000 / 8  # bytes a second
BURST = 15_000
WINDOW = 10_000_000  # ns
ETHERNET = 14


def arrivals(qdisc: str, cc: str, pacing: str = "") -> list[tuple[int, int]]:
    """When each packet came, and its length on the wire."""
    shape = BUILD / "test" / "port" / "shape"
    lines = run([shape, qdisc, cc, str(SIZE), *pacing.split()]).expect().text.splitlines()
    found = [(int(line.split()[0]), int(line.split()[1]) + ETHERNET) for line in lines]
    assert sum(length for _, length in found) > SIZE
    return found


def most_at_once(packets: list[tuple[int, int]]) -> int:
    """Packets in the fullest window."""
    windows: dict[int, int] = {}
    for when, _ in packets:
        windows[when // WINDOW] = windows.get(when // WINDOW, 0) + 1
    return max(windows.values())


def test_tbf_limits_the_rate() -> None:
    packets = arrivals(f"tbf rate 10mbit burst {BURST} latency 50ms", "cubic")
    passed = 0
    for when, length in packets:
        passed += length
        assert passed <= BURST + RATE * when / 1e9, f"at {when} ns"
    assert passed > 0.9 * RATE * packets[-1][0] / 1e9


# What 10 Mbit/s are in packets of one window, and up to five more that TCP gave away as one.
PACED = RATE * WINDOW / 1e9 / 1514 + 5


@pytest.mark.parametrize(
    ("qdisc", "cc", "pacing"),
    [
        ("fq maxrate 10mbit", "cubic", ""),
        ("fq maxrate 10mbit", "bbr", ""),
        ("fq", "bbr", str(int(RATE))),
    ],
)
def test_fq_paces(qdisc: str, cc: str, pacing: str) -> None:
    """Its own maximal rate, or that of a socket under BBR."""
    packets = arrivals(qdisc, cc, pacing)
    assert most_at_once(packets) <= PACED
    assert packets[-1][0] > 0.9 * SIZE / RATE * 1e9


@pytest.mark.parametrize("qdisc", ["pfifo limit 1000", "fq_codel"])
def test_others_send_a_window_at_once(qdisc: str) -> None:
    """What pacing is measured against; and fq_codel does not hold back a queue that is short."""
    assert most_at_once(arrivals(qdisc, "cubic")) > 4 * PACED
