# SPDX-License-Identifier: GPL-2.0-only
"""Uplinks: interfaces of the host that are the paths of a stack (guise run --uplink), and what
becomes of its connections when something becomes of them. The host is the namespace far; the
server, behind two cables, has MPTCP by the host's own kernel (topology/uplinks.py)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from topology.leftovers import Leftovers
from topology.namespace import Namespace, Word
from topology.process import eventually
from topology.side import GUISE, wait_until_says
from topology.uplinks import (
    FAULTS,
    PORT,
    SEND,
    SERVER,
    SERVER6,
    Transfer,
    Uplinks,
    goes_on,
    uses_both,
)

pytestmark = pytest.mark.skipif(
    not Path("/proc/sys/net/mptcp/enabled").exists(), reason="the host's kernel has no MPTCP"
)


@pytest.fixture
def uplinks(far: Namespace, run_dir: Path) -> Iterator[Uplinks]:
    with Uplinks(far, run_dir) as uplinks:
        leftovers = Leftovers(far, run_dir)
        yield uplinks
        # The interfaces are the test's own.
        leftovers.interfaces |= {"up1", "up2", "up3"}
        leftovers.sysctls = {
            k: v for k, v in leftovers.sysctls.items() if "/conf/" not in k and "/neigh/" not in k
        }
        # nft fails while the kernel removes a table that it lists.
        eventually(lambda: not far.processes("guise-holder"), "the holder has ended")
        leftovers.wait_until_none()


@pytest.mark.parametrize("address", [SERVER, SERVER6])
def test_a_connection_uses_both(uplinks: Uplinks, address: str) -> None:
    uses_both(uplinks, address)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_path_that_is_lost_and_comes_back(
    uplinks: Uplinks, fault: Callable[[Uplinks], Callable[[], None]]
) -> None:
    """A connection that began on it goes on over the other one, and then uses both again. A new
    connection works while it is gone."""
    with Transfer(uplinks) as client:
        eventually(lambda: len(uplinks.subflows()) == 2, "a subflow on each path")
        mend = fault(uplinks)
        uplinks.wait_until(up1="lost", up2="usable")
        assert uplinks.subflows() <= {"10.88.2.2"}
        goes_on(client)
        stack = str(uplinks.stack()["stack"])
        new = uplinks.far.run(
            GUISE, "run", "--stack", stack, "--", *SEND, SERVER, PORT,
            env=uplinks.environment(), stdin=b"",
        )  # fmt: skip
        assert new.expect().text.splitlines()[-1] == "right"
        mend()
        uplinks.wait_until(up1="usable", up2="usable")
        eventually(lambda: len(uplinks.subflows()) == 2, "a subflow on each path again")
        goes_on(client)


def test_both_gone_and_back_with_new_addresses(uplinks: Uplinks) -> None:
    with Transfer(uplinks) as client:
        eventually(lambda: len(uplinks.subflows()) == 2, "a subflow on each path")
        for path in 1, 2:
            uplinks.carrier(path, "down")
            uplinks.no_address(path)
        uplinks.wait_until(up1="lost", up2="lost")
        for path in 1, 2:
            uplinks.carrier(path, "up")
            uplinks.address(path, 9)
        uplinks.wait_until(up1="usable", up2="usable")
        goes_on(client)
        eventually(
            lambda: uplinks.subflows() == {"10.88.1.9", "10.88.2.9"}, "a subflow on each path again"
        )
        goes_on(client)


def test_a_path_with_an_address_of_its_own(uplinks: Uplinks) -> None:
    """Beside the host's interface, which the host goes on using; it is followed as well."""
    own = "up1,address=10.88.1.77/24,gateway=10.88.1.1"
    with Transfer(uplinks, SERVER, own, "up2") as client:
        both = {"10.88.1.77", "10.88.2.2"}
        eventually(lambda: uplinks.subflows() == both, "a subflow on each path")
        uplinks.far.run("ping", "-c", "1", "-W", "5", "10.88.1.1").expect()
        uplinks.carrier(1, "down")
        uplinks.wait_until(up1="lost", up2="usable")
        goes_on(client)
        uplinks.carrier(1, "up")
        uplinks.wait_until(up1="usable")
        eventually(lambda: uplinks.subflows() == both, "a subflow on each path again")
        old = uplinks.follower()
        os.kill(old, signal.SIGKILL)
        eventually(lambda: client.said().errors.count("is started again") == 1, "it is missed")
        eventually(lambda: uplinks.far.processes("guise"), "another one follows")
        goes_on(client)
        uplinks.carrier(2, "down")
        uplinks.wait_until(up1="usable", up2="lost")
        goes_on(client)
        uplinks.carrier(2, "up")
        uplinks.wait_until(up1="usable", up2="usable")


def test_a_path_that_is_not_there_at_the_start_comes_later(uplinks: Uplinks) -> None:
    with Transfer(uplinks, SERVER, "up3", "up2") as client:
        assert "up3: there is no such interface" in client.said().errors
        uplinks.plug(3)
        uplinks.wait_until(up3="usable")
        eventually(lambda: uplinks.subflows() == {"10.88.2.2", "10.88.3.2"}, "the new path is used")
        goes_on(client)


def test_the_follower_is_started_again(uplinks: Uplinks) -> None:
    """Its death resets no connection: meanwhile the host does not see the stack's packets."""
    with Transfer(uplinks) as client:
        old = uplinks.follower()
        os.kill(old, signal.SIGKILL)
        eventually(lambda: uplinks.followers() not in ([], [old]), "another one follows")
        goes_on(client)
        uplinks.carrier(1, "down")
        uplinks.wait_until(up1="lost", up2="usable")
        uplinks.carrier(1, "up")
        uplinks.wait_until(up1="usable", up2="usable")
        goes_on(client)
        assert client.said().errors.count("is started again") == 1


def has(uplinks: Uplinks) -> dict[str, object]:
    """What could leak: of the stack, and of the follower."""
    stack = str(uplinks.stack()["stack"])
    shown = (
        "ip -o address; ip route show table all; ip -6 route show table all; ip rule; ip -6 rule"
    )
    tool = uplinks.guise("exec", stack, "--", "sh", "-c", f"{shown}; ip mptcp endpoint")
    # Numbers of interfaces and of endpoints grow; times run.
    words = [word for word in tool.expect().text.split() if not word.isdigit()]
    return {
        "stack": sorted(word for word in words if not word.endswith((":", "sec"))),
        "descriptors": len(os.listdir(f"/proc/{uplinks.follower()}/fd")),
        "subflows": uplinks.subflows(),
        "tables": uplinks.far.tables(),
    }


@pytest.mark.slow
def test_a_path_that_flaps_a_hundred_times_leaks_nothing(uplinks: Uplinks) -> None:
    with Transfer(uplinks) as client:
        eventually(lambda: len(uplinks.subflows()) == 2, "a subflow on each path")
        before = has(uplinks)
        for number in range(100):
            uplinks.carrier(1, "down")
            if number % 10 == 0:
                uplinks.wait_until(up1="lost")
            uplinks.carrier(1, "up")
            if number % 10 == 5:
                uplinks.wait_until(up1="usable")
        uplinks.wait_until(up1="usable", up2="usable")
        eventually(lambda: has(uplinks) == before, f"what there was before: {before}")
        goes_on(client)


@pytest.mark.parametrize("which", ["warden", "carrier"])
def test_a_killed_holder_leaves_nothing(uplinks: Uplinks, which: str) -> None:
    with uplinks.serve(), uplinks.start(*SEND, SERVER, PORT, stdin=subprocess.PIPE) as client:
        goes_on(client)
        reserved = "/proc/sys/net/ipv4/ip_local_reserved_ports"
        assert uplinks.far.run("cat", reserved).text.strip()
        holder = uplinks.stack()["holder"]
        assert isinstance(holder, int)
        children = (
            Path(f"/proc/{holder}/task/{holder}/children").read_text(encoding="ascii").split()
        )
        warden = int(
            Path(f"/proc/{holder}/stat").read_text(encoding="ascii").split(")")[1].split()[1]
        )
        victims = {holder, *map(int, children), warden} & set(uplinks.far.processes("guise-holder"))
        by_age = sorted(victims)
        os.kill(by_age[0] if which == "warden" else by_age[-1], signal.SIGKILL)
        eventually(
            lambda: (
                not uplinks.far.processes("guise-holder") and not uplinks.far.processes("guise")
            ),
            "holder and follower have ended",
        )
    uplinks.guise("ls").expect()
    assert not uplinks.far.run("cat", reserved).text.strip()


def test_the_host_keeps_its_own_connections(uplinks: Uplinks) -> None:
    """The address is shared: the host's programs use it meanwhile, and neither answers for the
    other."""
    with Transfer(uplinks) as client:
        own = uplinks.far.start(*SEND, SERVER, PORT, stdin=subprocess.PIPE)
        with own:
            goes_on(own)
            goes_on(client)
            assert own.stdin
            own.stdin.close()
            assert own.finish().expect().text.splitlines()[-1] == "right"
        resets = uplinks.far.run("nstat", "-asz", "TcpOutRsts").expect().text.split("TcpOutRsts")[1]
        assert resets.split()[0] == "0"


def test_a_preferred_path_and_a_budget(uplinks: Uplinks) -> None:
    """All others are backup; and so is the preferred one when its budget is spent."""
    with uplinks.serve():
        paths = ["--uplink", "up1", "--uplink", "up2", "--prefer", "up2", "--budget", "up2=5MB"]
        command: list[Word] = [GUISE, "run", "--mptcp", *paths, "--", *SEND, SERVER, PORT]
        with uplinks.far.start(
            *command, env=uplinks.environment(), stdin=subprocess.PIPE
        ) as client:
            goes_on(client)

            def backup() -> dict[str, bool]:
                stack = str(uplinks.stack()["stack"])
                tool = uplinks.guise("exec", stack, "--", "ip", "-json", "mptcp", "endpoint")
                return {e["address"]: "backup" in e for e in json.loads(tool.expect().text)}

            assert backup()["10.88.1.2"]
            eventually(lambda: backup()["10.88.2.2"], "its budget is spent")
            goes_on(client)


def test_ports_are_had_by_one_stack_after_the_other(uplinks: Uplinks) -> None:
    """A program ends a moment before its stack, which gives the ports back."""
    for _ in range(3):
        uplinks.run("true", options=("up1,ports=61000-65535", "up2")).expect()


def test_the_paths_are_checked(uplinks: Uplinks) -> None:
    with uplinks.server.start(GUISE, "check-mptcp", "--host", "--serve", PORT) as server:
        wait_until_says(server, "listening")
        paths = ["--uplink", "up1", "--uplink", "up2"]
        checked = uplinks.guise("check-mptcp", *paths, f"{SERVER}:{PORT}").expect()
    assert "Multipath TCP end to end, over 2 paths" in checked.text, checked


BAD = {
    "a name with an error in it": (["--uplink", "up11"], "did you mean up1"),
    "an uplink that is down": (["--uplink", "down0"], "ip link set down0 up"),
    "one without an address": (["--uplink", "bare0"], "it has no address"),
    "lo": (["--uplink", "lo"], "leads to no network"),
    "a port of a bridge": (["--uplink", "port0"], "port of a bridge"),
    "one that is named twice": (["--uplink", "up1", "--uplink", "up1"], "named twice"),
    "nine": ([w for i in range(9) for w in ("--uplink", f"x{i}")], "at most 8"),
    "ports that overlap": (["--uplink", "up1,ports=61000-65535,62000"], "overlap"),
    "other ports": (
        ["--uplink", "up1,ports=61000-62000", "--uplink", "up2,ports=62001-63000"],
        "same ports",
    ),
    "ports without room": (["--uplink", "up1,ports=8080"], "at least"),
    "two endpoints with one address": (
        ["--uplink", "up1,address=10.88.1.9/24", "--uplink", "up2,address=10.88.1.9/24"],
        "one address",
    ),
    "the host's address": (["--uplink", "up1,address=10.88.1.2/24"], "the host has the address"),
    "a link beside it": (["--uplink", "up1", "--link", "tap"], "in place of them"),
    "an unknown option": (["--uplink", "up1,exklusive"], "did you mean exclusive"),
    "two ways": (["--uplink", "up1,own,exclusive"], "exclude each other"),
    "a preferred one that is none": (["--uplink", "up1", "--prefer", "up2"], "valid are up1"),
    "a budget of nothing": (["--uplink", "up1", "--budget", "up1=much"], "is no size"),
}


@pytest.mark.parametrize("what", BAD)
def test_what_cannot_be_is_an_error_before_anything_is_made(uplinks: Uplinks, what: str) -> None:
    flags, part = BAD[what]
    far = uplinks.far
    for name in "down0", "bare0", "port0":
        far.ip("link", "add", name, "type", "veth", "peer", "name", f"{name}x")
        far.ip("link", "set", f"{name}x", "up")
    for name in "bare0", "port0":
        far.ip("link", "set", name, "up")
    far.ip("link", "add", "bridge0", "type", "bridge")
    far.ip("link", "set", "port0", "master", "bridge0")
    ended = far.run(GUISE, "run", *flags, "--", "true", env=uplinks.environment())
    assert ended.status == 2, ended
    assert part in ended.errors, ended
    assert not uplinks.run_dir.exists()
    for name in "down0", "bare0", "port0", "bridge0":
        far.ip("link", "delete", name)


@pytest.mark.parametrize("path", [1, 2])
def test_a_path_that_was_lost_while_the_follower_was_killed(uplinks: Uplinks, path: int) -> None:
    """When it is back it is joined, and new connections use both."""
    both = {"10.88.1.2", "10.88.2.2"}
    with Transfer(uplinks) as client:
        eventually(lambda: uplinks.subflows() == both, "a subflow on each path")
        uplinks.carrier(path, "down")
        uplinks.wait_until(**{f"up{path}": "lost"})
        before = uplinks.far.tables()
        os.kill(uplinks.follower(), signal.SIGKILL)
        eventually(lambda: client.said().errors.count("is started again") == 1, "it is missed")
        # Each link has a table on the host, of another name.
        replaced = lambda: len(uplinks.far.tables() & before) == 1  # noqa: E731
        eventually(replaced, "another one follows, and has replaced the link that is left")
        goes_on(client)
        uplinks.carrier(path, "up")
        uplinks.wait_until(up1="usable", up2="usable")
        eventually(lambda: uplinks.subflows() == both, "a subflow on each path again")
        goes_on(client)
        stack = str(uplinks.stack()["stack"])
        new = uplinks.far.start(
            GUISE, "run", "--stack", stack, "--", *SEND, SERVER, PORT,
            env=uplinks.environment(), stdin=subprocess.PIPE,
        )  # fmt: skip
        with new:
            goes_on(new)
            eventually(lambda: len(connections(uplinks)) == 4, "two subflows of each connection")
            assert new.stdin
            new.stdin.close()
            assert new.finish().expect().text.splitlines()[-1] == "right"


def connections(uplinks: Uplinks) -> list[str]:
    """The stack's TCP connections to the server."""
    stack = str(uplinks.stack()["stack"])
    tool = uplinks.guise("exec", stack, "--", "ss", "-Hnt", "state", "established")
    return [
        line for line in tool.expect().text.splitlines() if line.split()[3].endswith(f":{PORT}")
    ]
