# SPDX-License-Identifier: GPL-2.0-only
"""A stack in simulated time: the same seed gives the same packets, each at the same nanosecond."""

from __future__ import annotations

import functools
import itertools
import statistics
import subprocess

import pytest
from topology.side import BUILD

TRANSFER = BUILD / "test" / "sim" / "transfer"
MEGABYTE = 1_000_000


def transfer(seed: int, cc: str = "cubic", size: int = 4 * MEGABYTE, netem: str = "") -> list[str]:
    """Packets at the receiver, one a line: time, type, length, hash; at the end a summary."""
    command = [str(TRANSFER), str(seed), cc, str(size)] + ([netem] if netem else [])
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def summary(lines: list[str]) -> dict[str, str]:
    """The fields of the last line: name value name value."""
    words = lines[-1].split()[2:]
    return dict(zip(words[::2], words[1::2], strict=True))


LOSSY = "delay 10ms loss 1% rate 100mbit limit 1000 seed 9876543210"


def test_same_seed_same_packets() -> None:
    first, second = transfer(1, netem=LOSSY), transfer(1, netem=LOSSY)
    assert len(first) > 4 * MEGABYTE / 1500
    assert first == second


def test_other_seed_other_packets() -> None:
    first, other = transfer(1, netem=LOSSY), transfer(2, netem=LOSSY)
    assert first != other
    assert {line.split()[-1] for line in first} != {line.split()[-1] for line in other}


def test_netem_loses_single_packets() -> None:
    """1 % of the packets are lost, not 1 % of the segmentation-offloaded ones."""
    lines = transfer(3, "reno", 40 * MEGABYTE, LOSSY)
    lost = int(summary(lines)["retransmits"])
    assert 0.005 < lost / (40 * MEGABYTE / 1448) < 0.02


def test_time_is_not_the_hosts() -> None:
    """40 MB at 10 Mbit/s take over 32 simulated seconds, and far less here."""
    lines = transfer(4, size=40 * MEGABYTE, netem="delay 10ms rate 10mbit limit 1000")
    assert int(summary(lines)["ns"]) > 32e9


CONTROLS = ["reno", "cubic", "bic", "bbr", "westwood", "vegas", "illinois", "dctcp"]


@functools.cache
def controlled(cc: str) -> list[str]:
    """Packets of those who know ECN, as DCTCP does, are marked and not lost."""
    return transfer(5, cc, netem=f"{LOSSY} ecn")


@pytest.mark.parametrize("cc", CONTROLS)
def test_congestion_controls_repeat(cc: str) -> None:
    assert controlled(cc)[-1].startswith(f"done {cc} "), "the connection says which one it has"
    assert controlled(cc) == transfer(5, cc, netem=f"{LOSSY} ecn")


def test_congestion_controls_are_not_each_other() -> None:
    """With the same loss each sends at times of its own: else a repetition would show nothing."""
    times = {cc: [line.split()[0] for line in controlled(cc)[:-1]] for cc in CONTROLS}
    alike = [
        pair for pair in itertools.combinations(CONTROLS, 2) if times[pair[0]] == times[pair[1]]
    ]
    assert not alike


def test_loss_hurts_reno_more_than_bbr() -> None:
    """What each is for: at 1 % loss and 20 ms, Reno's window collapses and BBR's does not. The
    median of three seeds: on Linux 6.1 each has losses of its own, and Reno may be spared."""
    reno, bbr = (
        statistics.median(
            int(summary(transfer(seed, cc, 10 * MEGABYTE, LOSSY))["ns"]) for seed in (6, 7, 8)
        )
        for cc in ("reno", "bbr")
    )
    assert bbr < 0.7 * reno
