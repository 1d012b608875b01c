# SPDX-License-Identifier: GPL-2.0-only
"""guise path plays a long path between two namespaces: what passes is delayed, lost and slowed
down as told, whole, and packet by packet; when it ends, its taps are gone.

        far ──wire── a stack of guise ──wire── other
        10.77.9.1                              10.77.9.2
"""

import contextlib
import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from topology.content import blob
from topology.holders import wardens
from topology.leftovers import Leftovers
from topology.namespace import Namespace
from topology.ping import PATIENT, numbers
from topology.process import Finished, Process, eventually
from topology.side import GUISE, wait_until_says

HERE, THERE = "10.77.9.1", "10.77.9.2"


@pytest.fixture
def other(far: Namespace, leftovers: Leftovers) -> Iterator[Namespace]:
    with Namespace("other") as other:
        yield other


@contextlib.contextmanager
def path(far: Namespace, other: Namespace, run_dir: Path, *flags: str) -> Iterator[Process]:
    ends = [f"{far.name}:wire,ip={HERE}/24,ip=fd77::1/64"]
    ends += [f"{other.name}:wire,ip={THERE}/24,ip=fd77::2/64"]
    command = [str(GUISE), "path", *flags, *ends]
    with far.start(*command, env={"GUISE_RUNDIR": str(run_dir)}) as process:
        wait_until_says(process, "ready")
        yield process
        if process.running():
            process.signal(signal.SIGTERM)
            process.finish().expect()


def ping(far: Namespace, to: str, count: int, *flags: str) -> Finished:
    return far.run("ping", "-n", "-q", "-c", str(count), "-i", "0.002", "-W", "10", *flags, to)


def answered(finished: Finished) -> int:
    found = re.search(r"(\d+) received", finished.text)
    assert found, finished
    return int(found[1])


@pytest.mark.parametrize("to", [THERE, "fd77::2"])
def test_each_direction_is_delayed(
    far: Namespace, other: Namespace, run_dir: Path, to: str
) -> None:
    with path(far, other, run_dir, "--delay", "15ms"):
        done = ping(far, to, 20).expect()
        shortest = re.search(r"rtt min/avg/max/mdev = ([\d.]+)/", done.text)
        assert shortest and float(shortest[1]) >= 30, done


def test_both_directions_can_differ(far: Namespace, other: Namespace, run_dir: Path) -> None:
    with path(far, other, run_dir, "--loss-back", "100%"):
        # The answer could be lost, and could not be requested again.
        (wire,) = json.loads(other.ip("-json", "link", "show", "wire"))
        far.ip("neigh", "replace", THERE, "lladdr", wire["address"], "dev", "wire")
        with other.start("tcpdump", "-lni", "wire", "icmp") as seen:
            wait_until_says(seen, "listening on")
            assert answered(ping(far, THERE, 5, "-w", "1")) == 0
            eventually(lambda: seen.said().text.count("echo request") >= 5, "5 requests arrive")


def test_loss_is_what_was_asked_for(far: Namespace, other: Namespace, run_dir: Path) -> None:
    """5 % in each direction of 2,000: 1,805 come back, with a standard deviation of 13.3."""
    with path(far, other, run_dir, "--loss", "5%"):
        assert 1805 - 80 < answered(ping(far, THERE, 2000)) < 1805 + 80


def test_no_loss_means_none(far: Namespace, other: Namespace, run_dir: Path) -> None:
    with path(far, other, run_dir, "--delay", "1ms"):
        done = far.run("ping", *PATIENT, "-c", "1000", "-i", "0.002", THERE)
        assert numbers(done) == [str(i) for i in range(1, 1001)]


def test_tcp_passes_whole_at_the_rate(far: Namespace, other: Namespace, run_dir: Path) -> None:
    """What the sender's kernel left unsegmented is split on the way: netem counts packets."""
    content = blob(6_000_000)
    flags = ["--delay", "5ms", "--rate", "40mbit"]
    with path(far, other, run_dir, *flags):
        listen = ["socat", "-d", "-d", "-u", "TCP4-LISTEN:7000,reuseaddr", "STDOUT"]
        with (
            other.start(*listen) as sink,
            other.start("tcpdump", "-lni", "wire", "-c", "1", "greater 1600") as large,
        ):
            wait_until_says(sink, "listening on")
            wait_until_says(large, "listening on")
            far.run("socat", "-u", "STDIN", f"TCP4:{THERE}:7000", stdin=content).expect()
            assert sink.finish().expect().stdout == content
            assert large.running(), f"no packet is larger than the MTU: {large.said()}"


def test_a_program_on_guise_uses_the_path(far: Namespace, other: Namespace, run_dir: Path) -> None:
    """Its tap is in far, and far forwards: the path has the name of none of guise's taps."""
    with path(far, other, run_dir, "--delay", "2ms", "--loss", "1%"):
        listen = ["socat", "-d", "-d", "-u", "TCP4-LISTEN:7000,reuseaddr", "STDOUT"]
        with other.start(*listen) as sink:
            wait_until_says(sink, "listening on")
            program = ["socat", "-u", "STDIN", f"TCP4:{THERE}:7000"]
            command = [str(GUISE), "run", "--cc", "bbr", "--", *program]
            content = blob(2_000_000)
            far.run(*command, stdin=content, env={"GUISE_RUNDIR": str(run_dir)}).expect()
            assert sink.finish().expect().stdout == content


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_taps_are_gone_when_it_has_ended(
    far: Namespace, other: Namespace, run_dir: Path, leftovers: Leftovers, number: signal.Signals
) -> None:
    before = other.interfaces()
    with path(far, other, run_dir) as process:
        assert "wire" in far.interfaces() & other.interfaces()
        process.signal(number)
        process.finish()
        leftovers.wait_until_none()
        eventually(lambda: other.interfaces() == before, "other has no tap either")


def test_taps_are_gone_when_its_holder_is_killed(
    far: Namespace, other: Namespace, run_dir: Path, leftovers: Leftovers
) -> None:
    before = other.interfaces()
    with path(far, other, run_dir) as process:
        (holder,) = wardens(far)
        os.kill(holder, signal.SIGKILL)
        done = process.finish()
        assert done.status == 125 and "did not last" in done.errors, done
        leftovers.wait_until_none()
        eventually(lambda: other.interfaces() == before, "other has no tap either")


def test_path_lasts_as_long_as_its_program(
    far: Namespace, other: Namespace, run_dir: Path, leftovers: Leftovers
) -> None:
    ends = [f"{far.name}:wire,ip={HERE}/24", f"{other.name}:wire,ip={THERE}/24"]
    program = ["sh", "-c", f"ping -q -c 1 -W 20 {THERE} && exit 3"]
    command = [str(GUISE), "path", *ends, "--", *program]
    done = far.run(*command, env={"GUISE_RUNDIR": str(run_dir)})
    assert done.status == 3, done
    leftovers.wait_until_none()
