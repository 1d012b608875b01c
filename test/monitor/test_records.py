# SPDX-License-Identifier: GPL-2.0-only
"""The records of the monitor against the kernel's own counters, in simulated time: nothing is
missing, and nothing is there twice. And as files of a stack that programs read."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from topology.process import run
from topology.side import BUILD, GUISE

TRANSFER = BUILD / "test" / "sim" / "transfer"
PATH = "delay 10ms loss 0.2% rate 100mbit limit 1000 seed 9876543210"
BYTES = 8_000_000


@dataclass
class Record:
    time: float
    kind: str
    function: str
    values: dict[str, str]

    def __getitem__(self, name: str) -> int:
        return int(self.values.get(name, "0"))

    @property
    def local(self) -> str:
        return self.values["local"]


def parse(text: str) -> Iterator[Record]:
    for line in text.splitlines():
        time, kind, function, *values = line.split()
        yield Record(float(time), kind, function, dict(v.split("=", 1) for v in values))


def counters(text: str) -> dict[str, int]:
    found: dict[str, int] = {}
    lines = text.splitlines()
    for names, values in zip(lines[::2], lines[1::2], strict=True):
        prefix, *words = names.split()
        numbers = values.split()[1:]
        found |= {prefix[:-1] + word: int(n) for word, n in zip(words, numbers, strict=True)}
    return found


@dataclass
class Transfer:
    printed: str
    records: list[Record]
    count: dict[str, int]  # of both ends

    def of(self, kind: str, detail: int | None = None) -> list[Record]:
        return [r for r in self.records if r.kind == kind and detail in (None, r["detail"])]

    def total(self, kind: str) -> int:
        return sum(r["count"] for r in self.of(kind))


def transfer(
    folder: Path, path: str, cc: str = "cubic", seed: int = 1, kinds: str = "all"
) -> Transfer:
    file = folder / f"events-{kinds}"
    done = run([TRANSFER, str(seed), cc, str(BYTES), path, file, kinds]).expect()
    count: dict[str, int] = defaultdict(int)
    for end in "a", "b":
        for name, n in counters(Path(f"{file}.{end}").read_text()).items():
            count[name] += n
    return Transfer(done.text, list(parse(file.read_text())), count)


PATHS = {
    "loss": PATH,
    "much-loss": "delay 10ms loss 3% rate 100mbit limit 1000 seed 5",
    "full-queue": "delay 10ms rate 20mbit limit 40",
    "overtaken": "delay 20ms 5ms 25% reorder 10% 50% rate 50mbit limit 1000 seed 3",
}


@pytest.fixture(scope="module", params=PATHS)
def done(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Transfer:
    return transfer(tmp_path_factory.mktemp("monitor"), PATHS[request.param])


def test_as_many_as_the_kernel_counts(done: Transfer) -> None:
    n = done.count
    assert done.total("retransmit") == n["TcpRetransSegs"]
    assert len(done.of("rto")) == n["TcpExtTCPTimeouts"]
    assert len(done.of("tlp")) == n["TcpExtTCPLossProbes"]
    assert done.total("dsack") == n["TcpExtTCPDSACKRecvSegs"]
    assert len(done.of("out-of-order")) == n["TcpExtTCPOFOQueue"]
    assert len(done.of("delack")) == n["TcpExtDelayedACKs"]
    assert len(done.of("pruned", 1)) == n["TcpExtPruneCalled"]
    assert len(done.of("pruned", 3)) == n["TcpExtRcvPruned"]
    assert len(done.of("collapsed")) == n["TcpExtTCPRcvCollapsed"]
    undone = ("TCPFullUndo", "TCPPartialUndo", "TCPDSACKUndo", "TCPLossUndo")
    assert len(done.of("undo")) == sum(n["TcpExt" + name] for name in undone)
    reordered = ("TCPSACKReorder", "TCPRenoReorder", "TCPTSReorder")
    assert len(done.of("reordering")) == sum(n["TcpExt" + name] for name in reordered)


def test_each_byte_is_sent_received_and_acknowledged(done: Transfer) -> None:
    """By the ranges of the records alone; a SYN and a FIN have a number each."""
    sender = done.of("ack")[0].local
    sent = [r for r in done.of("sent") if r.local == sender]
    assert all(a["end"] == b["seq"] for a, b in pairwise(sent))
    assert (sent[-1]["end"] - sent[0]["seq"]) % 2**32 == BYTES + 1
    acked = [r for r in done.of("ack") if r.local == sender]
    assert sum(r["count"] for r in acked) == acked[-1]["bytes_acked"]
    assert max(r["bytes_received"] for r in done.records) == BYTES


def test_times_do_not_go_back(done: Transfer) -> None:
    times = [r.time for r in done.records]
    assert times == sorted(times)


def test_a_window_changes_only_where_a_record_says_so(done: Transfer) -> None:
    """Between two records of a socket cwnd is the same, unless the second is of that kind."""
    before: dict[str, int] = {}
    for r in done.records:
        if "cookie" not in r.values or not r["cwnd"]:
            continue
        if r.kind == "cwnd":
            assert before.get(r.values["cookie"], r["count"]) == r["count"], r
            assert r["detail"] == r["cwnd"], r
        else:
            assert before.get(r.values["cookie"], r["cwnd"]) == r["cwnd"], r
        before[r.values["cookie"]] = r["cwnd"]


def test_recording_changes_no_packet(tmp_path: Path) -> None:
    assert transfer(tmp_path, PATH).printed == transfer(tmp_path, PATH, kinds="none").printed


def test_a_full_queue_of_the_interface_is_recorded(tmp_path: Path) -> None:
    done = transfer(tmp_path, PATHS["full-queue"])
    assert done.of("local-drop")
    assert {r.function for r in done.of("local-drop")} == {"__tcp_transmit_skb"}
    assert "tcp_enter_cwr" in {r.function for r in done.of("ca-state")}


@pytest.mark.parametrize(("cc", "values"), [("cubic", "w_max"), ("bbr", "bandwidth_KiB")])
def test_values_of_the_congestion_control(tmp_path: Path, cc: str, values: str) -> None:
    records = [r for r in transfer(tmp_path, PATH, cc).of("ack") if r.values.get("cc") == cc]
    assert any(int(r.values[values]) for r in records)


KINDS = "/proc/net/guise/kinds"


def on_stack(script: str, *flags: str) -> str:
    return run([GUISE, "run", "--link", "none", *flags, "--", "sh", "-c", script]).expect().text


def test_kinds_are_chosen_and_nothing_else_is_recorded() -> None:
    text = on_stack(
        f"echo rto state > {KINDS}; cat {KINDS}; echo --; "
        'python3 -c \'import socket; s = socket.create_server(("127.0.0.1", 0)); '
        "socket.create_connection(s.getsockname())'; cat /proc/net/guise/events"
    )
    kinds, events = text.split("--\n")
    assert kinds.split() == ["rto", "state"]
    assert {r.kind for r in parse(events)} == {"state"}
    assert "tcp_v4_connect" in {r.function for r in parse(events)}


@pytest.mark.skipif(bool(os.geteuid()), reason="needs root, to be other users")
def test_another_user_does_not_read_them() -> None:
    """Where programs have the rights on the stack that they have on the host."""
    events = "/proc/net/guise/events"
    text = on_stack(
        f"echo all > {KINDS}; setpriv --reuid 65534 --regid 65534 --clear-groups "
        f"sh -c 'cat {events}; cat {KINDS}; echo none > {KINDS}; echo tried'; cat {KINDS} | wc -l",
        "--privileges",
        "host",
    )
    tried, kinds = text.split()
    assert tried == "tried"
    assert int(kinds) > 30


def test_options_and_sysctls_that_are_set_are_recorded() -> None:
    text = on_stack(
        f"echo option sysctl > {KINDS}; echo 1 > /proc/sys/net/ipv4/tcp_ecn; "
        "python3 -c 'import socket; socket.socket().setsockopt(6, 1, 1)'; "
        "cat /proc/net/guise/events"
    )
    sysctl, option = parse(text)
    assert sysctl.values["name"] == "tcp_ecn"
    assert (option["detail"], option["count"]) == (6, 1)


def test_datagrams_are_recorded() -> None:
    text = on_stack(
        f"echo udp-sent udp-received udp-receive-drop > {KINDS}; "
        'python3 -c \'import socket; s = socket.socket(type=2); s.bind(("127.0.0.1", 0)); '
        's.setsockopt(1, 8, 4096); [s.sendto(b"x" * 1000, s.getsockname()) for i in range(9)]\'; '
        "cat /proc/net/guise/events; grep ^Udp: /proc/net/snmp"
    )
    events = [line for line in text.splitlines() if not line.startswith("Udp:")]
    count = counters("\n".join(line for line in text.splitlines() if line.startswith("Udp:")))
    kinds = [r.kind for r in parse("\n".join(events))]
    assert kinds.count("udp-sent") == count["UdpOutDatagrams"] == 9
    assert kinds.count("udp-receive-drop") == count["UdpRcvbufErrors"] > 0
    assert kinds.count("udp-received") + kinds.count("udp-receive-drop") == 9


def test_a_kind_that_is_none_is_refused_and_nothing_changes() -> None:
    text = on_stack(f"echo rto > {KINDS}; echo state nothing > {KINDS} || cat {KINDS}")
    assert text.split() == ["rto"]
