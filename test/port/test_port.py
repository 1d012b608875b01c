# SPDX-License-Identifier: GPL-2.0-only
"""What the library kernel has besides TCP and UDP, as programs and Debian's own tools see it."""

from __future__ import annotations

import re

import pytest
from topology.process import run
from topology.side import BUILD, GUISE


def feature(*words: str) -> list[str]:
    """Lines of features.c, on a stack of its own with lo alone."""
    env = {"PRELOAD": str(BUILD / "libguise-preload.so")}
    program = BUILD / "test" / "port" / "features"
    on_guise = (GUISE, "run", "--link", "none", "--", "env", "GUISE_PRELOAD=off", program)
    return run([*map(str, on_guise), *words], env=env).expect().text.splitlines()


@pytest.mark.parametrize(("how", "seen"), [("masquerade", "10.2.0.1"), ("plain", "10.1.0.2")])
def test_nftables_translate_addresses(how: str, seen: str) -> None:
    assert feature("nat", how) == [f"hello from {seen}"]


def test_a_rule_sends_traffic_another_way() -> None:
    """The same destination, by two routes: `ip rule from` decides."""
    assert feature("rule") == ["a: hello from 10.1.0.1", "b: hello from 10.2.0.1"]


def test_bridge_connects_two_cables() -> None:
    assert feature("bridge") == ["hello from 10.3.0.1"]


@pytest.mark.parametrize(("kind", "length"), [("tun", 32), ("tap", 46)])
def test_device_of_the_stack_takes_and_gives_packets(kind: str, length: int) -> None:
    assert feature(kind) == [
        f"packet socket: {length} of {length} ping",
        "udp socket: 4 ping",
        f"device: {length} of {length} pong",
    ]


def test_packet_sockets_filter_and_tell_lengths() -> None:
    """The raw one's filter lets only one port through; the cooked one has no filter."""
    assert feature("packet") == [
        "raw: 48 wanted, auxiliary: length 48, network at 14",
        "cooked: 34 other, protocol 0x800, interface 1",
    ]


def test_ipv6_over_lo_and_over_a_cable() -> None:
    first, second, *answers = feature("ipv6")
    assert (first, second) == ("hello from ::1", "hello from 2001:db8::1")
    assert answers == ["icmp_seq=1", "icmp_seq=2"]


# Local addresses of what features.c opens: two ends of a connection, their listener, and so on.
ENDS = ["ESTAB 127.0.0.1", "ESTAB 127.0.0.1:5001"]
SOCKETS = {
    "ss -Htan": [*ENDS, "LISTEN 127.0.0.1:5001", "LISTEN 127.0.0.1:5002"],
    "ss -Huan": ["UNCONN 127.0.0.1:5003"],
    "ss -Hwan": ["UNCONN 0.0.0.0:1"],
    "ss -HMan": ["LISTEN 127.0.0.1:5002"],
}


@pytest.mark.parametrize("command", SOCKETS)
def test_ss_lists_the_sockets_of_the_stack_and_no_other(command: str) -> None:
    """sock_diag for TCP, UDP, raw sockets and MPTCP."""
    found = []
    for line in feature("diag", command):
        state, _, _, local = line.split()[:4]
        # The client's port is any.
        found.append(f"{state} {re.sub(r':[0-9]{5,}$', '', local)}")
    assert sorted(found) == sorted(SOCKETS[command])


def test_generic_netlink() -> None:
    """The families of MPTCP's path manager and of ethtool."""
    endpoint = "ip mptcp endpoint add 10.0.0.1 subflow; ip mptcp endpoint show"
    assert [line.split() for line in feature("diag", endpoint)] == [
        ["10.0.0.1", "id", "1", "subflow"]
    ]
    cable = "ip link add v0 type veth peer name v1; ethtool v0"
    assert "\tSpeed: 10000Mb/s" in feature("diag", cable)


@pytest.mark.parametrize("kind", ["dummy", "bridge", "veth"])
def test_ip_makes_devices(kind: str) -> None:
    assert any(
        line.strip().startswith(kind)
        for line in feature("diag", f"ip link add x0 type {kind}; ip -d link show x0")
    )


def test_proc_and_sys_are_the_stacks() -> None:
    files: dict[str, list[str]] = {}
    for line in feature("files"):
        if line.startswith("== "):
            files[line[3:]] = []
        else:
            files[list(files)[-1]].append(line)
    # One interface and one socket: the host has others.
    assert [line.split(":")[0].strip() for line in files["/proc/net/dev"][2:]] == ["lo"]
    (socket,) = files["/proc/net/tcp"][1:]
    assert socket.split()[1:4] == ["0100007F:1389", "00000000:0000", "0A"]
    assert any(line.startswith("Tcp: RtoAlgorithm") for line in files["/proc/net/snmp"])
    assert len(files["/proc/net/route"]) == 1
    assert any(line.startswith("MPTCPv6 ") for line in files["/proc/net/protocols"])
    assert files["/proc/sys/net/ipv4/tcp_congestion_control"] == ["cubic"]
    assert files["/sys/class/net/lo/mtu"] == ["65536"]
    assert files["/sys/class/net/lo/operstate"] == ["unknown"]
    assert files["/sys/class/net/lo/statistics/rx_bytes"] == ["0"]


QDISCS = ["fq maxrate 10Mbit", "fq_codel ecn", "tbf rate 1Mbit burst 15Kb lat 50ms"]
QDISCS += ["htb", "netem limit 7 delay 20ms", "sfq", "prio"]


@pytest.mark.parametrize("qdisc", QDISCS)
def test_tc_shows_what_it_set(qdisc: str) -> None:
    shown = feature("diag", f"tc qdisc replace dev lo root {qdisc}; tc qdisc show dev lo")
    assert all(word in " ".join(shown).split() for word in qdisc.split()), shown


def test_htb_holds_its_rate() -> None:
    """Set by Debian's tc. A megabyte at 16 Mbit/s cannot take less than 0.48 s: 15 kB are free."""
    nanoseconds, *shown = feature("htb")
    assert int(nanoseconds) > (1_000_000 - 15_000 - 10_000) * 8 / 16e6 * 1e9
    assert shown[0].startswith("class htb 1:10 root ")
    sent = re.search(r"Sent (\d+) bytes", "\n".join(shown))
    assert sent
    assert int(sent.group(1)) > 1_000_000
