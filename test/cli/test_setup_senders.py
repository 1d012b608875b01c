# SPDX-License-Identifier: GPL-2.0-only
"""What a user may send into a tap of guise setup, and what not. Alice's program sends frames of its
own by a packet socket of its stack, as every program there may, and then a datagram by a usual
socket. All arrive in their order: when that has come, nothing of the attack is on its way."""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Iterator

import pytest
from topology import forged
from topology.namespace import Namespace, Word
from topology.private import Machine, as_user
from topology.process import Process
from topology.side import GUISE, PYTHON, wait_until_says

ALICE, BOB = (300_000 + 2 * (os.getpid() % 100_000) + i for i in range(2))
FAMILY = {4: socket.AF_INET, 6: socket.AF_INET6}
PORT, SERVED = 5000, 4000

# On Alice's tap, as seen by the machine; the network of Bob's; root's, of a run.
HOST = {4: "10.213.0.1", 6: "fd67:7569:7365:1::1"}
ALICES = {4: "10.213.0.2", 6: "fd67:7569:7365:1::2"}
BOBS = {4: ("10.213.0.5", "10.213.0.6"), 6: ("fd67:7569:7365:2::1", "fd67:7569:7365:2::2")}
ROOTS = {4: ("10.213.0.9", "10.213.0.10"), 6: ("fd67:7569:7365:3::1", "fd67:7569:7365:3::2")}
FAR = {4: "192.0.2.1", 6: "2001:db8::1"}
STRANGER = {4: "198.51.100.1", 6: "2001:db8:1::1"}
LOCAL = {4: "127.0.0.1", 6: "::1"}

SENDS = """
import socket, sys
with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as p:
    p.bind(("eth0", 0))
    for frame in filter(None, sys.argv[2].split(",")):
        p.send(bytes.fromhex(frame))
for address in sys.argv[3:]:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        s.sendto(b"own", (address, int(sys.argv[1])))
"""

SERVES = """
import socket, sys
with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as s:
    s.bind(("::", int(sys.argv[1])))
    print("ready", flush=True)
    while True:
        print(s.recv(100).decode(), flush=True)
"""


@pytest.fixture
def machine(far: Namespace) -> Iterator[Machine]:
    with Machine(far) as machine:
        if machine.run(*as_user(ALICE, "test", "-x", GUISE)).status:
            pytest.skip(f"{GUISE} lies where only root may go")
        for uid in (ALICE, BOB):
            machine.run(GUISE, "setup", "--user", str(uid)).expect()
        yield machine


def send(
    machine: Machine, packets: list[bytes], *genuine: str, neighbours: tuple[bytes, ...] = ()
) -> None:
    """As Alice. What neighbours say begins with who says it."""
    mac = machine.shell("ip -br link show guise-u0").split()[2].replace(":", "")
    frames = [mac + frame.hex() for frame in neighbours]
    for packet in packets:
        kind = "86dd" if packet[0] >> 4 == 6 else "0800"
        frames.append(mac + forged.MAC.hex() + kind + packet.hex())
    words = [PYTHON, "-c", SENDS, str(PORT), ",".join(frames), *genuine]
    machine.run(*as_user(ALICE, GUISE, "run", "--", *words)).expect()


@pytest.mark.parametrize("version", [4, 6])
def test_a_tap_sends_from_its_own_addresses_only(machine: Machine, version: int) -> None:
    """To the machine itself, and through it."""
    sources = [a[version] for a in (STRANGER, HOST, LOCAL, FAR)]
    sources += [pair[version][1] for pair in (ROOTS, BOBS)]
    packets = [
        forged.udp(source, to[version], (1000 + number, PORT), b"forged")
        for number, source in enumerate(sources)
        for to in (FAR, HOST)
    ]
    kind = (FAMILY[version], socket.SOCK_DGRAM)
    with machine.far.socket(*kind) as there, machine.net.socket(*kind) as here:
        for place in (there, here):
            place.bind(("", PORT))
        send(machine, packets, FAR[version], HOST[version])
        for place in (there, here):
            assert place.recv(100) == b"own"
            assert not select.select([place], [], [], 0)[0]


@pytest.mark.parametrize("version", [4, 6])
def test_a_tap_does_not_reach_the_stacks_of_others(machine: Machine, version: int) -> None:
    """Neither those of another user's tap, from any source, nor root's, on a tap of a run."""

    def serves(user: list[Word], options: list[str]) -> Process:
        run: list[Word] = [GUISE, "run", *options, "--", PYTHON, "-c", SERVES, str(SERVED)]
        return machine.start(*user, *run)

    options = []
    for address, length in ((ROOTS[4][1], 30), (ROOTS[6][1], 64)):
        options += ["--ip", f"{address}/{length}"]
    packets = [
        forged.udp(source, to, (1000 + number, SERVED), b"forged")
        for number, source in enumerate((ALICES[version], HOST[version], BOBS[version][0]))
        for to in (BOBS[version][1], ROOTS[version][1])
    ]
    # What the machine would answer there in Bob's place is not for Alice either.
    packets.append(forged.udp(ALICES[version], BOBS[version][0], (1000, PORT), b"forged"))
    kind = (FAMILY[version], socket.SOCK_DGRAM)
    with (
        serves(as_user(BOB), []) as bobs,
        serves([], options) as roots,
        machine.net.socket(*kind) as here,
    ):
        here.bind(("", PORT))
        for server in (bobs, roots):
            wait_until_says(server, "ready")
        send(machine, packets, HOST[version])
        assert here.recv(100) == b"own"
        for server, address in ((bobs, BOBS[version][1]), (roots, ROOTS[version][1])):
            here.sendto(b"of the machine", (address, SERVED))
            wait_until_says(server, "of the machine")
            assert "forged" not in server.said().text


def test_the_stacks_of_one_user_reach_each_other(machine: Machine) -> None:
    machine.run(GUISE, "setup", "--user", str(ALICE), "--taps", "2").expect()
    words: list[Word] = [GUISE, "run", "--", PYTHON, "-c", SERVES, str(PORT)]
    with machine.start(*as_user(ALICE, *words)) as server:
        wait_until_says(server, "ready")
        for version in (4, 6):
            send(machine, [], ALICES[version])
            wait_until_says(server, "own\n" * (1 if version == 4 else 2))


def test_what_neighbours_say_on_a_tap_is_of_that_tap(machine: Machine) -> None:
    """Alice's program says by ARP and by neighbour discovery that it has far's addresses and Bob's
    stack's; the machine finds these where they were."""
    claims = []
    for address in (FAR[4], BOBS[4][1]):
        says = forged.packed(address)
        arp = bytes.fromhex("0001080006040002") + forged.MAC + says + forged.MAC + says
        claims.append(forged.MAC + bytes.fromhex("0806") + arp)
    for address in (FAR[6], BOBS[6][1]):
        body = bytes.fromhex("8800000060000000") + forged.packed(address) + b"\2\1" + forged.MAC
        packet = forged.packet("fe80::66", "ff02::1", forged.ICMP6, body, 2)
        packet = packet[:7] + b"\xff" + packet[8:]  # the hop limit of a neighbour
        claims.append(forged.MAC + bytes.fromhex("86dd") + packet)
    with machine.net.socket(kind=socket.SOCK_DGRAM) as here:
        here.bind(("", PORT))
        for address in FAR.values():
            machine.run("ping", "-c1", "-W30", address).expect()
        send(machine, [], HOST[4], neighbours=tuple(claims))
        assert here.recv(100) == b"own"
    mac = ":".join(f"{byte:02x}" for byte in forged.MAC)
    others = machine.shell("ip neigh show dev cable; ip neigh show dev guise-u1")
    assert mac not in others, others
    for address in FAR.values():
        machine.run("ping", "-c1", "-W30", address).expect()
