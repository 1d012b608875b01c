# SPDX-License-Identifier: GPL-2.0-only
"""guise check-mptcp says whether a connection is Multipath TCP end to end, which paths it has, and
what fell back and why, whatever stands between.

    a stack ──tap── far ──cable── near: guise check-mptcp --host --serve
    10.77.2.2 ─tap─ (the middlebox)     10.77.1.2
    10.77.3.2

far forwards, and translates the stack's addresses.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from topology.content import Content
from topology.leftovers import Leftovers
from topology.namespace import Namespace, Word
from topology.process import DEADLINE, Finished, Process, eventually
from topology.side import GUISE, PYTHON, GuiseSide, HostSide, program, wait_until_says

pytestmark = pytest.mark.skipif(
    not Path("/proc/sys/net/mptcp/enabled").exists(), reason="the host's kernel has no MPTCP"
)

IPPROTO_MPTCP = 262
PORT = 5080
NAT = "a NAT between translates"
# Which segments lose the option, for nft.
SYN, ANSWER, LATER = "& (syn | ack) == syn", "& (syn | ack) == (syn | ack)", "& syn == 0"


@dataclass
class Check:
    """guise check-mptcp on a stack of its own, whose links are two taps in far."""

    side: GuiseSide
    far: Namespace
    near: Namespace

    def text(self, *words: Word, where: str | None = None) -> Finished:
        where = where or f"{self.near_address}:{PORT}"
        command = ["check-mptcp", *self.side.options, *words, where]
        return self.far.run(*self.side.command(*command), env=self.side.environment())

    def json(self, *words: Word, where: str | None = None, status: int = 0) -> dict[str, Any]:
        finished = self.text("--json", *words, where=where).expect(status)
        [line] = finished.text.splitlines()  # and nothing else
        answer: dict[str, Any] = json.loads(line)
        assert answer["mptcp"] == (status == 0), finished
        return answer

    near_address = "10.77.1.2"


@pytest.fixture
def check(far: Namespace, host: HostSide, run_dir: Path, leftovers: Leftovers) -> Check:
    host.near.ip("route", "add", "default", "via", host.peer)
    host.near.run("ip", "mptcp", "limits", "set", "subflows", "4").expect()
    leftovers.look()
    return Check(GuiseSide(far, run_dir, paths=2), far, host.near)


@pytest.fixture
def single(check: Check) -> Check:
    return Check(GuiseSide(check.far, check.side.run_dir), check.far, check.near)


@contextlib.contextmanager
def serving(where: Namespace, *words: Word) -> Iterator[Process]:
    command = [GUISE, "check-mptcp", "--host", "--serve", *words, str(PORT)]
    with where.start(*command) as server:
        wait_until_says(server, "listening")
        yield server


@pytest.fixture
def server(check: Check) -> Iterator[Process]:
    with serving(check.near) as server:
        yield server


@contextlib.contextmanager
def middlebox(where: Namespace, rule: str) -> Iterator[None]:
    chain = f"type filter hook forward priority 0\n{rule}\n"
    ruleset = f"table inet middlebox {{\nchain between {{\n{chain}}}\n}}\n"
    where.run("nft", "-f", "-", stdin=ruleset.encode()).expect()
    try:
        yield
    finally:
        where.run("nft", "delete table inet middlebox").expect()


def strips(where: str) -> str:
    return f"tcp flags {where} reset tcp option mptcp"


def sentence(answer: dict[str, Any], words: str) -> str:
    """The one that has these words."""
    [found] = [text for text in answer["sentences"] if words in text]
    return str(found)


def test_two_paths_end_to_end_behind_a_nat(check: Check, server: Process) -> None:
    answer = check.json()
    assert answer["verdict"] == "mptcp"
    assert answer["confirmed"]
    assert "end to end, over 2 paths" in answer["headline"]
    paths = {path["local"].split(":")[0]: path for path in answer["subflows"]}
    assert set(paths) == {"10.77.2.2", "10.77.3.2"}
    for path in paths.values():
        assert path["remote"] == f"10.77.1.2:{PORT}"
    assert sum(path["received"] for path in paths.values()) >= 65_536
    assert answer["syn"] == answer["answer"] == {"mp_capable": True, "version": 1}
    assert {"mp_capable", "dss"} <= set(answer["options_sent"])
    assert "dss" in answer["options_received"]
    assert [join["result"] for join in answer["joins"]] == ["joined"]
    assert answer["counters"]["MPJoinSynAckRx"] == 1
    assert answer["peer"]["protocol"] == "mptcp"
    assert answer["peer"]["subflows"] == 2
    assert answer["peer"]["from"].startswith("10.77.1.1:")  # far's, which translates
    sentence(answer, NAT)
    sentence(answer, "Data of both directions went over it")
    sentence(answer, "has the same key")
    eventually(lambda: ": Multipath TCP, paths: 2\n" in server.said().text, "the server says it")


def test_text_says_that_there_is_one_path(single: Check, server: Process) -> None:
    said = single.text().expect().text
    assert said.startswith(
        f"10.77.1.2:{PORT}: Multipath TCP works end to end, and there is one path\n"
    )
    assert "  10.77.2.2:" in said


def test_ipv6(single: Check, server: Process) -> None:
    single.near.ip("-6", "route", "add", "default", "via", "fd77:0:0:1::1")
    answer = single.json(where=f"[fd77:0:0:1::2]:{PORT}")
    assert answer["verdict"] == "mptcp"
    assert answer["subflows"][0]["remote"] == f"[fd77:0:0:1::2]:{PORT}"
    assert answer["syn"] == answer["peer"]["syn"] == {"mp_capable": True, "version": 1}


@pytest.mark.parametrize(
    ("rule", "verdict", "words"),
    [
        (SYN, "stripped-syn", "The option was sent and did not arrive"),
        (ANSWER, "stripped-answer", "answered with it, and that did not arrive"),
        (LATER, "stripped-later", "on nothing that came behind"),
        (f"{LATER} ip saddr 10.77.1.2", "stripped-later", "saw options behind the handshake"),
        (f"{LATER} ip daddr 10.77.1.2", "stripped-later", "on nothing that came behind"),
    ],
    ids=["syn", "answer", "later", "later-in", "later-out"],
)
def test_middlebox_that_strips_the_option_is_told_by_where_it_does(
    check: Check, server: Process, rule: str, verdict: str, words: str
) -> None:
    with middlebox(check.far, strips(rule)):
        answer = check.json(status=1)
    assert answer["verdict"] == verdict
    sentence(answer, words)
    assert answer["syn"] == {"mp_capable": True, "version": 1}
    assert answer["answer"]["mp_capable"] == (verdict == "stripped-later")
    assert answer["peer"]["syn"]["mp_capable"] == (verdict != "stripped-syn")
    assert answer["bytes_received"] > 65_536  # and the data came
    fell = [name for name in answer["counters"] if "Fallback" in name]
    assert len(fell) == 1, answer


def test_option_stripped_in_the_middle_is_no_multipath_tcp(check: Check, server: Process) -> None:
    """Both ends had it, and data had gone over it."""
    rule = f"tcp flags {LATER} quota over 20000 bytes reset tcp option mptcp"
    with middlebox(check.far, rule):
        finished = check.text("--json")
    answer = json.loads(finished.text)
    assert answer["verdict"] in ("stripped-later", "broke"), finished
    assert finished.status == (1 if answer["verdict"] == "stripped-later" else 6)
    assert "dss" in answer["options_received"]


def test_middlebox_that_rewrites_data_is_found_by_the_checksum(
    single: Check, server: Process
) -> None:
    """One packet of the body, with TCP's own checksum put right."""
    rule = "ip daddr 10.77.1.2 meta length > 800 limit rate 1/hour burst 1 packets @th,960,16 set 0"
    with middlebox(single.far, rule):
        answer = single.json("--sysctl", "net.mptcp.checksum_enabled=1", status=1)
    assert answer["verdict"] == "stripped-later"
    assert "MP_FAIL" in sentence(answer, "do not fit their checksum")


def test_syn_with_the_option_that_is_dropped(check: Check, server: Process) -> None:
    with middlebox(check.far, "tcp flags & (syn | ack) == syn tcp option mptcp exists drop"):
        answer = check.json(status=1)
    assert answer["verdict"] == "dropped"
    sentence(answer, "drops SYNs that have the option")


def test_further_path_that_does_not_work_is_named(check: Check, server: Process) -> None:
    with middlebox(check.far, "ip saddr 10.77.3.2 drop"):
        answer = check.json()
    assert "there is one path" in answer["headline"]
    assert [join["result"] for join in answer["joins"]] == ["no-answer"]
    assert "from 10.77.3.2:" in sentence(answer, "got no answer")
    with middlebox(check.far, f"ip saddr 10.77.3.2 {strips(SYN)}"):
        answer = check.json()
    assert "there is one path" in answer["headline"]
    [join] = answer["joins"]
    assert join["result"] in ("stripped", "reset")


def test_address_that_the_other_end_tells_of(check: Check, server: Process) -> None:
    check.near.ip("address", "add", "10.77.8.1/32", "dev", "lo")
    check.near.run("ip", "mptcp", "endpoint", "add", "10.77.8.1", "signal").expect()
    answer = check.json()
    assert answer["add_addr_received"]
    sentence(answer, "ADD_ADDR")


def test_plain_server_is_not_told_from_a_middlebox_without_the_other_end(
    check: Check, content: Content
) -> None:
    answer = check.json(where=f"{check.side.peer}:{content.port}", status=1)
    assert answer["verdict"] == "plain-or-stripped"
    assert answer["peer"] is None
    sentence(answer, "--serve at the other end tells them apart")
    assert answer["bytes_received"] > 0


def test_other_end_whose_kernel_has_it_off_says_so(check: Check) -> None:
    check.near.run("sysctl", "-w", "net.mptcp.enabled=0").expect()
    with serving(check.near) as server:
        assert "plain TCP answers" in server.said().errors
        answer = check.json(status=1)
    assert answer["verdict"] == "peer-plain"
    sentence(answer, "saw the option on the SYN and answered without")


def test_peer_of_version_0(single: Check) -> None:
    peer = single.far.start(PYTHON, program("mptcp_version_0.py"), "old0", "10.77.9.2")
    with peer:
        wait_until_says(peer, "ready")
        single.far.ip("link", "set", "old0", "up")
        single.far.ip("route", "add", "10.77.9.0/24", "dev", "old0")
        answer = single.json(where="10.77.9.2:80", status=1)
    assert answer["verdict"] == "other-version"
    assert answer["answer"] == {"mp_capable": True, "version": 0}
    sentence(answer, "RFC 6824")
    assert answer["bytes_received"] > 0


def pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


@pytest.mark.parametrize(
    ("onward", "words"),
    [(IPPROTO_MPTCP, "saw different keys"), (0, "answers in its place")],
    ids=["mptcp", "tcp"],
)
def test_proxy_in_between_is_not_end_to_end(
    single: Check, server: Process, onward: int, words: str
) -> None:
    """It takes the connections to that port, has Multipath TCP with this side, and goes on with
    a connection of its own."""
    nat = f"ip daddr 10.77.1.2 tcp dport {PORT} redirect to :6080"
    ruleset = (
        f"table ip proxy {{\nchain in {{\ntype nat hook prerouting priority -110\n{nat}\n}}\n}}"
    )
    with contextlib.ExitStack() as sockets:
        with single.far.entered():
            listener, there = (
                sockets.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol))
                for protocol in (IPPROTO_MPTCP, onward)
            )
        listener.bind(("0.0.0.0", 6080))
        listener.listen()
        listener.settimeout(DEADLINE)

        def serve() -> None:
            here, _ = listener.accept()
            there.connect(("10.77.1.2", PORT))
            back = threading.Thread(target=pump, args=(there, here))
            back.start()
            with here:
                pump(here, there)
                back.join()

        proxy = threading.Thread(target=serve)
        proxy.start()
        single.far.run("nft", "-f", "-", stdin=ruleset.encode()).expect()
        try:
            answer = single.json(status=1)
        finally:
            single.far.run("nft", "delete table ip proxy").expect()
        proxy.join()
    assert answer["verdict"] == "not-end-to-end"
    sentence(answer, words)


def test_refused_no_answer_and_unknown_name(single: Check) -> None:
    assert single.json(status=3)["verdict"] == "refused"
    with single.near.deaf("cable"):
        answer = single.json("--timeout", "500ms", status=4)
        assert answer["verdict"] == "no-answer"
        sentence(answer, "within 0.5 s")
    answer = single.json("--dns", "10.77.1.2", where="no.such.test", status=5)
    assert answer["verdict"] == "name-unknown"


def test_host_is_checked_and_told_where_it_has_none(check: Check, server: Process) -> None:
    words: list[Word] = [GUISE, "check-mptcp", "--host", "--json", f"10.77.1.2:{PORT}"]
    answer = json.loads(check.far.run(*words).expect().text)
    assert answer["verdict"] == "mptcp"
    assert [path["local"].split(":")[0] for path in answer["subflows"]] == ["10.77.1.1"]
    check.far.run("sysctl", "-w", "net.mptcp.enabled=0").expect()
    try:
        answer = json.loads(check.far.run(*words).expect(1).text)
    finally:
        check.far.run("sysctl", "-w", "net.mptcp.enabled=1").expect()
    assert answer["verdict"] == "not-asked"


def test_without_rights_the_socket_alone_is_asked(check: Check) -> None:
    """And the other end tells less: neither may see packets."""
    drop: list[Word] = ["setpriv", "--bounding-set=-net_raw", "--inh-caps=-net_raw"]
    serve: list[Word] = [*drop, GUISE, "check-mptcp", "--host", "--serve", str(PORT)]
    ask: list[Word] = [*drop, GUISE, "check-mptcp", "--host", "--json", f"10.77.1.2:{PORT}"]
    with check.near.start(*serve) as server:
        wait_until_says(server, "listening")
        assert "CAP_NET_RAW" in server.said().errors
        answer = json.loads(check.far.run(*ask).expect().text)
    assert answer["verdict"] == "mptcp"
    assert not answer["packets_seen"]
    assert answer["peer"]["syn"] is None


def test_stack_serves_and_a_named_stack_asks(check: Check, tmp_path: Path) -> None:
    serve = ["check-mptcp", *check.side.options, "--serve", str(PORT)]
    environment = check.side.environment()
    with check.far.start(*check.side.command(*serve), env=environment) as server:
        wait_until_says(server, "listening")
        words: list[Word] = [GUISE, "check-mptcp", "--host", "--json", f"10.77.2.2:{PORT}"]
        answer = json.loads(check.far.run(*words).expect().text)
    assert answer["verdict"] == "mptcp"
    config = tmp_path / "asks.toml"
    link = '[[link]]\nkind = "tap"\naddresses = ["10.77.4.2/24"]\n'
    config.write_text(f'name = "asks"\n{link}', encoding="ascii")
    check.side.call("up", config).expect()
    try:
        with serving(check.near):
            words = ["check-mptcp", "--stack", "asks", "--json", f"10.77.1.2:{PORT}"]
            answer = json.loads(check.side.call(*words).expect().text)
    finally:
        check.side.call("down", "asks").expect()
    assert answer["verdict"] == "mptcp"
    assert answer["local"].startswith("10.77.4.2:")


def test_curl_asks_too(check: Check, server: Process) -> None:
    said = check.far.run("curl", "-sS", f"http://10.77.1.2:{PORT}/").expect().text
    assert said.startswith("guise-check-mptcp 1\nprotocol tcp\n")
    assert "\nsyn plain\n" in said


def test_strangers_do_not_keep_others_from_an_answer(single: Check, server: Process) -> None:
    """More connections than there are places, which say nothing, nonsense, or too much."""
    nonsense = (
        b"",
        b"\0" * 100,
        b"GET / HTTP/1.1\r\nX: " + b"y" * 8000,
        b"POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 999999999\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 1000\r\n\r\nfew",
        b"GET / HTTP/1.1\r\n\r\n" * 60,
        b"\r\n\r\nHTTP/1.1 200\r\n\r\n",
    )
    with contextlib.ExitStack() as strangers:
        for number in range(400):
            stranger = strangers.enter_context(single.far.socket())
            stranger.connect(("10.77.1.2", PORT))
            stranger.sendall(nonsense[number % len(nonsense)])
        answer = single.json()
        assert answer["verdict"] == "mptcp"
    assert single.json()["verdict"] == "mptcp"
    assert server.running()


FIRST = b"guise-check-mptcp 1\n"


def ours(body: bytes, length: int | None = None) -> bytes:
    """As guise check-mptcp --serve answers, perhaps with another length."""
    length = len(body) if length is None else length
    head = f"HTTP/1.1 200 OK\r\nServer: guise-check-mptcp\r\nContent-Length: {length}\r\n\r\n"
    return head.encode() + body


def says(*pieces: bytes) -> Callable[[socket.socket], None]:
    def talk(connection: socket.socket) -> None:
        connection.recv(65536)
        for piece in pieces:
            connection.sendall(piece)

    return talk


def talks_for_ever(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while True:
            connection.sendall(b"x" * 65536)


@pytest.mark.parametrize(
    "talk",
    [
        talks_for_ever,
        says(bytes(range(256)) * 40),
        says(ours(FIRST + b"subflow x\n" * 9000, 999_999_999)),
        says(ours(FIRST, 100), b"protocol mptcp\n\x1b[2J"),
        says(ours(FIRST + b"from \x1b]0;x\a\nsyn capable \x1b[2J\nsubflow \x1b[2J 1.1.1.1:1\n")),
        says(),
    ],
    ids=["endless", "bytes", "too-long", "cut", "escapes", "nothing"],
)
def test_answers_of_any_kind_end_in_bounded_time_and_say_nothing_raw(
    single: Check, talk: Callable[[socket.socket], None]
) -> None:
    """A hostile other end, which claims to be guise check-mptcp --serve."""
    with single.near.socket() as listener:
        listener.bind(("10.77.1.2", PORT))
        listener.listen()

        def serve() -> None:
            with contextlib.suppress(OSError):
                connection, _ = listener.accept()
                with connection:
                    connection.settimeout(DEADLINE)
                    talk(connection)

        server = threading.Thread(target=serve)
        server.start()
        finished = single.text("--timeout", "2s", "--wait", "100ms")
        server.join()
    assert finished.status in (1, 6), finished
    assert "\x1b" not in finished.text
    assert finished.text.startswith(f"10.77.1.2:{PORT}: ")
