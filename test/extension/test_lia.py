# SPDX-License-Identifier: GPL-2.0-only
"""LIA keeps the three goals of RFC 6356, in simulated time; Reno on each subflow by itself does not
keep the second and the third.

Where the same loss is to be met by all, it is random: a queue that overflows makes all flows lose
at once, whatever their share, which no window rule can make fair.
"""

from __future__ import annotations

import pytest
from topology.extended import Result, multipath

BUFFERS = ("-B", "4096 4000000 16000000")  # a path that stalls must not stall the other
BOTTLENECK = "rate 10mbit delay 20ms limit 60"
SEEDS = [1, 2, 3]


def lossy(percent: float, seed: int) -> str:
    return f"rate 100mbit delay 20ms limit 1000 loss {percent}% seed {seed}"


def run(cc: str, seed: int, *words: str) -> Result:
    return multipath(*BUFFERS, "-c", cc, "-S", str(seed), "-w", "10", *words, seconds=60)


@pytest.mark.parametrize("seed", SEEDS)
def test_two_paths_give_no_less_than_the_best_alone(seed: int) -> None:
    """Goal 1, with nobody else on the paths, and with four TCP flows on one of them."""
    alone = run("reno", seed, "-n", "-p", BOTTLENECK).mbit()
    both = run("lia", seed, "-p", BOTTLENECK, "-p", BOTTLENECK)
    assert both.mbit() > 1.9 * alone
    beside = run("lia", seed, "-s", "lowrtt", "-p", BOTTLENECK, "-p", BOTTLENECK, "-x", "0:reno:4")
    assert beside.mbit() > 0.9 * alone


@pytest.mark.parametrize("seed", SEEDS)
def test_two_paths_with_one_loss_give_what_one_gives(seed: int) -> None:
    """Goals 1 and 2: as much as TCP on one of them, where uncoupled subflows take twice that."""
    paths = ("-p", lossy(0.5, 10 + seed), "-p", lossy(0.5, 20 + seed))
    alone = run("reno", seed, "-n", *paths[:2]).mbit()
    assert 0.8 * alone < run("lia", seed, *paths).mbit() < 1.25 * alone
    assert run("reno", seed, *paths).mbit() > 1.6 * alone


@pytest.mark.parametrize("seed", SEEDS)
def test_a_shared_bottleneck_is_not_taken_twice(seed: int) -> None:
    """Goal 2: beside one TCP flow, on a link that loses at random, and on one with a full queue."""
    shared = ("-2", "-x", "0:reno:1")
    lia, reno = (run(cc, seed, *shared, "-p", lossy(0.5, seed)) for cc in ("lia", "reno"))
    assert lia.counters["subflows"] == reno.counters["subflows"] == 2
    assert lia.mbit() < 1.25 * lia.crossing()
    assert reno.mbit() > 1.5 * reno.crossing()
    lia, reno = (run(cc, seed, *shared, "-p", BOTTLENECK) for cc in ("lia", "reno"))
    assert lia.mbit() < lia.crossing()
    assert reno.mbit() > lia.mbit()


@pytest.mark.parametrize("seed", SEEDS)
def test_traffic_moves_away_from_congestion(seed: int) -> None:
    """Goal 3: of a path with four TCP flows it leaves more to them than uncoupled subflows do."""
    crowded = ("-p", BOTTLENECK, "-p", BOTTLENECK, "-x", "0:reno:4")

    left = {cc: run(cc, seed, *crowded).crossing() for cc in ("lia", "reno")}
    assert left["lia"] > 1.08 * left["reno"]
