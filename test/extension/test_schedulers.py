# SPDX-License-Identifier: GPL-2.0-only
"""Each scheduler of extensions/ sends by the paths that it says: in simulated time, by the bytes
that each path carried."""

from __future__ import annotations

from topology.extended import Result, multipath

FAST = "rate 10mbit delay 5ms limit 200"
SLOW = "rate 10mbit delay 40ms limit 200"
FIRST_SLOW = ("-p", SLOW, "-p", FAST)
FIRST_FAST = ("-p", FAST, "-p", SLOW)
MESSAGES = ("-m", "5000")  # 0.4 Mbit/s, which fits into either window


def payload(result: Result) -> int:
    return result.flows[0].bytes


def test_lowrtt_uses_the_path_with_the_lowest_round_trip_time() -> None:
    """What fits into its window goes by it, wherever the connection began; none by the other."""
    for words, fast, slow in (FIRST_FAST, 0, 1), (FIRST_SLOW, 1, 0):
        result = multipath("-s", "lowrtt", *words, *MESSAGES)
        assert result.counters["subflows"] == 2
        assert result.paths[fast] > payload(result)
        assert result.paths[slow] < payload(result) / 50


def test_lowrtt_fills_both_paths() -> None:
    result = multipath("-s", "lowrtt", *FIRST_FAST)
    assert result.mbit() > 17
    assert min(result.paths) > 0.9 * max(result.paths)


def test_lowrtt_sends_again_by_the_other_path_what_a_dead_one_had() -> None:
    """The path with the lowest time loses everything from a moment on: all arrives by the other."""
    result = multipath("-s", "lowrtt", *FIRST_FAST, "-k", "0:12")
    assert result.mbit() > 9
    result = multipath("-s", "lowrtt", *FIRST_FAST, *MESSAGES, "-k", "0:12")
    assert payload(result) > 0.95 * 5000 * 10 * result.seconds
    assert result.paths[1] > payload(result) / 3


def test_lowrtt_leaves_backups_alone_until_they_are_needed() -> None:
    result = multipath("-s", "lowrtt", *FIRST_FAST, "-b")
    assert result.paths[1] < payload(result) / 50
    result = multipath("-s", "lowrtt", *FIRST_FAST, "-b", "-k", "0:12")
    assert result.paths[1] > payload(result) / 4


def test_redundant_sends_everything_by_each_path() -> None:
    for words in FIRST_FAST, FIRST_SLOW:
        result = multipath("-s", "redundant", *words, *MESSAGES)
        assert min(result.paths) > payload(result)


def test_redundant_is_as_fast_as_the_fastest_path() -> None:
    """Each path carries all that it can, and the peer takes it once."""
    result = multipath("-s", "redundant", "-p", FAST, "-p", "rate 3mbit delay 40ms limit 200")
    assert 9 < result.mbit() < 10
    assert result.paths[1] > 0.9 * 3e6 / 8 * result.seconds


def test_redundant_hardly_feels_the_death_of_a_path() -> None:
    """Linux's own scheduler has to find out first."""
    redundant, default = (
        multipath("-s", scheduler, *FIRST_FAST, *MESSAGES, "-k", "0:12")
        for scheduler in ("redundant", "default")
    )
    assert payload(redundant) > 0.95 * 5000 * 10 * redundant.seconds
    assert redundant.flows[0].stall < 250e6  # messages come each 100 ms
    assert default.flows[0].stall > 2 * redundant.flows[0].stall


def test_other_schedulers_repeat_nothing() -> None:
    """What linux/patches/6.12/0003 changed is for those that ask for it."""
    result = multipath("-s", "default", *FIRST_FAST)
    assert sum(result.paths) < 1.1 * payload(result)
