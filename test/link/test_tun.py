# SPDX-License-Identifier: GPL-2.0-only
"""A tun: IP packets without Ethernet. Its other end is in far."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from topology.content import Content
from topology.leftovers import Leftovers
from topology.namespace import Namespace
from topology.side import PYTHON, GuiseSide

PEER, ADDRESS = "10.77.9.1", "10.77.9.2"
PEER6, ADDRESS6 = "fd77:0:0:9::1", "fd77:0:0:9::2"


@pytest.fixture
def tun(far: Namespace, guise: GuiseSide, leftovers: Leftovers) -> Iterator[GuiseSide]:
    """A stack on a tun that far has; it stays when the stack ends."""
    far.ip("tuntap", "add", "tun7", "mode", "tun", "vnet_hdr")
    far.ip("address", "add", f"{PEER}/24", "dev", "tun7")
    far.ip("address", "add", f"{PEER6}/64", "dev", "tun7", "nodad")
    far.ip("link", "set", "tun7", "up")
    side = GuiseSide(far, guise.run_dir, number=9, paths=0)
    side.options += ["--link", "tun:tun7", "--ip", f"{ADDRESS}/24", "--ip", f"{ADDRESS6}/64"]
    yield side
    far.ip("link", "delete", "tun7")


@pytest.mark.parametrize("offload", ["on", "off"])
@pytest.mark.parametrize("peer", [PEER, f"[{PEER6}]"])
def test_what_is_loaded_over_a_tun_is_whole(
    tun: GuiseSide, content: Content, tmp_path: Path, peer: str, offload: str
) -> None:
    url = f"http://{peer}:{content.port}"
    options = ["--offload", offload]
    got = tun.run("curl", "-sS", f"{url}/blob", options=options).expect()
    assert hashlib.sha256(got.stdout).hexdigest() == content.sha256
    (tmp_path / "blob").write_bytes(content.blob)
    put = tun.run("curl", "-sS", "-T", tmp_path / "blob", f"{url}/x", options=options).expect()
    assert put.text.strip() == content.sha256


def test_the_interface_has_no_ethernet(tun: GuiseSide) -> None:
    shown = tun.run("ip", "-d", "link", "show", "eth0").expect().text
    assert "POINTOPOINT" in shown and "NOARP" in shown and "link/none" in shown, shown
    for peer in (PEER, PEER6):
        tun.run("ping", "-c1", "-W30", peer).expect()


def test_packets_are_seen_with_what_they_are(tun: GuiseSide) -> None:
    """A packet socket tells the protocol, which no header says."""
    script = (
        "import socket, struct\n"
        "p = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))\n"
        "p.settimeout(30)\n"
        "for family, at in ((2, sys_peer), (10, sys_peer6)):\n"
        "    socket.socket(family, socket.SOCK_DGRAM).sendto(b'x', (at, 9))\n"
        "seen = set()\n"
        "while len(seen) < 4:\n"
        "    _, (name, protocol, kind, hatype, _) = p.recvfrom(2000)\n"
        "    seen.add((protocol, kind))\n"
        "    assert (name, hatype) == ('eth0', 0xfffe), (name, hatype)\n"
        "print(sorted(seen))\n"
    )
    script = f"sys_peer, sys_peer6 = {PEER!r}, {PEER6!r}\n{script}"
    done = tun.run(PYTHON, "-c", script).expect()
    # The datagrams, and the ICMP errors that come back.
    assert done.text.strip() == "[(2048, 0), (2048, 4), (34525, 0), (34525, 4)]"


@pytest.mark.parametrize(
    ("link", "sentence"),
    [
        ("tun:eth7", "eth7 exists and is no tun"),
        ("tun:fd=0", "descriptor 0 is no open tun"),
    ],
)
def test_what_is_no_tun_is_refused(
    far: Namespace, guise: GuiseSide, link: str, sentence: str
) -> None:
    far.ip("link", "add", "eth7", "type", "veth", "peer", "name", "eth8")
    side = GuiseSide(far, guise.run_dir, paths=0)
    try:
        with side.start("true", options=["--link", link]) as refused:
            said = refused.finish().expect(2)
    finally:
        far.ip("link", "delete", "eth7")
    assert sentence in said.errors


def test_the_most_that_an_mtu_may_be_is_what_the_stacks_device_takes(
    guise: GuiseSide, tun: GuiseSide
) -> None:
    """Of a tap and of a tun: the command line has it from lib/link/kinds.h, the port knows it."""
    for side, link in ((guise, "tap"), (tun, "tun:tun7")):
        [device] = json.loads(side.run("ip", "-d", "-j", "link", "show", "eth0").expect().text)
        least, most = device["min_mtu"], device["max_mtu"]
        for wrong in (least - 1, most + 1):
            refused = side.call("run", "--link", f"{link},mtu={wrong}", "--", "true").expect(2)
            assert f"expected a number from {least} to {most}" in refused.errors, refused
        words = ["cat", "/sys/class/net/eth0/mtu"]
        done = side.call("run", "--link", f"{link},mtu={most}", "--", *words).expect()
        assert int(done.text) == most
