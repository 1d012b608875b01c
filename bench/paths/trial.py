# SPDX-License-Identifier: GPL-2.0-only
"""What is measured: a trial is one stream of messages, with a server and a client that are both on
stacks of guise, or both on the host's own."""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Iterator
from dataclasses import dataclass

from topology.closed import UNTIL_CLOSED
from topology.process import eventually, run
from topology.side import BUILD, wait_until_says
from topology.twopaths import FAR, GUISE_FAR, GUISE_NEAR, TwoPaths, address

STREAM = BUILD / "bench/paths/stream"
PORT = 5201
LATE_SECONDS = 60  # after which a trial has failed

# guise stays until its stack has ended: the next one takes the same taps.
VERBOSE = ("-v",)

# As netperf calls them: who sends.
TESTS = {"TCP_STREAM": "send", "TCP_MAERTS": "receive"}
SIDES = ("guise", "host")


@dataclass(frozen=True)
class Kind:
    """Of trials that are repeated."""

    test: str
    side: str
    paths: int
    size: int  # of a message, in bytes

    @property
    def protocol(self) -> str:
        return "mptcp" if self.paths > 1 else "tcp"


@dataclass(frozen=True)
class Trial:
    goodput: float  # Mbit/s
    processors: float  # percent of all of the machine's that were busy


@dataclass(frozen=True)
class Summary:
    """Means and standard deviations."""

    kind: Kind
    trials: int
    goodput: float
    goodput_deviation: float
    processors: float
    processors_deviation: float


def summary(kind: Kind, trials: list[Trial]) -> Summary:
    figures: list[float] = []
    for values in [t.goodput for t in trials], [t.processors for t in trials]:
        deviation = statistics.stdev(values) if len(values) > 1 else 0.0
        figures += [statistics.mean(values), deviation]
    return Summary(kind, len(trials), *figures)


@contextlib.contextmanager
def server(two: TwoPaths, side: str, paths: int) -> Iterator[None]:
    """For all trials of that side with so many paths."""
    words = [str(STREAM), "serve", "mptcp" if paths > 1 else "tcp", str(PORT)]
    if side == "guise":
        words = two.on_guise(GUISE_FAR, GUISE_NEAR, *words, paths=paths, flags=VERBOSE)
    elif paths > 1:
        two.use(FAR)
    with two.far.start(*words, env=two.environment()) as process:
        wait_until_says(process, "listening")
        yield
    eventually(lambda: not two.far.processes("guise-holder"), "the server's stack has ended", 90)


def trial(two: TwoPaths, kind: Kind, milliseconds: int) -> Trial:
    peer = GUISE_FAR if kind.side == "guise" else FAR
    words = [str(STREAM), TESTS[kind.test], kind.protocol, address(1, peer), str(PORT)]
    words += [str(kind.size), str(milliseconds)]
    if kind.side == "guise":
        words = ["sh", "-c", f'"$@" || exit\n{UNTIL_CLOSED}', "sh", *words]
        words = two.on_guise(GUISE_NEAR, peer, *words, paths=kind.paths, flags=VERBOSE)
    seconds = milliseconds / 1000 + LATE_SECONDS
    done = run(two.near.command(*words), env=two.environment(), seconds=seconds).expect()
    octets, nanoseconds, busy, everything = (int(word) for word in done.text.split())
    return Trial(octets * 8e3 / nanoseconds, 100 * busy / everything)
