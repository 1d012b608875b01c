# SPDX-License-Identifier: GPL-2.0-only
"""OpenBSD's nc carries its stdin and stdout, as client and as server, over both families."""

import pytest
from topology.content import blob, digest
from topology.namespace import Namespace
from topology.process import eventually
from topology.side import GuiseSide, HostSide, Side, wait_until_says

THERE = blob(3_000_000, seed=2)
# Little: an nc that listens ends when it has read the client's end and nothing waits in its buffer,
# even if its own stdin has more.
BACK = blob(50_000, seed=3)
LISTENING = "Listening on"
FAMILIES = pytest.mark.parametrize("family", ["4", "6"])


def of_family(family: str, address: str, address6: str) -> str:
    return address if family == "4" else address6


@pytest.mark.also_served
@FAMILIES
def test_client(host: HostSide, guise: GuiseSide, far: Namespace, family: str) -> None:
    def exchange(side: Side) -> tuple[str, str]:
        with far.start("nc", f"-{family}", "-n", "-v", "-N", "-l", "7000", stdin=BACK) as server:
            wait_until_says(server, LISTENING)
            peer = of_family(family, side.peer, side.peer6)
            client = side.run("nc", "-N", peer, "7000", stdin=THERE).expect()
            return digest(server.finish().expect().stdout), digest(client.stdout)

    on_host = exchange(host)
    assert on_host == (digest(THERE), digest(BACK))
    assert exchange(guise) == on_host


@FAMILIES
def test_server(host: HostSide, guise: GuiseSide, far: Namespace, family: str) -> None:
    def exchange(side: Side) -> tuple[str, str]:
        words = ["nc", f"-{family}", "-n", "-v", "-N", "-l", "7000"]
        with side.start(*words, stdin=BACK) as server:
            wait_until_says(server, LISTENING)
            address = of_family(family, side.address, side.address6)
            client = far.run("nc", "-N", address, "7000", stdin=THERE).expect()
            return digest(server.finish().expect().stdout), digest(client.stdout)

    on_host = exchange(host)
    assert on_host == (digest(THERE), digest(BACK))
    assert exchange(guise) == on_host


def test_datagrams(host: HostSide, guise: GuiseSide, far: Namespace) -> None:
    def send(side: Side) -> bytes:
        with far.start("nc", "-n", "-v", "-u", "-l", "7000") as server:
            wait_until_says(server, "Bound on")
            # A datagram has no end: the client would wait for more.
            with side.start("nc", "-u", side.peer, "7000", stdin=b"a datagram") as client:
                datagram = eventually(lambda: server.said().stdout, "the datagram comes")
                side.check(client)
                return datagram

    on_host = send(host)
    assert on_host == b"a datagram"
    assert send(guise) == on_host


def test_ports_that_listen_are_found(host: HostSide, guise: GuiseSide, far: Namespace) -> None:
    with far.start("nc", "-n", "-v", "-k", "-l", "7001") as server:
        wait_until_says(server, LISTENING)

        def scan(side: Side) -> tuple[int, list[str]]:
            done = side.run("nc", "-z", "-v", "-n", side.peer, "7000-7002")
            return done.status, [line.replace(side.peer, "") for line in done.errors.splitlines()]

        on_host = scan(host)
        assert on_host[0] == 0 and len(on_host[1]) == 3, on_host
        assert scan(guise) == on_host
