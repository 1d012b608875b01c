# SPDX-License-Identifier: GPL-2.0-only
"""What shows only after a long time: growth, drift, rare races. Each test takes SOAK_SECONDS
(default 1200; all of them about an hour and a half)."""

from __future__ import annotations

import itertools
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from topology.named import Named
from topology.namespace import Word
from topology.process import eventually, run
from topology.side import BUILD, GUISE, PYTHON, GuiseSide, program, wait_until_says

SOAK_SECONDS = int(os.environ.get("SOAK_SECONDS", "1200"))
REGION = BUILD / "test" / "region"
LINK_FUZZ = BUILD / "unit" / "fuzz" / "link_fuzz"
ON_GUISE: tuple[Word, ...] = (GUISE, "run", "--link", "none", "--")

pytestmark = [pytest.mark.soak, pytest.mark.timeout(2 * SOAK_SECONDS + 600)]


def for_the_time(one_round: Callable[[int], None]) -> int:
    """Rounds until the time is over, at least one: how many."""
    end = time.monotonic() + SOAK_SECONDS
    for number in itertools.count(1):
        one_round(number)
        if time.monotonic() >= end:
            return number
    raise AssertionError


def test_members_come_and_are_killed() -> None:
    """Half of 500 members of one stack are killed in a call; then another stack, and so on."""

    def one_round(_: int) -> None:
        done = run(
            [*ON_GUISE, "env", "GUISE_PRELOAD=off", REGION / "member", "churn", "500"], seconds=600
        )
        ended, places = [line.split() for line in done.expect().text.splitlines()]
        assert ended == ["left", "250", "killed", "250", "heard", "500"]
        assert int(places[2]) <= 0, places
        assert int(places[5]) <= 0, places

    for_the_time(one_round)


def test_storms_of_signals() -> None:
    def one_round(number: int) -> None:
        flag = ("again", "never")[number % 2]
        lines = run([*ON_GUISE, REGION / "storm", flag]).expect().text.splitlines()
        assert lines[0] == "all received 1, all right 1"
        assert lines[-1] == "handler sent 1, received 1"

    for_the_time(one_round)


@pytest.mark.parametrize("link", ["tap", "pair"])
def test_frames_of_every_kind(link: str) -> None:
    def one_round(number: int) -> None:
        words = ["--link", link, "--frames", "1000000", "--seed", str(number)]
        done = run([LINK_FUZZ, "--image", BUILD / "guise-kernel", *words], seconds=1800).expect()
        assert "findings=0" in done.text

    for_the_time(one_round)


def test_connections_come_and_go_without_growth() -> None:
    """The free memory of one stack, when all is closed, does not sink any more."""
    churn = str(BUILD / "test" / "soak" / "churn")
    command = [*ON_GUISE, "env", "GUISE_PRELOAD=off", churn, str(SOAK_SECONDS)]
    done = run(command, seconds=SOAK_SECONDS + 300).expect()
    lines = [[int(word) for word in line.split()] for line in done.text.splitlines()]
    free = [kib for kib, _ in lines]
    assert len(free) == 10
    assert all(connections > 0 for _, connections in lines)
    # The first tenths fill caches.
    assert min(free[5:]) > min(free[2:5]) - 1024, lines


def test_bulk_both_ways_beside_other_stacks(guise: GuiseSide, tmp_path: Path) -> None:
    """iperf3 in both directions for the whole time; all along other stacks come and go."""
    with guise.far.start("iperf3", "-s", "-1", "--forceflush") as server:
        wait_until_says(server, "Server listening")
        words = ["iperf3", "-J", "--bidir", "-P", "2", "-t", str(SOAK_SECONDS), "-c", guise.peer]

        def another(_: int) -> None:
            run([*ON_GUISE, "true"], env={"GUISE_RUNDIR": str(tmp_path / "other")}).expect()

        with guise.start(*words) as client:
            for_the_time(another)
            result = json.loads(client.finish(300).expect().text)
        seconds = [one["sum"]["bytes"] for one in result["intervals"]]
        back = [one["sum_bidir_reverse"]["bytes"] for one in result["intervals"]]
        # A stall would show as seconds in a row without a byte.
        for there in (seconds, back):
            stalls = [
                len(list(run_)) for none, run_ in itertools.groupby(there, lambda n: not n) if none
            ]
            assert max(stalls, default=0) < 5, there


def test_processes_come_and_go_without_growth(tmp_path: Path) -> None:
    """A named stack, on which processes end in every way. What its holder has open, its memory,
    and the stack's sockets and memory do not grow any more once the caches are full; a slot or a
    place that was lost each time would be missing soon."""
    named = Named(tmp_path)
    named.up()
    holder = named.ls()["web"]["holder"]

    def sample() -> dict[str, int]:
        stack = named.ls()["web"]
        status = Path(f"/proc/{holder}/status").read_text(encoding="ascii")
        [anonymous] = [line.split()[1] for line in status.splitlines() if "RssAnon" in line]
        return {
            "joined": stack["joined"],
            "descriptors": len(os.listdir(f"/proc/{holder}/fd")),
            "threads": len(os.listdir(f"/proc/{holder}/task")),
            "holder": int(anonymous),
            "sockets": stack["sockets"],
            "memory": stack["memory"] >> 10,
        }

    try:
        samples = []
        for _ in range(10):
            words = ["run", "--stack", "web", "--", PYTHON, program("trees.py"), "churn"]
            seconds = SOAK_SECONDS / 10
            run([GUISE, *words, str(seconds)], env=named.env, seconds=seconds + 100).expect()
            eventually(lambda: not named.ls()["web"]["members"], "all have left")
            samples.append(sample())
        print(*samples, sep="\n")
        for what, slack in (("descriptors", 0), ("threads", 0), ("sockets", 0), ("holder", 512)):
            values = [one[what] for one in samples]
            assert max(values[5:]) <= max(values[:5]) + slack, (what, samples)
        # What the stack has ever used: peaks may meet later, and grow ever more seldom.
        memory = [one["memory"] for one in samples]
        assert memory[9] - memory[4] <= 2048, samples
        assert samples[9]["joined"] > 12 * 10
    finally:
        named.call("down", "web").expect()
