# SPDX-License-Identifier: GPL-2.0-only
"""A stack that has the host's own address: ports say whose a packet is, and none is processed
twice."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from topology.holders import carrier_of, wardens
from topology.leftovers import Leftovers
from topology.namespace import Namespace
from topology.process import Process, eventually
from topology.shared import PacketSide, counters, modem
from topology.side import PYTHON, HostSide, program, wait_until_says

TABLE = "netdev guise_"


@pytest.fixture
def near(host: HostSide) -> Namespace:
    return host.near


@pytest.fixture
def shared(far: Namespace, near: Namespace, run_dir: Path, leftovers: Leftovers) -> PacketSide:
    """A stack that has far's addresses on the cable, as far has them."""
    leftovers.look()
    return PacketSide(far, run_dir, "--link", "packet:cable,ports=auto")


@contextlib.contextmanager
def running(side: PacketSide, *options: str) -> Iterator[Process]:
    """A stack that waits."""
    with side.start("sh", "-c", "echo up; cat", options=options, stdin=subprocess.PIPE) as stack:
        wait_until_says(stack, "up")
        yield stack
        assert stack.stdin
        stack.stdin.close()
        stack.finish().expect()


def reserved(far: Namespace) -> str:
    with far.entered():
        path = Path("/proc/sys/net/ipv4/ip_local_reserved_ports")
        return path.read_text(encoding="ascii").strip()


@contextlib.contextmanager
def server(where: PacketSide, near: Namespace) -> Iterator[None]:
    """What near sends back."""
    words = [PYTHON, program("connections.py"), "serve", "::", "7000"]
    with near.start(*words, stdin=subprocess.PIPE) as echo:
        wait_until_says(echo, "ready")
        assert where.far.reaches(where.peer, 7000)
        yield


def client(where: PacketSide, what: str, number: int) -> list[str]:
    return [PYTHON, program("connections.py"), what, where.peer, "7000", str(number)]


def test_both_load_one_server_from_one_address_and_neither_resets_the_other(
    shared: PacketSide, near: Namespace
) -> None:
    """2,000 connections, and 1 GB in both directions, from four programs at once: two on the host,
    and two on stacks."""
    with server(shared, near):
        before = counters(shared.far), counters(near)
        programs = [
            start(*client(shared, what, number))
            for start in (shared.far.start, shared.start)
            for what, number in (("make", 1000), ("bulk", 250))
        ]
        for started in programs:
            done = started.finish(300).expect()
            assert done.text in ("1000 whole, 0 failed\n", "250 MB whole\n"), done
        theirs, ours = counters(near), counters(shared.far)
        for name in ("Tcp.OutRsts", "Tcp.InErrs", "Tcp.EstabResets", "Tcp.AttemptFails"):
            # The server itself may answer a repeated segment after its connection is closed.
            if name != "Tcp.OutRsts":
                assert theirs[name] == before[1][name], (name, before[1][name], theirs[name])
            assert ours[name] == before[0][name], (name, before[0][name], ours[name])


def test_the_host_does_not_process_what_is_the_stacks(shared: PacketSide, near: Namespace) -> None:
    """Not a segment, and not a datagram: it hides them as they come."""
    with server(shared, near), running(shared):
        before = counters(shared.far)
        for what, number, said in (("bulk", 25, "25 MB whole"), ("make", 50, "50 whole, 0 failed")):
            assert said in shared.run(*client(shared, what, number)).expect().text
        shared.run("ping", "-c3", "-i0.1", "-W30", shared.peer).expect()
        now = counters(shared.far)
        for name in ("Tcp.InSegs", "Tcp.OutRsts", "Ip.InReceives", "Icmp.InMsgs", "Icmp.OutMsgs"):
            assert now[name] == before[name], (name, before[name], now[name])


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_pings_datagrams_and_errors_reach_the_one_that_they_are_for(
    shared: PacketSide, near: Namespace, family: socket.AddressFamily
) -> None:
    """A datagram to a port where nobody is: the error is its sender's. Both stacks ask at once."""
    own, peer = shared.of_family(family)
    assert own in (shared.address, shared.address6)
    script = (
        "import socket\n"
        f"s = socket.socket({int(family)}, socket.SOCK_DGRAM)\n"
        f"s.settimeout(30); s.connect(({peer!r}, 9)); s.send(b'x')\n"
        "try: s.recv(1)\n"
        "except ConnectionRefusedError: print('refused', s.getsockname()[1])\n"
    )
    with running(shared):
        for where in (shared.far.run, shared.run):
            done = where(PYTHON, "-c", script).expect()
            assert done.text.startswith("refused"), done
            where("ping", "-c3", "-i0.1", "-W30", peer).expect()
    before = counters(shared.far)
    shared.run(PYTHON, "-c", script).expect()
    now = counters(shared.far)
    assert now["Icmp.InErrors"] == before["Icmp.InErrors"]


def test_fragments_reach_both_and_the_host_reports_none(
    shared: PacketSide, near: Namespace
) -> None:
    """Datagrams larger than the MTU, there and back. The later fragments of the stack's reach the
    host as well, which forgets them without a word."""
    with shared.far.entered():
        Path("/proc/sys/net/ipv4/ipfrag_time").write_text("1", encoding="ascii")
    server = near.socket(kind=socket.SOCK_DGRAM)
    server.bind((shared.peer, 9001))
    script = (
        "import socket\n"
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(30)\n"
        f"for i in range(5):\n    s.sendto(bytes([i]) * 6000, ({shared.peer!r}, 9001))\n"
        "    assert s.recv(9000) == bytes([i]) * 6000\n"
        "print('all')\n"
    )
    before = counters(shared.far)
    with server, running(shared):
        sides = [shared.far.start(PYTHON, "-c", script), shared.start(PYTHON, "-c", script)]
        for _ in range(10):
            said, sender = server.recvfrom(9000)
            server.sendto(said, sender)
        for side in sides:
            assert "all" in side.finish().expect().text
        eventually(
            lambda: counters(shared.far)["Ip.ReasmTimeout"] > before["Ip.ReasmTimeout"],
            "the host has forgotten fragments of the stack's",
        )
        now = counters(shared.far)
    assert now["Ip.ReasmOKs"] == before["Ip.ReasmOKs"] + 5
    assert now["Icmp.OutMsgs"] == before["Icmp.OutMsgs"]
    with shared.far.entered():
        Path("/proc/sys/net/ipv4/ipfrag_time").write_text("30", encoding="ascii")


def test_each_has_servers_of_its_own_on_one_address(
    far: Namespace, near: Namespace, run_dir: Path, leftovers: Leftovers
) -> None:
    leftovers.look()
    side = PacketSide(far, run_dir, "--link", "packet:cable,ports=61000-61999,8080")
    echo = [PYTHON, program("connections.py"), "serve", "0.0.0.0"]
    with (
        side.serve(*echo, "8080", says="ready", stdin=subprocess.PIPE),
        far.start(*echo, "8081", stdin=subprocess.PIPE) as hosts,
    ):
        wait_until_says(hosts, "ready")
        for port in ("8080", "8081"):
            words = [PYTHON, program("connections.py"), "make", side.address, port, "20"]
            assert "20 whole, 0 failed" in near.run(*words).expect().text
        assert not near.reaches(side.address, 8082)
        refused = side.call("run", "--link", "packet:cable,ports=8080,62000-63000", "--", "true")
        assert "ports 8080 are another stack's" in refused.expect(2).errors


def test_a_member_does_not_see_what_the_host_receives(shared: PacketSide, near: Namespace) -> None:
    script = (
        "import socket, subprocess, sys\n"
        "p = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))\n"
        "p.bind(('eth0', 0))\n"
        "print('listening', flush=True); sys.stdin.read(1)\n"
        "p.setblocking(False); seen = []\n"
        "try:\n    while True: seen.append(p.recvfrom(65536))\n"
        "except BlockingIOError: pass\n"
        "arp = bytes([8, 6])\n"
        "print('saw', [s[:60].hex() for s, at in seen if at[2] != 4 and s[12:14] != arp])\n"
    )
    with server(shared, near):
        sniffer = shared.start(PYTHON, "-c", script, stdin=subprocess.PIPE)
        with sniffer:
            wait_until_says(sniffer, "listening")
            shared.far.run(*client(shared, "bulk", 2)).expect()
            shared.far.run("ping", "-c2", "-i0.1", shared.peer).expect()
            near.run("ping", "-c2", "-i0.1", shared.address).expect()
            assert sniffer.stdin
            sniffer.stdin.write(b"\n")
            sniffer.stdin.close()
            assert "saw []" in sniffer.finish().expect().text


def test_two_stacks_share_one_address_with_the_host(shared: PacketSide, near: Namespace) -> None:
    before = reserved(shared.far)
    with server(shared, near), running(shared), running(shared):
        assert len(reserved(shared.far).split(",")) <= 2 and reserved(shared.far) != before
        assert len([t for t in shared.far.tables() if t.startswith(TABLE)]) == 2
        for _ in range(2):
            assert "50 whole, 0 failed" in shared.run(*client(shared, "make", 50)).expect().text
    eventually(lambda: reserved(shared.far) == before, "all ports are given back")


@pytest.mark.parametrize("who", ["warden", "carrier", "program"])
def test_no_table_is_left_when_one_is_killed(shared: PacketSide, who: str) -> None:
    far = shared.far
    with shared.start("sh", "-c", "echo up; cat", stdin=subprocess.PIPE) as stack:
        wait_until_says(stack, "up")
        assert any(t.startswith(TABLE) for t in far.tables())
        [warden] = wardens(far)
        [status] = json.loads(shared.call("ls", "--json").expect().text)
        victims = {
            "warden": [warden],
            "carrier": [carrier_of(warden)],
            "program": status["pids"],
        }[who]
        assert victims
        for pid in victims:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        eventually(lambda: not any(t.startswith(TABLE) for t in far.tables()), "the table is gone")
        stack.stop()
    # The next command gives back what a killed one could not.
    eventually(
        lambda: shared.call("ls").status == 0 and not reserved(far), "the ports are given back"
    )


@pytest.mark.parametrize(
    ("ports", "sentence"),
    [
        ("8080", "expected one of at least 64"),
        ("61000-61999,9", "port 9 (tcp) is in use by"),
        ("2000-65000", "of the host's own"),
        ("x", "expected auto, or ports and ranges"),
    ],
)
def test_ports_that_a_stack_cannot_have_are_named(
    shared: PacketSide, far: Namespace, ports: str, sentence: str
) -> None:
    with far.socket() as listener:
        listener.bind(("0.0.0.0", 9))
        listener.listen()
        refused = shared.call("run", "--link", f"packet:cable,ports={ports}", "--", "true")
    assert sentence in refused.expect(2).errors
    assert reserved(far) == ""


def test_an_address_that_the_host_lacks_is_not_shared(shared: PacketSide, far: Namespace) -> None:
    refused = shared.call("run", *shared.options, "--ip", "10.77.1.9/24", "--", "true")
    assert "the host does not have the address 10.77.1.9 on cable" in refused.expect(2).errors
    far.ip("link", "add", "bare", "type", "veth", "peer", "name", "barest")
    try:
        refused = shared.call("run", "--link", "packet:bare,ports=auto", "--", "true")
        assert "bare has no address that a stack could share" in refused.expect(2).errors
    finally:
        far.ip("link", "delete", "bare")


def test_the_address_of_a_modem_is_shared(
    far: Namespace, near: Namespace, run_dir: Path, leftovers: Leftovers
) -> None:
    """IP packets without Ethernet, and a default route without a router."""
    with modem(far, near):
        far.ip("route", "add", "default", "dev", "rmnet0", "metric", "77")
        leftovers.look()
        side = PacketSide(far, run_dir, "--link", "packet:rmnet0,ports=auto", number=5)
        with server(side, near):
            near.ip("address", "add", "10.99.0.1/32", "dev", "tower")
            with running(side):
                for where in (side.far.run, side.run):
                    assert "50 whole, 0 failed" in where(*client(side, "make", 50)).expect().text
                    where("ping", "-c1", "-W30", "10.99.0.1").expect()
        leftovers.wait_until_none()
