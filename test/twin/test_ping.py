# SPDX-License-Identifier: GPL-2.0-only
"""ping asks and is answered, over IPv4 and IPv6, with small and with fragmented packets, and
reports when a host does not exist."""

import re

import pytest
from topology.ping import PATIENT
from topology.process import Finished
from topology.side import GuiseSide, HostSide, Side

PING = ["ping", *PATIENT, "-i", "0.1"]


def replies(done: Finished) -> list[tuple[str, str, str]]:
    """The size, number and hops of each."""
    return re.findall(
        r"^(\d+) bytes from .*: icmp_seq=(\d+) ttl=(\d+) time=", done.expect().text, re.M
    )


def numbers(answers: list[tuple[str, str, str]]) -> list[str]:
    return [number for _, number, _ in answers]


@pytest.mark.parametrize("size", [56, 4000])
@pytest.mark.parametrize("family", ["-4", "-6"])
def test_peer_answers(host: HostSide, guise: GuiseSide, family: str, size: int) -> None:
    def ping(side: Side) -> list[tuple[str, str, str]]:
        peer = side.peer if family == "-4" else side.peer6
        return replies(side.run(*PING, family, "-c", "3", "-s", str(size), peer))

    on_host = ping(host)
    assert numbers(on_host) == ["1", "2", "3"]
    assert ping(guise) == on_host


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_own_loopback_answers(host: HostSide, guise: GuiseSide, address: str) -> None:
    def ping(side: Side) -> list[tuple[str, str, str]]:
        return replies(side.run(*PING, "-c", "2", address))

    on_host = ping(host)
    assert numbers(on_host) == ["1", "2"]
    assert ping(guise) == on_host


def test_nobody_answers_at_an_unused_address(host: HostSide, guise: GuiseSide) -> None:
    def ping(side: Side) -> tuple[int, bool]:
        done = side.run("ping", "-n", "-c", "1", "-W", "30", f"{side.subnet}.99")
        return done.status, "Destination Host Unreachable" in done.text

    on_host = ping(host)
    assert on_host == (1, True)
    assert ping(guise) == on_host


def test_peer_pings_the_stack(host: HostSide, guise: GuiseSide) -> None:
    def ping(side: Side) -> list[tuple[str, str, str]]:
        # The stack exists as long as this program; it never waits inside the stack.
        with side.serve("sh", "-c", "echo here; exec sleep 100", says="here"):
            return replies(side.far.run(*PING, "-c", "3", side.address))

    on_host = ping(host)
    assert numbers(on_host) == ["1", "2", "3"]
    assert ping(guise) == on_host
