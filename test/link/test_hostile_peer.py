# SPDX-License-Identifier: GPL-2.0-only
"""A peer on the link that sends whatever it likes: the addresses that stand for the host are not
for it. The host is far, and so is the peer, by a packet socket on the tap.

The relays take what comes in its order. So each test lets a program of the stack use the address
after the attack: when that has arrived, nothing of the attack is still on its way."""

from __future__ import annotations

import select
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from topology import forged
from topology.forged import Forger
from topology.namespace import Namespace
from topology.process import DEADLINE, Process
from topology.side import PYTHON, GuiseSide, wait_until_says

PEER = Path(__file__).with_name("qemu_peer.py")
OWN = "own7"
MAC = "02:00:00:00:02:02"
LOCAL = {4: ("127.0.0.1", "169.254.77.1"), 6: ("::1", "fd67:7569:7365::1")}
FAMILY = {4: socket.AF_INET, 6: socket.AF_INET6}
NAME_SERVER = "169.254.77.11"
CLIENT = {4: "169.254.77.2", 6: "fd67:7569:7365::2"}  # as whom programs see users of -p

# Waits for a word. Then it uses the host's localhost.
VICTIM = """
import socket, sys
print("ready", flush=True)
sys.stdin.readline()
address = sys.argv[1]
family = socket.AF_INET6 if ":" in address else socket.AF_INET
with socket.create_connection((address, int(sys.argv[2])), 30) as c:
    c.sendall(b"own")
    c.recv(1)
with socket.socket(family, socket.SOCK_DGRAM) as s:
    s.sendto(b"own", (address, int(sys.argv[3])))
"""


@pytest.fixture
def target(
    request: pytest.FixtureRequest, far: Namespace, guise: GuiseSide, tmp_path: Path
) -> Iterator[GuiseSide]:
    """A stack on a tap that guise makes; or on a tun or a stream whose other end is in far, where
    the host's localhost was asked for."""
    side = GuiseSide(far, guise.run_dir, paths=0)
    addresses = ["--ip", f"{side.address}/24", "--ip", f"{side.address6}/64"]
    match getattr(request, "param", "tap"):
        case "tap":
            side.options += ["--link", f"tap,mac={MAC}", *addresses]
            yield side
        case "tun":
            far.ip("tuntap", "add", OWN, "mode", "tun", "vnet_hdr")
            has_address(side)
            side.options += ["--link", f"tun:{OWN}", *addresses, "--localhost", "on"]
            yield side
            far.ip("link", "delete", OWN)
        case "stream":
            path = tmp_path / "socket"
            with far.start(PYTHON, PEER, path, OWN) as peer:
                wait_until_says(peer, "waiting")
                has_address(side)
                side.options += ["--link", f"stream:{path},mac={MAC}", *addresses]
                side.options += ["--localhost", "on"]
                yield side


def has_address(side: GuiseSide) -> None:
    """far's end of the link."""
    side.far.ip("address", "add", f"{side.peer}/24", "dev", OWN)
    side.far.ip("address", "add", f"{side.peer6}/64", "dev", OWN, "nodad")
    side.far.ip("link", "set", OWN, "up")


@contextmanager
def attacked(
    side: GuiseSide, script: str, *words: str, options: tuple[str, ...] = ()
) -> Iterator[tuple[Process, Forger]]:
    """A program that has said that it is ready, and the peer of its stack."""
    with side.start(PYTHON, "-c", script, *words, stdin=subprocess.PIPE, options=options) as victim:
        wait_until_says(victim, "ready")
        [link] = [name for name in side.far.interfaces() if name.startswith(("guise", OWN))]
        to = None if f"tun:{OWN}" in side.options else bytes.fromhex(MAC.replace(":", ""))
        with Forger(side.far, link, to) as peer:
            yield victim, peer


def go_on(victim: Process) -> None:
    assert victim.stdin
    victim.stdin.write(b"go on\n")
    victim.stdin.flush()


def heard_from(peer: Forger, side: GuiseSide, address: str) -> list[bytes]:
    """What that address has sent. The answer to ping shows that the stack has looked at all that
    came before."""
    side.far.run("ping", "-c1", "-W30", side.address).expect()
    return [frame for frame in peer.heard() if forged.packed(address) in frame]


@pytest.mark.parametrize("target", ["tap", "tun", "stream"], indirect=True)
@pytest.mark.parametrize("mode", ["preload", "tun"])
@pytest.mark.parametrize("version", [4, 6])
def test_the_hosts_localhost_is_not_for_the_link(
    far: Namespace, target: GuiseSide, version: int, mode: str
) -> None:
    """With any source: the peer's own, a neighbour's, one behind it, the stack's own, a loopback's,
    that of users of published ports, that of the host's localhost."""
    local, relayed = LOCAL[version]
    own, peer = target.of_family(FAMILY[version])
    sources = [peer, peer + "77", own, local, CLIENT[version], relayed]
    sources.append("198.51.100.1" if version == 4 else "2001:db8::77")
    with (
        far.socket(FAMILY[version]) as server,
        far.socket(FAMILY[version], socket.SOCK_DGRAM) as datagrams,
    ):
        server.bind((local, 0))
        server.listen(1000)
        datagrams.bind((local, 0))
        ports = [s.getsockname()[1] for s in (server, datagrams)]
        words = [relayed, *map(str, ports)]
        with attacked(target, VICTIM, *words, options=("--mode", mode)) as (victim, attacker):
            for number, source in enumerate(sources):
                attacker.send(forged.tcp(source, relayed, (40000 + number, ports[0])))
                attacker.send(forged.udp(source, relayed, (40000 + number, ports[1]), b"forged"))
            answers = heard_from(attacker, target, relayed)
            go_on(victim)
            connection, _ = server.accept()
            connection.settimeout(DEADLINE)
            assert connection.recv(10) == b"own", "the first one is the program's"
            connection.close()
            assert datagrams.recv(10) == b"own"
            victim.finish().expect()
        assert not select.select([server, datagrams], [], [], 0)[0], "nor is there another"
    assert not answers, "nor is there a word from that address"


ASKS = """
import socket, sys
print("ready", flush=True)
sys.stdin.readline()
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    s.settimeout(30)
    s.sendto(bytes.fromhex(sys.argv[2]), (sys.argv[1], 53))
    print("answer", s.recv(512).hex(), flush=True)
sys.stdin.readline()
"""


@pytest.mark.parametrize("mode", ["preload", "tun"])
def test_name_servers_are_not_for_the_link(target: GuiseSide, mode: str) -> None:
    name = b"".join(bytes([len(word)]) + word for word in (b"host", b"guise", b"internal", b""))
    question = bytes.fromhex("123401000001000000000000") + name + bytes([0, 1, 0, 1])
    words = [NAME_SERVER, question.hex()]
    with attacked(target, ASKS, *words, options=("--mode", mode)) as (victim, attacker):
        for number, source in enumerate((target.peer, target.address, "198.51.100.1")):
            attacker.send(forged.udp(source, NAME_SERVER, (41000 + number, 53), question))
            attacker.send(forged.tcp(source, NAME_SERVER, (41000 + number, 53)))
            attacker.send(forged.tcp(source, NAME_SERVER, (42000 + number, 54)))
        go_on(victim)
        wait_until_says(victim, "answer 1234")
        assert not heard_from(attacker, target, NAME_SERVER)
        go_on(victim)
        victim.finish().expect()


def test_none_of_these_addresses_is_on_the_link(target: GuiseSide) -> None:
    """A machine there may have the same one, and must keep it."""
    options = ("-p", "0:80")
    with attacked(target, VICTIM, LOCAL[4][1], "1", "1", options=options) as (_, attacker):
        for address in (LOCAL[4][1], NAME_SERVER, CLIENT[4], target.address):
            attacker.ask(target.peer, address)
        answers = heard_from(attacker, target, target.peer)  # in answers to it
        said = {frame[28:32] for frame in answers if frame[12:14] == b"\x08\x06"}
        assert forged.packed(target.address) in said
        assert said == {forged.packed(target.address)}


SERVES = """
import socket, sys
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
with socket.socket(family, socket.SOCK_DGRAM) as s:
    s.bind((sys.argv[1], 4000))
    print("ready", flush=True)
    while True:
        data, peer = s.recvfrom(100)
        print(data.decode(), peer[1], flush=True)
        s.sendto(b"answer to " + data, peer)
"""


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("localhost", ["on", "off"])
def test_nobody_on_the_link_is_a_client_or_the_server_of_a_published_port(
    far: Namespace, target: GuiseSide, version: int, localhost: str
) -> None:
    """In the place of the server, the peer would answer on the host; in the place of the client it
    would have come through the host."""
    own, client = target.of_family(FAMILY[version])[0], CLIENT[version]
    options = ("-p", "0:4000/udp", "--localhost", localhost)
    with (
        attacked(target, SERVES, own, options=options) as (victim, attacker),
        far.socket(kind=socket.SOCK_DGRAM) as user,
    ):
        port = int(victim.said().errors.split(" of the host")[0].rsplit(":", 1)[1])

        def talk(word: str) -> bytes:
            user.sendto(word.encode(), ("127.0.0.1", port))
            return user.recv(100)

        assert talk("first") == b"answer to first"
        number = int(victim.said().text.split("first ")[1].split()[0])
        attacker.send(forged.udp(own, client, (4000, number), b"forged"))
        for source in (number, 4321):
            attacker.send(forged.udp(client, own, (source, 4000), b"forged"))
        heard_from(attacker, target, client)
        assert talk("second") == b"answer to second"
        assert "forged" not in victim.said().text
