# SPDX-License-Identifier: GPL-2.0-only
"""However a program on guise ends, whichever process is killed: no interface, nftables table,
sysctl change, journal or process is left. The guise fixture looks for all of these after each
test; here the tests look themselves, before anything else could have cleaned up."""

import contextlib
import json
import os
import pty
import select
import signal
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from topology.content import blob
from topology.holders import carriers_of, wardens
from topology.leftovers import Leftovers
from topology.namespace import Namespace
from topology.process import DEADLINE, Process
from topology.side import PYTHON, GuiseSide, program, wait_until_says

WAIT = [PYTHON, program("hold.py"), "wait", "5000"]
WITH_AND_WITHOUT_PARENT = pytest.mark.parametrize("options", [[], ["-v"]], ids=["exec", "verbose"])


@dataclass
class Drain:
    """A server in far that reads what comes, and knows when its connection has ended."""

    listener: socket.socket
    connection: socket.socket = field(default_factory=socket.socket)
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def port(self) -> int:
        port: int = self.listener.getsockname()[1]
        return port

    def serve(self) -> None:
        with contextlib.suppress(OSError):
            self.connection, _ = self.listener.accept()
            while self.connection.recv(1 << 20):
                pass
        self.ended.set()

    def close(self) -> None:
        for end in (self.listener, self.connection):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


@pytest.fixture
def drain(far: Namespace) -> Iterator[Drain]:
    with far.socket() as listener:
        listener.settimeout(None)
        listener.bind(("0.0.0.0", 0))
        listener.listen()
        drain = Drain(listener)
        thread = threading.Thread(target=drain.serve, daemon=True)
        thread.start()
        try:
            yield drain
        finally:
            drain.close()
            thread.join(DEADLINE)


@contextlib.contextmanager
def waiting(guise: GuiseSide, options: list[str]) -> Iterator[Process]:
    """A program that sleeps in the stack."""
    with guise.start(*WAIT, options=options) as process:
        wait_until_says(process, "ready")
        assert guise.far.processes("guise-holder"), "the stack has a holder"
        yield process


@contextlib.contextmanager
def connected(guise: GuiseSide, drain: Drain, does: str, options: list[str]) -> Iterator[Process]:
    """A program that sends, and is inside the stack nearly all the time, or waits to receive."""
    words = [PYTHON, program("hold.py"), does, guise.peer, str(drain.port)]
    with guise.start(*words, options=options) as process:
        wait_until_says(process, "ready")
        yield process


@pytest.mark.also_without_root
@WITH_AND_WITHOUT_PARENT
def test_ctrl_c(guise: GuiseSide, leftovers: Leftovers, options: list[str]) -> None:
    """The program gets the signal, and the holder does not."""
    keyboard, screen = pty.openpty()
    with open(keyboard, "wb", buffering=0) as keys, open(screen, "rb", buffering=0) as tty:
        process = guise.start(*WAIT, options=options, terminal=tty.fileno())
        with process:
            wait_until_says(process, "ready")
            keys.write(b"\x03")
            done = process.finish()
            leftovers.wait_until_none()
    assert done.status == 128 + signal.SIGINT, done
    assert "KeyboardInterrupt" in done.errors


@pytest.mark.also_without_root
@WITH_AND_WITHOUT_PARENT
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=lambda n: n.name)
def test_program_is_killed_while_it_waits(
    guise: GuiseSide, leftovers: Leftovers, options: list[str], number: signal.Signals
) -> None:
    with waiting(guise, options) as process:
        process.signal(number)
        assert process.finish().status == 128 + number
        leftovers.wait_until_none()


@WITH_AND_WITHOUT_PARENT
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=lambda n: n.name)
def test_peer_of_a_killed_program_is_told(
    guise: GuiseSide,
    drain: Drain,
    leftovers: Leftovers,
    options: list[str],
    number: signal.Signals,
) -> None:
    """Its connection ends, as that of any killed program."""
    with connected(guise, drain, "receive", options) as process:
        process.signal(number)
        assert process.finish().status == 128 + number
        assert drain.ended.wait(DEADLINE), "the peer's connection has ended"
        leftovers.wait_until_none()


@pytest.mark.also_without_root
@WITH_AND_WITHOUT_PARENT
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=lambda n: n.name)
def test_program_is_killed_while_it_sends(
    guise: GuiseSide,
    drain: Drain,
    leftovers: Leftovers,
    options: list[str],
    number: signal.Signals,
) -> None:
    """It may die in the middle of a change to the stack, which then is lost; the host is as it
    was, nevertheless."""
    with connected(guise, drain, "send", options) as process:
        process.signal(number)
        assert process.finish().status == 128 + number
        leftovers.wait_until_none()


def kill(warden: int) -> None:
    """Kills a holder, and waits until all of it is dead: its carrier ends after it."""
    with contextlib.ExitStack() as opened:
        dying: list[int] = []
        for pid in (warden, *carriers_of(warden)):
            with contextlib.suppress(ProcessLookupError):  # it has ended already
                dying.append(os.pidfd_open(pid))
                opened.callback(os.close, dying[-1])
        with contextlib.suppress(ProcessLookupError):
            os.kill(warden, signal.SIGKILL)
        for process in dying:
            assert select.select([process], [], [], DEADLINE)[0], f"{warden} is dead"


def holder_of(guise: GuiseSide) -> int:
    (holder,) = wardens(guise.far)
    return holder


def clean_up(guise: GuiseSide) -> None:
    """Any guise command does, and says so if it cannot."""
    done = guise.call("ls").expect()
    assert not done.errors, done


@WITH_AND_WITHOUT_PARENT
def test_holder_is_killed_while_the_program_waits(
    guise: GuiseSide, leftovers: Leftovers, options: list[str]
) -> None:
    """What the holder would have undone, the next guise undoes, program or no program."""
    with waiting(guise, options) as process:
        kill(holder_of(guise))
        clean_up(guise)
        assert not leftovers.now()
        process.signal(signal.SIGTERM)
        process.finish()
    assert not leftovers.now()


def test_holder_is_killed_while_the_program_sends(
    guise: GuiseSide, drain: Drain, leftovers: Leftovers
) -> None:
    with connected(guise, drain, "send", []) as process:
        kill(holder_of(guise))
        clean_up(guise)
        assert not leftovers.now()
        process.signal(signal.SIGTERM)
        process.finish()
        drain.close()
    assert not leftovers.now()


def test_members_go_on_when_their_holder_is_killed(guise: GuiseSide, far: Namespace) -> None:
    """Waiting threads do the stack's work, so no pump is needed. Only joining is impossible."""
    with guise.serve(PYTHON, program("echo_server.py"), "5000", says="ready"):
        with far.socket() as early:
            early.connect((guise.address, 5000))
            echoes(early)
            kill(holder_of(guise))
            echoes(early)
        with far.socket() as late:
            late.connect((guise.address, 5000))
            echoes(late)
    clean_up(guise)


def echoes(connection: socket.socket) -> None:
    for size in (1, 50_000, 400_000):
        sent = blob(size)
        thread = threading.Thread(target=connection.sendall, args=(sent,))
        thread.start()
        got = b""
        while len(got) < size:
            piece = connection.recv(65536)
            assert piece, f"ended after {len(got)} bytes of {size}"
            got += piece
        thread.join()
        assert got == sent


@pytest.mark.also_without_root
@pytest.mark.parametrize("holder_first", [True, False], ids=["holder-first", "program-first"])
def test_holder_and_program_are_killed(
    guise: GuiseSide, leftovers: Leftovers, holder_first: bool
) -> None:
    with waiting(guise, []) as process:
        holder = holder_of(guise)
        for journal in guise.run_dir.glob("*.json"):
            assert json.loads(journal.read_text())["owner"]["pid"] == holder
        if not holder_first:
            process.signal(signal.SIGKILL)
        kill(holder)
        process.signal(signal.SIGKILL)
        process.finish()
    clean_up(guise)
    leftovers.wait_until_none()  # passt ends by itself


def test_a_stack_lives_on_when_the_holder_of_another_is_killed(
    guise: GuiseSide, far: Namespace, leftovers: Leftovers
) -> None:
    """What both needed of the host is left to the one that still needs it."""
    with waiting(guise, []):
        other = GuiseSide(far, guise.run_dir, number=3)
        before = set(wardens(far))
        with other.serve(*WAIT, says="ready"):
            (holder,) = set(wardens(far)) - before
            kill(holder)
        clean_up(guise)
        assert far.reaches(guise.address, 5000)
    leftovers.wait_until_none()
