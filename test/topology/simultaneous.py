# SPDX-License-Identifier: GPL-2.0-only
"""How long two paths together may take: the limits of the kernel's selftest simult_flows."""

from __future__ import annotations

from dataclasses import dataclass

SIZE = 16 << 20  # bytes, in one direction; 80 KiB go in the other
SLACK_MS = 50
JOIN_MS = 200  # each end waits so long for the second subflow, after its first bytes


@dataclass(frozen=True)
class Paths:
    """Of two paths, and both directions of each: Mbit/s, and ms."""

    rates: tuple[int, int]
    delays: tuple[int, int]

    def __str__(self) -> str:
        return "-".join(str(number) for number in (*self.rates, *self.delays))

    def limit_ms(self, size: int = SIZE) -> int:
        """Both at once at nine tenths of their rates: the rest is headers. The selftest computes
        it so: 7,906 ms for 10 and 10 Mbit/s, 11,921 for 10 and 3."""
        rate = sum(self.rates) * 1000 * 1000 * 9
        return 1000 * size * 8 * 10 // rate + 2 * JOIN_MS + SLACK_MS

    def share(self, path: int) -> float:
        return self.rates[path] / sum(self.rates)


CASES = [
    Paths((10, 10), (0, 0)),
    Paths((10, 10), (1, 25)),
    Paths((10, 3), (0, 0)),
    Paths((10, 3), (1, 25)),
    Paths((10, 3), (25, 1)),
]


def used_both(paths: Paths, size: int, carried: tuple[int, int]) -> None:
    """Looks at what each wire has carried in the direction of the transfer, headers included: its
    share, and little twice."""
    for i, octets in enumerate(carried):
        assert octets > 0.8 * paths.share(i) * size, f"path {i + 1}: {carried}"
    assert size < sum(carried) < 1.2 * size, carried
