# SPDX-License-Identifier: GPL-2.0-only
"""guise exec STACK -- TOOL on a stack with a tap, beside the tool on the host behind a cable."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from topology.leftovers import Leftovers
from topology.namespace import Namespace, Word
from topology.process import Finished, Process, eventually
from topology.side import PYTHON, GuiseSide, HostSide

CONFIG = """
name = "web"
[[link]]
kind = "tap"
addresses = ["10.77.2.2/24", "fd77:0:0:2::2/64"]
gateways = ["10.77.2.1", "fd77:0:0:2::1"]
"""


class Live:
    """Either of the two: where tools run, and what its interface is called."""

    def __init__(self, host: HostSide | None, guise: GuiseSide) -> None:
        self.host, self.guise = host, guise
        side = host or guise
        self.peer, self.peer6 = side.peer, side.peer6
        self.device = "cable" if host else "eth0"

    def run(self, *words: Word) -> Finished:
        if self.host:
            return self.host.run(*words)
        return self.guise.call("exec", "web", "--", *words)

    def start(self, *words: Word) -> Process:
        if self.host:
            return self.host.start(*words)
        command = self.guise.command("exec", "web", "--", *words)
        return self.guise.far.start(*command, env=self.guise.environment())


@pytest.fixture
def router(far: Namespace, host: HostSide, leftovers: Leftovers) -> Iterator[Namespace]:
    """Another namespace, with far as the router on the way to it: before guise comes, which lets
    nobody else use forwarding that is its own."""
    with beyond(far, host.near) as there:
        leftovers.look()
        yield there
        far.ip("link", "delete", "on")


@pytest.fixture
def both(host: HostSide, guise: GuiseSide, tmp_path: Path) -> Iterator[list[Live]]:
    host.near.ip("link", "set", "lo", "up")
    path = tmp_path / "web.toml"
    path.write_text(CONFIG)
    guise.call("up", path).expect()
    yield [Live(host, guise), Live(None, guise)]
    guise.call("down", "web").expect()


def beyond(far: Namespace, near: Namespace) -> Namespace:
    there = Namespace("beyond")
    far.ip("link", "add", "on", "type", "veth", "peer", "name", "cable", "netns", there.name)
    for end, device, number in ((far, "on", 1), (there, "cable", 2)):
        end.ip("address", "add", f"10.77.9.{number}/24", "dev", device)
        end.ip("address", "add", f"fd77:0:0:9::{number}/64", "dev", device, "nodad")
        end.ip("link", "set", device, "up")
    there.ip("route", "add", "default", "via", "10.77.9.1")
    there.ip("route", "add", "default", "via", "fd77:0:0:9::1")
    near.ip("route", "add", "default", "via", "10.77.1.1")
    near.ip("route", "add", "default", "via", "fd77:0:0:1::1")
    for key in ("ipv4.ip_forward", "ipv6.conf.all.forwarding"):
        far.run("sysctl", "-qw", f"net.{key}=1").expect()
    return there


def test_traceroute_finds_the_router_and_what_is_behind_it(
    router: Namespace, both: list[Live]
) -> None:
    for how in (["-4"], ["-4", "-I"], ["-4", "-T"], ["-6"], ["-6", "-I"]):
        to = "10.77.9.2" if "-4" in how else "fd77:0:0:9::2"
        for live in both:
            first = live.peer if "-4" in how else live.peer6
            done = live.run("traceroute", *how, "-n", "-q1", "-w9", "-m3", to).expect()
            hops = [line.split()[:2] for line in done.text.splitlines()[1:]]
            assert hops == [["1", first], ["2", to]], (live.device, done)


SPEAK = """
import socket
MPTCP = 262
with socket.socket(socket.AF_INET, socket.SOCK_STREAM, MPTCP) as listener:
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, MPTCP) as there:
        there.connect(listener.getsockname())
        here, _ = listener.accept()
        with here:
            there.sendall(b"x")
            here.recv(1)
"""


def test_the_monitor_of_mptcp_tells_of_each_connection(both: list[Live]) -> None:
    for live in both:
        if live.host and live.run("sysctl", "-n", "net.mptcp.enabled").text != "1\n":
            continue  # a host without Multipath TCP has nothing to compare with
        with live.start("ip", "mptcp", "monitor") as monitor:

            def told(live: Live = live, monitor: Process = monitor) -> bool:
                live.run(PYTHON, "-c", SPEAK).expect()
                events: dict[str, list[str]] = {}
                for event, token in re.findall(r"\[ *(\w+)\] token=(\w+)", monitor.said().text):
                    events.setdefault(token, []).append(event)
                return ["CREATED", "ESTABLISHED", "CLOSED"] in events.values()

            eventually(told, "a connection is made, is there, and ends")


def test_ethtool_shows_and_changes_the_interface(both: list[Live]) -> None:
    for live in both:
        assert "Link detected: yes" in live.run("ethtool", live.device).expect().text
        features = []
        for value in ("on", "off"):
            live.run("ethtool", "-K", live.device, "tso", value).expect()
            text = live.run("ethtool", "-k", live.device).expect().text
            features += re.findall(r"^tcp-segmentation-offload: (\w+)", text, re.M)
        assert features == ["on", "off"], live.device
        wrong = live.run("ethtool", "nosuch")
        assert wrong.status and "No such device" in wrong.errors


def test_ss_tells_of_a_connection_to_the_wire(far: Namespace, both: list[Live]) -> None:
    hold = (
        "import socket, sys\n"
        "with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as s:\n"
        "    s.sendall(bytes(1000))\n"
        "    print('there', flush=True)\n"
        "    s.recv(1)\n"
    )
    for live in both:
        with far.socket() as server, ExitStack() as ends:
            server.bind(("0.0.0.0", 0))
            server.listen()
            port = str(server.getsockname()[1])
            client = ends.enter_context(live.start(PYTHON, "-c", hold, live.peer, port))
            peer, _ = server.accept()
            with peer:
                assert peer.recv(1)
                words: list[Word] = ["ss", "-tinpH", "dst", f"{live.peer}:{port}"]

                def acknowledged(live: Live = live, words: list[Word] = words) -> str:
                    text = live.run(*words).expect().text
                    return text if "bytes_acked:1001" in text else ""

                text = eventually(acknowledged, "what was sent is acknowledged")
                assert f'users:(("python3",pid={client.pid},' in text
                for word in ("rto:", "rtt:", "mss:1448", "cwnd:", "segs_out:"):
                    assert word in text, (live.device, text)
            client.finish()
