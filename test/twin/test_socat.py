# SPDX-License-Identifier: GPL-2.0-only
"""socat joins a file, or its own stdin and stdout, to a socket."""

from pathlib import Path

import pytest
from topology.content import blob
from topology.namespace import Namespace
from topology.process import eventually
from topology.side import GuiseSide, HostSide, Side, wait_until_says

BLOB = blob(3_000_000)
LISTENING = "listening on"
FAMILIES = pytest.mark.parametrize("family", ["4", "6"])


def bracketed(family: str, address: str, address6: str) -> str:
    return address if family == "4" else f"[{address6}]"


@pytest.mark.also_without_root
@FAMILIES
def test_sends_a_file(
    host: HostSide, guise: GuiseSide, far: Namespace, tmp_path: Path, family: str
) -> None:
    source = tmp_path / "source"
    source.write_bytes(BLOB)

    def send(side: Side) -> bytes:
        listen = f"TCP{family}-LISTEN:7000,reuseaddr"
        with far.start("socat", "-d", "-d", "-u", listen, "STDOUT") as sink:
            wait_until_says(sink, LISTENING)
            peer = bracketed(family, side.peer, side.peer6)
            side.run("socat", "-u", f"OPEN:{source}", f"TCP{family}:{peer}:7000").expect()
            return sink.finish().expect().stdout

    on_host = send(host)
    assert on_host == BLOB
    assert send(guise) == on_host


@FAMILIES
def test_listens_and_receives(
    host: HostSide, guise: GuiseSide, far: Namespace, family: str
) -> None:
    def receive(side: Side) -> bytes:
        listen = f"TCP{family}-LISTEN:7000,reuseaddr"
        with side.serve("socat", "-d", "-d", "-u", listen, "STDOUT", says=LISTENING) as sink:
            address = bracketed(family, side.address, side.address6)
            far.run("socat", "-u", "STDIN", f"TCP{family}:{address}:7000", stdin=BLOB).expect()
            return sink.finish().expect().stdout

    on_host = receive(host)
    assert on_host == BLOB
    assert receive(guise) == on_host


def test_carries_both_directions_until_both_have_ended(
    host: HostSide, guise: GuiseSide, far: Namespace
) -> None:
    """Each side sends all it has, says so with a FIN, and goes on reading."""

    def exchange(side: Side) -> tuple[int, bytes]:
        echo = ["socat", "-d", "-d", "TCP4-LISTEN:7000,reuseaddr", "EXEC:cat"]
        with far.start(*echo) as server:
            wait_until_says(server, LISTENING)
            done = side.run("socat", "-t", "30", "-", f"TCP4:{side.peer}:7000", stdin=BLOB)
            return done.status, done.stdout

    on_host = exchange(host)
    assert on_host == (0, BLOB)
    assert exchange(guise) == on_host


@pytest.mark.also_without_root
def test_datagrams(host: HostSide, guise: GuiseSide, far: Namespace) -> None:
    def ask(side: Side) -> bytes:
        echo = ["socat", "-d", "-d", "UDP4-RECVFROM:7000", "EXEC:cat"]
        with far.start(*echo) as server:
            wait_until_says(server, "receiving on")
            # A datagram has no end that a client could wait for.
            words = ["socat", "-t", "60", "-", f"UDP4-CONNECT:{side.peer}:7000"]
            with side.start(*words, stdin=b"a datagram") as client:
                datagram = eventually(lambda: client.said().stdout, "the datagram comes back")
                side.check(client)
                return datagram

    on_host = ask(host)
    assert on_host == b"a datagram"
    assert ask(guise) == on_host


@pytest.mark.also_without_root
def test_unix_sockets_stay_on_the_host(
    host: HostSide, guise: GuiseSide, far: Namespace, tmp_path: Path
) -> None:
    """A program between a Unix socket of the host and a TCP socket of the stack."""

    def relay(side: Side) -> bytes:
        path = tmp_path / side.name
        words = ["socat", "-d", "-d", "-u", f"UNIX-LISTEN:{path}", f"TCP4:{side.peer}:7000"]
        with far.start("socat", "-d", "-d", "-u", "TCP4-LISTEN:7000,reuseaddr", "STDOUT") as sink:
            wait_until_says(sink, LISTENING)
            with side.serve(*words, says=LISTENING) as between:
                side.check(between)
                far.run("socat", "-u", "STDIN", f"UNIX-CONNECT:{path}", stdin=BLOB).expect()
                between.finish().expect()
            return sink.finish().expect().stdout

    on_host = relay(host)
    assert on_host == BLOB
    assert relay(guise) == on_host
