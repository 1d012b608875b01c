# SPDX-License-Identifier: GPL-2.0-only
"""Uplinks with addresses of their own, which their networks give: on each link is a dnsmasq, with
DHCP and DNS, of which the server's other links know nothing. What asks them has no rights."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from topology import apart, etc
from topology.namespace import Namespace
from topology.network import network
from topology.process import eventually
from topology.side import PYTHON
from topology.uplinks import PORT, SEND, SERVER, Uplinks, goes_on
from topology.user import User

OWN = ("up1,own", "up2,own")


@pytest.fixture
def own(far: Namespace, run_dir: Path, tmp_path: Path) -> Iterator[Uplinks]:
    with (
        # The host itself finds no name.
        etc.resolv_conf(far, "nameserver 127.0.0.9\noptions timeout:2 attempts:2\n"),
        Uplinks(far, run_dir) as uplinks,
        network(uplinks, 1, tmp_path),
        network(uplinks, 2, tmp_path),
    ):
        yield uplinks


@pytest.fixture
def own6(far: Namespace, run_dir: Path, tmp_path: Path) -> Iterator[Uplinks]:
    """Their networks have IPv6 alone, and the servers of names link-local addresses, the same."""
    with (
        etc.resolv_conf(far, "nameserver 127.0.0.9\noptions timeout:2 attempts:2\n"),
        Uplinks(far, run_dir) as uplinks,
        network(uplinks, 1, tmp_path, six=True),
        network(uplinks, 2, tmp_path, six=True),
    ):
        yield uplinks


def find(uplinks: Uplinks, name: str) -> str:
    """What a program on the stack finds, one that asks by itself."""
    stack = str(uplinks.stack()["stack"])
    dig = ["dig", "+short", "+time=2", "+tries=2", name]
    return uplinks.guise("exec", stack, "--", *dig).text.strip()


BY_TCP = """
import re, socket, sys
name = b"".join(bytes([len(p)]) + p.encode() for p in sys.argv[1].split(".")) + b"\\0"
query = b"\\x12\\x34\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0" + name + b"\\0\\1\\0\\1"
[server] = re.findall(r"^nameserver (\\S+\\.11)$", open("/etc/resolv.conf").read(), re.M)
with socket.create_connection((server, 53), 10) as s:
    s.sendall(len(query).to_bytes(2, "big") + query)
    answer = s.recv(4096)
print(socket.inet_ntoa(answer[-4:]))
"""


def find_by_tcp(uplinks: Uplinks, name: str) -> str:
    stack = str(uplinks.stack()["stack"])
    tool = uplinks.guise("exec", stack, "--", PYTHON, "-c", BY_TCP, name)
    return tool.expect().text.strip()


def test_name_servers_are_those_of_the_networks(own: Uplinks) -> None:
    """In the order of the uplinks, each over its link, and those of a lost one no more."""
    with own.start("sleep", "1000", options=OWN) as sleeper:
        eventually(lambda: own.guise("ls", "--json").text.count('"state"') >= 2, "it has begun")
        own.wait_until(up1="usable", up2="usable")
        assert find(own, "here.test") == "192.0.2.1"
        assert find_by_tcp(own, "here.test") == "192.0.2.1"
        stack = str(own.stack()["stack"])
        lookup = own.guise("exec", stack, "--", "getent", "ahostsv4", "here.test")
        assert lookup.expect().text.startswith("192.0.2.1 ")
        own.carrier(1, "down")
        own.wait_until(up1="lost")
        assert find(own, "here.test") == "192.0.2.2"
        assert find_by_tcp(own, "only2.test") == "192.0.2.9"
        own.carrier(1, "up")
        own.wait_until(up1="usable")
        eventually(lambda: find(own, "here.test") == "192.0.2.1", "the first one again")
        sleeper.stop()


def test_name_servers_of_ipv6_networks(own6: Uplinks) -> None:
    """Routers announce them; both are fe80::53, each on its link."""
    with own6.start("sleep", "1000", options=OWN) as sleeper:
        eventually(lambda: own6.guise("ls", "--json").text.count('"state"') >= 2, "it has begun")
        own6.wait_until(up1="usable", up2="usable")
        assert find(own6, "here.test") == "192.0.2.1"
        own6.carrier(1, "down")
        own6.wait_until(up1="lost")
        assert find(own6, "here.test") == "192.0.2.2"
        assert find_by_tcp(own6, "only2.test") == "192.0.2.9"
        sleeper.stop()


def test_addresses_are_given_back_when_the_stack_ends(own: Uplinks, tmp_path: Path) -> None:
    """However it ends; what the follower itself is killed with goes on with the same addresses."""

    def lent() -> list[str]:
        return [line for n in (1, 2) for line in (tmp_path / f"leases{n}").read_text().splitlines()]

    with own.start("sleep", "1000", options=OWN) as sleeper:
        eventually(lambda: own.far.processes("sleep"), "the program has begun")
        eventually(lambda: len(lent()) == 2, "each network has lent an address")
        own.wait_until(up1="usable", up2="usable")
        first = own.follower()
        os.kill(first, signal.SIGKILL)
        eventually(lambda: own.followers() not in ([], [first]), "it is started again")
        own.wait_until(up1="usable", up2="usable")
        assert len(lent()) == 2
        sleeper.stop()
    eventually(lambda: not lent(), "they are given back")


def test_with_an_uplink_that_is_shared_the_hosts_are_asked(own: Uplinks) -> None:
    with own.start("sleep", "1000", options=("up1,own", "up2")) as sleeper:
        eventually(lambda: own.guise("ls", "--json").text.count('"state"') >= 2, "it has begun")
        own.wait_until(up1="usable", up2="usable")
        assert "192.0.2." not in find(own, "here.test")
        sleeper.stop()


def without_rights(status: dict[str, str]) -> None:
    for what in "CapInh", "CapPrm", "CapEff", "CapAmb":
        assert int(status[what], 16) == 0, what
    assert status["NoNewPrivs"] == "1"
    assert status["Seccomp"] == "2"


def test_what_asks_the_networks_of_another_user_has_no_rights_either(
    far: Namespace, tmp_path: Path
) -> None:
    """That user has the capabilities that it takes, and is not root."""
    user = User(tmp_path / "home")
    rights = "+net_admin,+net_raw,+sys_admin,+mknod,+bpf"
    ids = [f"--reuid={user.id}", f"--regid={user.id}", "--clear-groups"]
    with Uplinks(far, user.home / "run") as uplinks, network(uplinks, 1, tmp_path):
        words = uplinks.words("sleep", "1000", options=("up1,own",))
        rights_and_ids = ["setpriv", *ids, f"--inh-caps={rights}", f"--ambient-caps={rights}"]
        with far.start(*rights_and_ids, *words, env=uplinks.environment()) as sleeper:
            eventually(lambda: far.processes("sleep"), "the program has begun")
            children = apart.of(uplinks.follower())
            assert len(children) == 1
            for status in children.values():
                assert status["Uid"].split() == [str(user.id)] * 4
                without_rights(status)
            sleeper.stop()


def test_what_asks_the_networks_has_no_rights_and_ends_with_the_follower(own: Uplinks) -> None:
    with own.serve(), own.start(*SEND, SERVER, PORT, options=OWN, stdin=subprocess.PIPE) as client:
        goes_on(client)
        own.wait_until(up1="usable", up2="usable")
        first = own.follower()
        children = apart.of(first)
        assert len(children) == 2
        for status in children.values():
            assert status["Uid"].split() == ["65534"] * 4
            assert status["Gid"].split() == ["65534"] * 4
            assert not status["Groups"].split()
            without_rights(status)
        # One that ends is started again, and the address stays.
        victim = min(children)
        os.kill(victim, signal.SIGKILL)
        eventually(lambda: len(apart.of(first).keys() - {victim}) == 2, "another one asks")
        assert own.states() == {"up1": "usable", "up2": "usable"}
        goes_on(client)
        children = apart.of(first)
        os.kill(first, signal.SIGKILL)
        eventually(lambda: not apart.every().keys() & children.keys(), "they end with the follower")
        eventually(lambda: own.far.processes("guise"), "another one follows")
        goes_on(client)
        eventually(lambda: len(apart.of(own.follower())) == 2, "the networks are asked again")
        own.wait_until(up1="usable", up2="usable")
        assert client.stdin
        client.stdin.close()
        assert client.finish().expect().text.splitlines()[-1] == "right"
    eventually(lambda: not apart.of(first), "nothing is left")
