# SPDX-License-Identifier: GPL-2.0-only
"""A link on an interface of the host that a stack has alone, with Ethernet and without."""

from __future__ import annotations

import hashlib
import json
import socket
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from topology.content import Content
from topology.leftovers import Leftovers
from topology.namespace import Namespace
from topology.process import eventually
from topology.shared import MODEM, MODEM6, PacketSide, modem
from topology.side import PYTHON, HostSide, wait_until_says


@pytest.fixture
def near(host: HostSide) -> Namespace:
    return host.near


@pytest.fixture
def alone(far: Namespace, near: Namespace, run_dir: Path, leftovers: Leftovers) -> PacketSide:
    """A stack that has far's end of the cable alone, with far's addresses."""
    leftovers.look()
    side = PacketSide(far, run_dir)
    side.options += ["--link", "packet:cable"]
    side.options += ["--ip", f"{side.address}/24", "--ip", f"{side.address6}/64"]
    return side


@pytest.fixture
def raw(
    far: Namespace, near: Namespace, run_dir: Path, leftovers: Leftovers
) -> Iterator[PacketSide]:
    """A stack that has the modem alone."""
    with modem(far, near):
        leftovers.look()
        side = PacketSide(far, run_dir, number=5)
        side.options += ["--link", "packet:rmnet0"]
        side.options += ["--ip", f"{MODEM}.1/24", "--ip", f"{MODEM6}:1/64"]
        yield side
        leftovers.wait_until_none()


@pytest.fixture
def served(near: Namespace) -> Iterator[Content]:
    with Content(near) as content:
        yield content


def load(side: PacketSide, content: Content, folder: Path, *options: str) -> None:
    """There and back, over IPv4 and IPv6."""
    (folder / "blob").write_bytes(content.blob)
    for peer in (side.peer, f"[{side.peer6}]"):
        url = f"http://{peer}:{content.port}"
        got = side.run("curl", "-sS", f"{url}/blob", options=options).expect()
        assert hashlib.sha256(got.stdout).hexdigest() == content.sha256
        put = side.run("curl", "-sS", "-T", folder / "blob", f"{url}/x", options=options).expect()
        assert put.text.strip() == content.sha256


@pytest.mark.parametrize("offload", ["on", "off"])
def test_what_is_loaded_over_the_hosts_interface_is_whole(
    alone: PacketSide, served: Content, tmp_path: Path, offload: str
) -> None:
    load(alone, served, tmp_path, "--offload", offload)


@pytest.mark.parametrize("offload", ["on", "off"])
def test_what_is_loaded_over_a_modem_is_whole(
    raw: PacketSide, served: Content, tmp_path: Path, offload: str
) -> None:
    load(raw, served, tmp_path, "--offload", offload)


def test_a_modem_has_no_ethernet(raw: PacketSide) -> None:
    shown = raw.run("ip", "-d", "link", "show", "eth0").expect().text
    assert "POINTOPOINT" in shown and "NOARP" in shown and "link/none" in shown, shown
    refused = raw.call("run", "--link", "packet:rmnet0,mac=02:00:00:00:00:09", "--", "true")
    assert "has no Ethernet" in refused.expect(2).errors


def test_mtu_and_mac_are_those_of_the_interface(alone: PacketSide, far: Namespace) -> None:
    far.ip("link", "set", "cable", "mtu", "1400")
    [theirs] = json.loads(far.ip("-json", "link", "show", "cable"))
    [ours] = json.loads(alone.run("ip", "-json", "link", "show", "eth0").expect().text)
    assert (ours["mtu"], ours["address"]) == (1400, theirs["address"])
    far.ip("link", "set", "cable", "mtu", "1500")


def test_the_host_sees_nothing_of_it(alone: PacketSide, far: Namespace, near: Namespace) -> None:
    """While the stack has the cable, it answers for the address, and the host does not."""
    assert near.run("ping", "-c1", "-W5", alone.address).status == 0
    with far.socket() as listener:
        listener.bind((alone.address, 7777))
        listener.listen()
        assert near.reaches(alone.address, 7777)
        with alone.start("cat", stdin=subprocess.PIPE) as stack:
            eventually(
                lambda: "cable" in far.run("nft", "list", "ruleset").text, "the host is shut out"
            )
            # The stack has nobody at that port, and says so. The host would accept.
            eventually(lambda: not near.reaches(alone.address, 7777), "the stack answers")
            near.run("ping", "-c1", "-W30", alone.address).expect()
            far.run("ping", "-c1", "-W1", alone.peer).expect(1)
            assert stack.stdin
            stack.stdin.close()
            stack.finish().expect()
        eventually(lambda: near.reaches(alone.address, 7777), "the host answers again")


def test_an_interface_that_goes_down_and_up_is_used_again(
    alone: PacketSide, far: Namespace, served: Content
) -> None:
    url = f"http://{alone.peer}:{served.port}/blob"
    fetch = f"curl -sS -o /dev/null --retry 100 --retry-all-errors --retry-delay 1 {url}"
    script = f"{fetch} && echo once && read x && {fetch} && echo twice"
    with alone.start("sh", "-c", script, stdin=subprocess.PIPE) as program:
        wait_until_says(program, "once")
        far.ip("link", "set", "cable", "down")
        far.ip("link", "set", "cable", "up")
        assert program.stdin
        program.stdin.write(b"\n")
        program.stdin.flush()
        assert "twice" in program.finish().expect().text


def test_frames_that_no_link_takes_are_counted(
    alone: PacketSide, far: Namespace, near: Namespace, served: Content
) -> None:
    """Datagrams that the other end's kernel leaves unsegmented, and frames of nothing but noise.
    What comes afterwards is received."""
    script = (
        "import socket, sys\n"
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('', 9000))\n"
        "print('bound', flush=True)\n"
        "sys.stdin.read(1)\n"
    )
    with alone.start(PYTHON, "-c", script, stdin=subprocess.PIPE) as program:
        wait_until_says(program, "bound")
        with near.socket(kind=socket.SOCK_DGRAM) as sender, near.entered():
            noise = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
            noise.bind(("cable", 0))
            [device] = json.loads(far.ip("-json", "link", "show", "cable"))
            mac = bytes.fromhex(device["address"].replace(":", ""))
            for kind in (0x0800, 0x86DD, 0x0806, 0x8100):
                for size in (0, 1, 19, 40, 1400):
                    noise.send(mac + bytes(6) + struct.pack(">H", kind) + b"\xff" * size)
            noise.close()
            sender.setsockopt(socket.IPPROTO_UDP, 103, 500)  # UDP_SEGMENT
            sender.sendto(bytes(1500), (alone.address, 9000))

        def malformed() -> int:
            [stack] = json.loads(alone.call("ls", "--json").expect().text)
            return sum(int(link["rx_malformed"]) for link in stack["links"])

        eventually(lambda: malformed() > 0, "they are counted")
        assert program.stdin
        program.stdin.close()
        program.finish().expect()
    eventually(lambda: not far.tables(), "the stack before has given the cable back")
    url = f"http://{alone.peer}:{served.port}/blob"
    alone.run("curl", "-sS", "-o", "/dev/null", url).expect()


@pytest.mark.parametrize(
    ("link", "sentence"),
    [
        ("packet:nix", "cannot find the interface nix"),
        ("packet:lo", "of type loopback"),
        ("packet:fd=0", "descriptor 0 is no open packet socket"),
        ("packet", "expected packet:IFNAME"),
        ("tap,ports=auto", "only a packet:IFNAME"),
    ],
)
def test_what_is_no_interface_for_a_stack_is_refused(
    alone: PacketSide, link: str, sentence: str
) -> None:
    refused = alone.call("run", "--link", link, "--", "true")
    assert sentence in refused.expect(2).errors


def test_two_stacks_do_not_have_one_interface_alone(alone: PacketSide, far: Namespace) -> None:
    with alone.start("cat", stdin=subprocess.PIPE) as first:
        eventually(lambda: "cable" in far.run("nft", "list", "ruleset").text, "it has the cable")
        refused = alone.call("run", "--link", "packet:cable", "--", "true")
        assert "another stack" in refused.expect(2).errors
        assert first.stdin
        first.stdin.close()
        first.finish().expect()
