# SPDX-License-Identifier: GPL-2.0-only
"""ping asks and is answered, over IPv4 and IPv6, with small and with fragmented packets, and hears
when a host is not there."""

import re

import pytest
from topology.side import GuiseSide, HostSide, Side


def outcome(text: str) -> dict[str, object]:
    """Without times."""
    summary = re.search(r"(\d+) packets transmitted, (\d+) received", text)
    assert summary, text
    replies = re.findall(r"^(\d+) bytes from .*: icmp_seq=(\d+) ttl=(\d+) time=", text, re.M)
    return {"summary": summary.groups(), "replies": replies}


@pytest.mark.parametrize("size", [56, 4000])
@pytest.mark.parametrize("family", ["-4", "-6"])
def test_peer_answers(host: HostSide, guise: GuiseSide, family: str, size: int) -> None:
    def ping(side: Side) -> dict[str, object]:
        peer = side.peer if family == "-4" else side.peer6
        words = ["ping", family, "-n", "-c", "3", "-i", "0.1", "-W", "20", "-s", str(size)]
        return outcome(side.run(*words, peer).expect().text)

    on_host = ping(host)
    assert on_host["summary"] == ("3", "3")
    assert ping(guise) == on_host


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_own_loopback_answers(host: HostSide, guise: GuiseSide, address: str) -> None:
    def ping(side: Side) -> dict[str, object]:
        return outcome(side.run("ping", "-n", "-c", "2", "-i", "0.1", address).expect().text)

    on_host = ping(host)
    assert on_host["summary"] == ("2", "2")
    assert ping(guise) == on_host


def test_nobody_answers_at_an_unused_address(host: HostSide, guise: GuiseSide) -> None:
    def ping(side: Side) -> tuple[int, bool]:
        done = side.run("ping", "-n", "-c", "1", "-W", "5", f"{side.subnet}.99")
        return done.status, "Destination Host Unreachable" in done.text

    on_host = ping(host)
    assert on_host == (1, True)
    assert ping(guise) == on_host


def test_peer_pings_the_stack(host: HostSide, guise: GuiseSide) -> None:
    def ping(side: Side) -> dict[str, object]:
        # The program only holds the stack open; it never waits inside it.
        with side.serve("sh", "-c", "echo here; exec sleep 100", says="here"):
            words = ["ping", "-n", "-c", "3", "-i", "0.1", "-W", "20"]
            return outcome(side.far.run(*words, side.address).expect().text)

    on_host = ping(host)
    assert on_host["summary"] == ("3", "3")
    assert ping(guise) == on_host
