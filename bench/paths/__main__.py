# SPDX-License-Identifier: GPL-2.0-only
"""One path and two, with messages of several sizes in both directions, on stacks of guise and on
the host's own: the comparison of the papers on Multipath TCP in user space, as one command.

docs/benchmarks.md says what is measured. The paths are those of the tests (test/topology).
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from topology.namespace import Namespace
from topology.side import BUILD
from topology.simultaneous import Paths
from topology.twopaths import TwoPaths, host_has_mptcp

from bench.paths.figure import draw
from bench.paths.trial import SIDES, STREAM, TESTS, Kind, Summary, Trial, server, summary, trial

SIZES = (64, 256, 1024, 4096, 16384, 65507)
LARGEST = 65507
QUEUE = 200  # packets that wait at each end of a path
COLUMNS = "{:<11} {:<6} {:>5} {:>6} {:>17} {:>15}"


def say(text: str) -> None:
    print(f"bench-paths: {text}", file=sys.stderr, flush=True)


def numbers(text: str) -> tuple[int, ...]:
    return tuple(int(word) for word in text.split(","))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench/paths/run", description=__doc__)
    parser.add_argument("--trials", type=int, default=5, help="of each kind (%(default)s)")
    parser.add_argument("--seconds", type=float, default=10, help="of a trial (%(default)s)")
    sizes = ",".join(map(str, SIZES))
    parser.add_argument("--sizes", type=numbers, default=SIZES, help=f"of messages ({sizes})")
    parser.add_argument("--rates", type=numbers, default=(50, 20), help="Mbit/s of each (50,20)")
    parser.add_argument("--delays", type=numbers, default=(10, 25), help="ms, one way (10,25)")
    parser.add_argument(
        "--output", type=Path, default=BUILD / "bench-paths", help="a folder (%(default)s)"
    )
    given = parser.parse_args()
    if given.trials < 1 or given.seconds < 0.1:
        parser.error("--trials is at least 1, --seconds at least 0.1")
    if not all(1 <= size <= LARGEST for size in given.sizes):
        parser.error(f"--sizes: each is 1 to {LARGEST}")
    for name in "rates", "delays":
        if len(getattr(given, name)) != 2:
            parser.error(f"--{name}: expected two, as in --{name} {','.join(['10', '20'])}")
    if min(given.rates) < 1 or min(given.delays) < 0:
        parser.error("--rates are at least 1, --delays at least 0")
    return given


def measure(
    two: TwoPaths, kinds: Sequence[Kind], trials: int, milliseconds: int
) -> dict[Kind, list[Trial]]:
    """Sides and numbers of paths alternate, so that what else the machine does falls on all."""
    found: dict[Kind, list[Trial]] = {kind: [] for kind in kinds}
    for number in range(trials):
        for side in SIDES:
            for paths in (1, 2):
                of = [kind for kind in kinds if (kind.side, kind.paths) == (side, paths)]
                if not of:
                    continue
                with server(two, side, paths):
                    for kind in of:
                        found[kind].append(trial(two, kind, milliseconds))
                say(f"trial {number + 1} of {trials}: {side}, {paths} of the paths")
    return found


def write(summaries: Sequence[Summary], file: Path) -> None:
    with file.open("w", newline="") as sink:
        rows = [{**asdict(s.kind), **asdict(s)} for s in summaries]
        names = [name for name in rows[0] if name != "kind"]
        writer = csv.DictWriter(sink, names, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)


def show(summaries: Sequence[Summary]) -> None:
    print(COLUMNS.format("test", "side", "paths", "size", "goodput, Mbit/s", "processors, %"))
    for s in summaries:
        goodput = f"{s.goodput:.2f} +- {s.goodput_deviation:.2f}"
        processors = f"{s.processors:.1f} +- {s.processors_deviation:.1f}"
        kind = s.kind
        print(COLUMNS.format(kind.test, kind.side, kind.paths, kind.size, goodput, processors))


def main() -> int:
    given = arguments()
    if os.geteuid():
        raise SystemExit("bench-paths: needs root, to make network namespaces")
    for made in BUILD / "guise", STREAM:
        if not os.access(made, os.X_OK):
            raise SystemExit(f"bench-paths: {made} is not there: make bench-paths builds it")
    kinds = [
        Kind(test, side, paths, size)
        for test in TESTS
        for side in SIDES
        for paths in (1, 2)
        for size in given.sizes
        if side == "guise" or paths == 1 or host_has_mptcp()
    ]
    if not host_has_mptcp():
        say("the host with two paths is not measured: its kernel has no MPTCP")
    shape = Paths(given.rates, given.delays)
    with (
        tempfile.TemporaryDirectory(prefix="guise-bench-") as folder,
        Namespace("near") as near,
        Namespace("far") as far,
        TwoPaths(near, far, Path(folder), shape, queue=QUEUE) as two,
    ):
        found = measure(two, kinds, given.trials, round(given.seconds * 1000))
    summaries = [summary(kind, trials) for kind, trials in found.items()]
    given.output.mkdir(parents=True, exist_ok=True)
    write(summaries, given.output / "paths.csv")
    each = zip(given.rates, given.delays, strict=True)
    first, second = (f"{rate} Mbit/s and {delay} ms" for rate, delay in each)
    title = f"{first}; {second}; {given.trials} trials of {given.seconds:g} s"
    draw(summaries, title, given.output / "paths.png")
    show(summaries)
    say(f"{given.output}/paths.csv and paths.png have the same")
    return 0


if __name__ == "__main__":
    sys.exit(main())
