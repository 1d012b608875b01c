# SPDX-License-Identifier: GPL-2.0-only
"""What becomes of a connection while its paths are bad, though no interface of the host says so:
packets are lost or come in another order, a path carries smaller packets, or none, a NAT forgets,
a firewall strips MPTCP's options. An unmodified program sends and receives all along.

The host's own MPTCP does the same at the same time, over the same uplinks, whose addresses the
stack shares. How long each stood still at most is printed, and not judged (pytest -s)."""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from topology.namespace import Namespace
from topology.process import Process, eventually
from topology.routed import Routed
from topology.side import GUISE, PYTHON, program, wait_until_says
from topology.uplinks import PORT, SERVER, SERVER6, goes_on

pytestmark = [
    pytest.mark.skipif(
        not Path("/proc/sys/net/mptcp/enabled").exists(), reason="the host's kernel has no MPTCP"
    ),
    # A path that is bad may be slow: what was sent last must arrive, too.
    pytest.mark.timeout(600),
]
slow = pytest.mark.slow

EXCHANGE = [PYTHON, program("both_ways.py"), "exchange", SERVER, PORT]
STRIPS = "reset tcp option mptcp"
IS_SYN = "tcp flags & (syn | ack) == syn"


@pytest.fixture
def routed(far: Namespace, run_dir: Path) -> Iterator[Routed]:
    with Routed(far, run_dir) as routed:
        routed.server.ip("mptcp", "limits", "set", "subflows", "8", "add_addr_accepted", "8")
        far.ip("mptcp", "limits", "set", "subflows", "8")
        for path in 1, 2:
            endpoint = [f"10.88.{path}.2", "dev", f"up{path}", "subflow"]
            far.ip("mptcp", "endpoint", "add", *endpoint)
        yield routed


@pytest.fixture
def routed6(far: Namespace, run_dir: Path) -> Iterator[Routed]:
    """The host has no address of IPv4."""
    with Routed(far, run_dir, four=False) as routed:
        routed.server.ip("mptcp", "limits", "set", "subflows", "8", "add_addr_accepted", "8")
        yield routed


@dataclass
class Pair:
    """A connection of a program on guise, and one of the same program on the host."""

    routed: Routed
    guise: Process
    host: Process

    def goes_on(self, number: int = 40) -> None:
        goes_on(self.guise, number)

    def uses(self, *paths: int) -> None:
        """Waits until guise has a subflow on just these."""
        these = {f"10.88.{path}.2" for path in paths}
        eventually(lambda: self.routed.subflows() == these, f"subflows on {these}")

    def counter(self, name: str) -> int:
        """Of guise's stack, as nstat calls it."""
        stack = str(self.routed.stack()["stack"])
        tool = self.routed.guise("exec", stack, "--", "nstat", "-asz", name)
        return int(tool.expect().text.split()[-2])


class Exchange:
    """Both, from their start to their end; each must be whole on guise."""

    def __init__(self, routed: Routed, what: str) -> None:
        self.routed = routed
        self.what = what

    def __enter__(self) -> Pair:
        routed = self.routed
        self.server = routed.server.start(PYTHON, program("both_ways.py"), "serve", PORT)
        wait_until_says(self.server, "ready")
        guise = routed.start(*EXCHANGE, "tcp", stdin=subprocess.PIPE)
        host = routed.far.start(*EXCHANGE, "mptcp", stdin=subprocess.PIPE)
        self.pair = Pair(routed, guise, host)
        return self.pair

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            if error is None:
                last = []
                for each in self.pair.guise, self.pair.host:
                    assert each.stdin
                    each.stdin.close()
                for each in self.pair.guise, self.pair.host:
                    try:
                        said = each.finish(200)
                        last.append((said.text.splitlines() or [said.errors[-200:]])[-1])
                    except AssertionError:
                        if each is self.pair.guise:
                            raise
                        last.append("not done")
                print(f"\n{self.what}: guise {last[0]}; the host's own MPTCP {last[1]}")
                said = self.pair.guise.said().expect()
                assert last[0].startswith("right"), said
        finally:
            self.pair.guise.__exit__(kind, error, trace)
            self.pair.host.__exit__(kind, error, trace)
            self.server.stop()


def test_loss_and_reordering_on_both_paths(routed: Routed) -> None:
    for path in 1, 2:
        routed.impair(path)
    with Exchange(routed, "1 % loss, reordering") as pair:
        pair.goes_on(5)
        pair.uses(1, 2)
        pair.goes_on(10)
        for path in 1, 2:
            eventually(functools.partial(routed.has_impaired, path), "packets are lost and late")


@slow
@pytest.mark.parametrize("path", [1, 2])
@pytest.mark.parametrize("told", [True, False], ids=["told", "untold"])
def test_a_path_with_a_small_mtu(routed: Routed, path: int, told: bool) -> None:
    """It becomes so on the way, in the middle of the connection. The router there says so by ICMP,
    which reaches the stack, or a firewall keeps that from both ends."""
    if not told:
        rule = "type filter hook output priority 0\nicmp type destination-unreachable drop\n"
        table = f"table inet untold {{\nchain out {{\n{rule}}}\n}}\n"
        routed.routers[path].run("nft", "-f", "-", stdin=table.encode()).expect()
    with Exchange(routed, f"MTU 1280 on path {path}, {'told' if told else 'untold'}") as pair:
        pair.goes_on()
        pair.uses(1, 2)
        routed.narrow(path)
        before = routed.carried(path)
        pair.goes_on(100)
        if told:
            eventually(lambda: routed.carried(path) > before + 1_000_000, "the path is used")
        assert (pair.counter("IcmpInDestUnreachs") > 0) == told


@slow
@pytest.mark.parametrize("path", [1, 2])
def test_a_path_that_swallows_everything_and_comes_back(routed: Routed, path: int) -> None:
    """That of the first subflow, or the other. No interface loses its carrier."""
    with Exchange(routed, f"path {path} swallows everything for a while") as pair:
        pair.goes_on()
        pair.uses(1, 2)
        routed.between(path, "counter drop")
        pair.goes_on(100)
        assert routed.states() == {"up1": "usable", "up2": "usable"}
        routed.between(path, "")
        before = routed.carried(path)
        eventually(lambda: routed.carried(path) > before + 1_000_000, "the path is used again")
        pair.goes_on()


def silent(routed: Routed) -> None:
    routed.between(1, "ct state invalid drop")


def resets(routed: Routed) -> None:
    routed.between(1, "ct state invalid meta l4proto tcp tcp flags ! rst reject with tcp reset")


@slow
@pytest.mark.parametrize("answer", [silent, resets])
def test_a_nat_that_forgets_its_connections(
    routed: Routed, answer: Callable[[Routed], None]
) -> None:
    """It is restarted: the packets of a connection that it did not see begin are dropped, or
    answered with a reset. A new connection works at once."""
    routed.translate(1)
    routed.takes_up(1, False)
    answer(routed)
    with Exchange(routed, f"a NAT forgets ({answer.__name__})") as pair:
        pair.goes_on()
        pair.uses(1, 2)
        routed.forget(1)
        pair.goes_on(100)
        again = routed.far.run(
            GUISE, "run", "--stack", str(routed.stack()["stack"]), "--",
            *EXCHANGE, "tcp", env=routed.environment(), stdin=b"",
        )  # fmt: skip
        assert again.expect().text.splitlines()[-1].startswith("right"), again


@slow
def test_nats_that_forget_and_take_up_what_goes_on(routed: Routed) -> None:
    """On both paths at once, ten times."""
    for path in 1, 2:
        routed.translate(path)
    with Exchange(routed, "two NATs forget ten times") as pair:
        pair.goes_on()
        pair.uses(1, 2)
        for _ in range(10):
            for path in 1, 2:
                routed.forget(path)
            pair.goes_on()


def test_a_firewall_that_strips_the_options(routed: Routed) -> None:
    """The connection is plain TCP from its first SYN on: none is sent again for that."""
    for path in 1, 2:
        routed.between(path, f"{IS_SYN} {STRIPS}")
    with Exchange(routed, "a firewall strips MPTCP's options") as pair:
        pair.goes_on(10)
        pair.uses(1)
        assert pair.counter("TcpExtTCPSynRetrans") == 0


@slow
def test_a_firewall_that_drops_syns_with_the_options(routed: Routed) -> None:
    """TCP is tried after the SYN was sent again."""
    for path in 1, 2:
        routed.between(path, f"{IS_SYN} tcp option mptcp exists drop")
    with Exchange(routed, "a firewall drops SYNs with MPTCP's options") as pair:
        pair.goes_on()
        pair.uses(1)


@slow
@pytest.mark.parametrize("path", [1, 2])
def test_a_firewall_that_begins_to_strip(routed: Routed, path: int) -> None:
    """From one path of a connection that uses both."""
    with Exchange(routed, f"a firewall begins to strip options on path {path}") as pair:
        pair.goes_on()
        pair.uses(1, 2)
        routed.between(path, f"tcp flags & syn == 0 {STRIPS}")
        pair.goes_on(20)


def test_paths_of_ipv6_alone(routed6: Routed) -> None:
    """One connection outlives what becomes of an interface, and what does not show on it."""
    routed = routed6
    serve = routed.server.start(PYTHON, program("both_ways.py"), "serve", PORT)
    exchange = [PYTHON, program("both_ways.py"), "exchange", SERVER6, PORT, "tcp"]
    with serve, routed.start(*exchange, stdin=subprocess.PIPE) as client:
        wait_until_says(serve, "ready")

        def uses(*these: str) -> None:
            addresses = {f"fd88:0:0:{each}" for each in these}
            eventually(lambda: routed.subflows() == addresses, f"subflows on {addresses}")
            goes_on(client)

        uses("1::2", "2::2")
        for path, other in (1, "2::2"), (2, "1::2"):
            routed.carrier(path, "down")
            routed.wait_until(**{f"up{path}": "lost"})
            uses(other)
            routed.carrier(path, "up")
            uses("1::2", "2::2")
        routed.no_address(1)
        uses("2::2")
        routed.address(1, 7)
        uses("1::7", "2::2")
        for path in 1, 2:
            routed.carrier(path, "down")
            routed.no_address(path)
        routed.wait_until(up1="lost", up2="lost")
        for path in 1, 2:
            routed.carrier(path, "up")
            routed.address(path, 9)
        uses("1::9", "2::9")
        for path in 1, 2:
            routed.between(path, "counter drop")
            goes_on(client, 100)
            assert routed.states() == {"up1": "usable", "up2": "usable"}
            routed.between(path, "")
            before = routed.carried(path)
            eventually(lambda p=path, b=before: routed.carried(p) > b + 1_000_000, "used again")  # type: ignore[misc]
        assert client.stdin
        client.stdin.close()
        assert client.finish(200).expect().text.splitlines()[-1].startswith("right")
