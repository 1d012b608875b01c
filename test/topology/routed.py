# SPDX-License-Identifier: GPL-2.0-only
"""A host with several ways to one server, each through a router of its own, which a test spoils.

    far: the host ──up1── inside router1 outside ══ guise path ══ s1── server: 10.99.0.1
                  ──up2── inside router2 outside ══ guise path ══ s2──
                10.88.N.0/24             10.89.N.0/24
                fd88:0:0:N::/64          fd89:0:0:N::/64

The router is .1 and ::1 of both networks, and the server .2 and ::2 of its one. What is done to a
path is done in the router: no interface of the host changes in any way, unless the router's end of
its cable goes down."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
from pathlib import Path

from topology.namespace import Namespace
from topology.process import Process
from topology.side import GUISE, wait_until_says
from topology.uplinks import Uplinks

# What each path carries in each direction.
SHAPE = ("--rate", "20mbit", "--delay", "5ms")
NETLINK_NETFILTER, FLUSH_CONNECTIONS = 12, 1 << 8 | 2  # IPCTNL_MSG_CT_DELETE, of all


class Routed(Uplinks):
    """As a context, all of it ends with the test."""

    def __init__(self, far: Namespace, run_dir: Path, *, four: bool = True) -> None:
        self.routers: dict[int, Namespace] = {}
        self._wires = contextlib.ExitStack()
        self._wires_run_dir = run_dir.parent / "wires"
        try:
            super().__init__(far, run_dir, four=four)
        except BaseException:
            self._wires.close()
            raise

    def __exit__(self, *raised: object) -> None:
        self._wires.close()
        super().__exit__(*raised)

    def plug(self, path: int, host: int = 2) -> None:
        router = self._wires.enter_context(Namespace(f"router{path}"))
        self.routers[path] = router
        with router.entered():
            # Of both families: a link that comes later takes it over.
            for key in (
                "ipv4/ip_forward",
                "ipv6/conf/all/forwarding",
                "ipv6/conf/all/keep_addr_on_down",
            ):
                Path(f"/proc/sys/net/{key}").write_text("1", encoding="ascii")
        up = f"up{path}"
        ends = ["type", "veth", "peer", "name", "inside", "netns", router.name]
        self.far.ip("link", "add", up, *ends)
        router.ip("address", "add", f"10.88.{path}.1/24", "dev", "inside")
        router.ip("address", "add", f"fd88:0:0:{path}::1/64", "dev", "inside", "nodad")
        router.ip("link", "set", "inside", "up")
        self.far.ip("link", "set", up, "up")
        ends = [f"{router.name}:outside,ip=10.89.{path}.1/24"]
        ends += [f"{self.server.name}:s{path},ip=10.89.{path}.2/24"]
        wire = Process(
            [str(GUISE), "path", "--memory", "64M", *SHAPE, *ends],
            env={"GUISE_RUNDIR": str(self._wires_run_dir / str(path))},
        )
        self._wires.enter_context(wire)
        wait_until_says(wire, "ready")
        # What the router sees are packets of the path's size.
        for end, name in ((self.far, up), (self.server, f"s{path}")):
            end.run("ethtool", "-K", name, "tso", "off").expect()
        router.ip("route", "add", "default", "via", f"10.89.{path}.2")
        self.server.ip("route", "add", f"10.88.{path}.0/24", "via", f"10.89.{path}.1")
        near, away = f"fd89:0:0:{path}::1", f"fd89:0:0:{path}::2"
        router.ip("address", "add", f"{near}/64", "dev", "outside", "nodad")
        self.server.ip("address", "add", f"{away}/64", "dev", f"s{path}", "nodad")
        router.ip("-6", "route", "add", "default", "via", away)
        self.server.ip("-6", "route", "add", f"fd88:0:0:{path}::/64", "via", near)
        self.address(path, host)

    def carrier(self, path: int, state: str) -> None:
        """Of the host's interface."""
        self.routers[path].ip("link", "set", "inside", state)

    def impair(self, path: int) -> None:
        """Both directions lose 1 % of the packets, and 4 % are overtaken by others: they wait in a
        class of their own, which is slow. (Not every host's kernel has netem.)"""
        router = self.routers[path]
        classes = {"1:1": "rate 1gbit", "1:2": "rate 1mbit burst 1600 cburst 1600"}
        for name in "inside", "outside":
            tool = ["tc", "qdisc", "add", "dev", name, "root", "handle", "1:"]
            router.run(*tool, "htb", "default", "1").expect()
            for number, rate in classes.items():
                tool = ["tc", "class", "add", "dev", name, "parent", "1:", "classid", number]
                router.run(*tool, "htb", *rate.split()).expect()
        self.between(
            path,
            "numgen random mod 100 < 1 counter drop\n"
            "numgen random mod 100 < 4 counter meta priority set 1:2",
        )

    def has_impaired(self, path: int) -> bool:
        listing = self.routers[path].run("nft", "list", "table", "inet", "between").expect().text
        return "counter" in listing and "counter packets 0 " not in listing

    def between(self, path: int, rules: str) -> None:
        """The router's firewall obeys these, in place of those it had."""
        chain = f"type filter hook forward priority 0\n{rules}\n"
        table = f"table inet between {{\nchain forward {{\n{chain}}}\n}}\n"
        ruleset = f"table inet between\ndelete table inet between\n{table}"
        self.routers[path].run("nft", "-f", "-", stdin=ruleset.encode()).expect()

    def narrow(self, path: int) -> None:
        """The router sends no packet of more than 1280 bytes on, though both its networks take
        larger ones."""
        router = self.routers[path]
        router.ip("route", "replace", "default", "via", f"10.89.{path}.2", "mtu", "1280")
        network = [f"10.88.{path}.0/24", "dev", "inside", "proto", "kernel", "scope", "link"]
        router.ip("route", "replace", *network, "src", f"10.88.{path}.1", "mtu", "1280")

    def translate(self, path: int) -> None:
        """The router is a NAT, and takes nothing from outside for itself."""
        out = 'type nat hook postrouting priority 100\noifname "outside" masquerade\n'
        own = 'type filter hook input priority 0\niifname "outside" meta l4proto tcp drop\n'
        ruleset = f"table ip nat {{\nchain out {{\n{out}}}\nchain own {{\n{own}}}\n}}\n"
        self.routers[path].run("nft", "-f", "-", stdin=ruleset.encode()).expect()

    def takes_up(self, path: int, whether: bool) -> None:
        """Whether the router's NAT takes up connections that it did not see begin."""
        with self.routers[path].entered():
            key = Path("/proc/sys/net/netfilter/nf_conntrack_tcp_loose")
            key.write_text("1" if whether else "0", encoding="ascii")

    def forget(self, path: int) -> None:
        """The router knows no connection any more, as `conntrack -F` does it."""
        family = struct.pack("BBH", socket.AF_INET, 0, 0)
        request = struct.pack("=IHHII", 16 + len(family), FLUSH_CONNECTIONS, 5, 1, 0) + family
        with self.routers[path].entered():
            asked = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER)
        with asked:
            asked.bind((0, 0))
            asked.send(request)
            [error] = struct.unpack_from("=i", asked.recv(4096), 16)
        assert error == 0, error

    def carried(self, path: int) -> int:
        """Bytes that the router has sent to the server."""
        listing = self.routers[path].ip("-json", "-statistics", "link", "show", "outside")
        [link] = json.loads(listing)
        return int(link["stats64"]["tx"]["bytes"])
