# SPDX-License-Identifier: GPL-2.0-only
"""iperf3, as client and as server: what it sent arrives, in as many streams as it was told, over
TCP and UDP, in both directions, over IPv4 and IPv6."""

import json
import socket
from dataclasses import dataclass

import pytest
from topology.namespace import Namespace
from topology.process import Finished
from topology.side import GuiseSide, HostSide, Side, wait_until_says

SERVER = ["iperf3", "-s", "--forceflush"]
LISTENING = "Server listening"
AMOUNT = 32 << 20


@dataclass(frozen=True)
class Kind:
    name: str
    flags: tuple[str, ...] = ()
    family: socket.AddressFamily = socket.AF_INET
    streams: int = 1

    @property
    def udp(self) -> bool:
        return "-u" in self.flags


KINDS = [
    Kind("tcp"),
    Kind("tcp-reverse", ("-R",)),
    Kind("tcp-8-streams", ("-P", "8"), streams=8),
    Kind("tcp-8-streams-reverse", ("-P", "8", "-R"), streams=8),
    Kind("tcp-both-ways", ("--bidir",)),
    Kind("tcp-ipv6", ("-6",), socket.AF_INET6),
    Kind("tcp-ipv6-reverse", ("-6", "-R"), socket.AF_INET6),
    Kind("udp", ("-u", "-b", "50M", "-l", "1400")),
    Kind("udp-reverse", ("-u", "-b", "50M", "-l", "1400", "-R")),
    Kind("udp-ipv6", ("-6", "-u", "-b", "50M", "-l", "1400"), socket.AF_INET6),
]
every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


def words(kind: Kind, server: str) -> list[str]:
    # UDP is paced, so less of it.
    amount = AMOUNT // 16 if kind.udp else AMOUNT
    return ["iperf3", "-J", "-c", server, "-n", str(amount), *kind.flags]


def outcome(kind: Kind, finished: Finished) -> dict[str, object]:
    """What must be the same on both sides."""
    result = json.loads(finished.expect().text)
    end = result["end"]
    # What is under way when the sender is done is not read any more, and datagrams may be lost;
    # most of it arrives in each direction.
    if kind.udp:
        sums = {"sum": end["sum"]["bytes"] * (100 - end["sum"]["lost_percent"]) / 100}
    else:
        sums = {key: end[key]["bytes"] for key in end if key.startswith("sum_received")}
    assert min(sums.values()) > 1_000_000, finished
    return {
        "protocol": result["start"]["test_start"]["protocol"],
        "streams": len(end["streams"]),
        "directions": sorted(sums),
        "error": result.get("error"),
    }


@pytest.mark.also_without_root
@every_kind
def test_client(host: HostSide, guise: GuiseSide, far: Namespace, kind: Kind) -> None:
    def measure(side: Side) -> dict[str, object]:
        with far.start(*SERVER) as server:
            wait_until_says(server, LISTENING)
            return outcome(kind, side.run(*words(kind, side.of_family(kind.family)[1])))

    on_host = measure(host)
    assert on_host["streams"] == kind.streams * (2 if "--bidir" in kind.flags else 1)
    assert on_host["error"] is None
    assert measure(guise) == on_host


@every_kind
def test_server(host: HostSide, guise: GuiseSide, far: Namespace, kind: Kind) -> None:
    def measure(side: Side) -> dict[str, object]:
        with side.serve(*SERVER, says=LISTENING):
            return outcome(kind, far.run(*words(kind, side.of_family(kind.family)[0])))

    on_host = measure(host)
    assert on_host["error"] is None
    assert measure(guise) == on_host
