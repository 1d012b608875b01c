# SPDX-License-Identifier: GPL-2.0-only
"""The kernel image with all extensions that are shipped, and what runs on it in simulated time."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass, field

from topology.side import BUILD

SHIPPED = ["lia", "lowrtt", "mote", "redundant", "template"]
IMAGE = BUILD / "-".join(["guise-kernel", *SHIPPED])
MULTIPATH = BUILD / "test" / "sim" / "multipath"


@dataclass
class Flow:
    kind: str
    path: int
    bytes: int
    stall: int  # ns; the longest pause between two arrivals


@dataclass
class Result:
    seconds: int
    flows: list[Flow] = field(default_factory=list)
    paths: list[int] = field(default_factory=list)  # bytes that each carried
    counters: dict[str, int] = field(default_factory=dict)

    def mbit(self, flow: int = 0) -> float:
        """What a flow delivered; the first is the connection that is looked at."""
        return self.flows[flow].bytes * 8 / self.seconds / 1e6

    def crossing(self) -> float:
        """What a TCP flow beside it delivered on average."""
        rates = [self.mbit(i) for i, f in enumerate(self.flows) if f.kind == "cross"]
        return sum(rates) / len(rates)


def multipath(*words: str, seconds: int = 20) -> Result:
    """Runs test/sim/multipath.c, which says what the words mean."""
    assert IMAGE.exists(), f"{IMAGE} is missing; make {IMAGE.relative_to(BUILD.parent)} builds it"
    done = subprocess.run(
        [MULTIPATH, "-t", str(seconds), *words],
        env={**os.environ, "GUISE_KERNEL": str(IMAGE)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result = Result(seconds)
    for line in done.stdout.splitlines():
        match line.split():
            case ["flow", kind, path, "bytes", count, "stall", stall]:
                result.flows.append(Flow(kind, int(path), int(count), int(stall)))
            case ["path", _, "bytes", count]:
                result.paths.append(int(count))
            case ["counter", name, count]:
                result.counters[name] = int(count)
            case ["subflows", count]:
                result.counters["subflows"] = int(count)
    return result
