# SPDX-License-Identifier: GPL-2.0-only
"""A user without root and without flags: the stack goes out through passt, which comes and goes
with it."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from topology.content import Content
from topology.holders import wardens
from topology.killing import kill_clients
from topology.leftovers import Leftovers
from topology.namespace import Namespace
from topology.ping import PATIENT, numbers
from topology.process import eventually
from topology.side import PYTHON, proof, wait_until_says
from topology.user import User, UserSide, make_way_out, through_passt

PASST = ("passt", "passt.avx2")


@pytest.fixture
def user(far: Namespace, run_dir: Path, tmp_path: Path, leftovers: Leftovers) -> Iterator[UserSide]:
    person = User(tmp_path / "home")
    make_way_out(far)
    leftovers.look()
    with person.shares(tmp_path):
        yield UserSide(far, run_dir, person)


def passts(far: Namespace) -> list[int]:
    return [pid for name in PASST for pid in far.processes(name)]


def test_a_user_without_flags_goes_out_through_passt(user: UserSide, content: Content) -> None:
    user.options = []
    for peer in (user.peer, f"[{user.peer6}]"):
        fetch = ["curl", "-sS", f"http://{peer}:{content.port}/blob"]
        with user.start(*fetch, options=["-v"]) as process:
            done = process.finish().expect()
        assert hashlib.sha256(done.stdout).hexdigest() == content.sha256
        assert through_passt(done) and proof(done)["escaped"] == "0"
        assert proof(done)["connections"] == "1", done
        assert len(done.errors.splitlines()) == 1, done


def test_what_ends_at_passt_is_said(user: UserSide) -> None:
    for flags in (["--cc", "bbr"], ["--mptcp"], ["--cc", "reno", "--mptcp"]):
        with user.start("true", options=flags) as process:
            done = process.finish().expect()
        assert len(done.errors.splitlines()) == 1, done
        assert f"{flags[0]} " in done.errors and "ends at passt" in done.errors, done
        assert "guise setup" in done.errors, done


def sockets_gone(user: UserSide) -> bool:
    return not list(user.run_dir.glob("*.sock"))


@pytest.mark.parametrize("victim", ["program", "holder", "both"])
def test_passt_ends_with_the_stack_whoever_is_killed(user: UserSide, victim: str) -> None:
    with user.start("sh", "-c", "echo runs; exec sleep 1000") as process:
        wait_until_says(process, "runs")
        assert len(passts(user.far)) == 1
        if victim != "program":
            for pid in wardens(user.far):
                os.kill(pid, signal.SIGKILL)
            # A signal is lost if the holder is killed before it has passed it on.
            eventually(lambda: not user.far.processes("guise-holder"), "the holder is gone")
        if victim != "holder":
            process.signal(signal.SIGKILL)
            process.finish()
        else:
            process.signal(signal.SIGTERM)
            process.finish()
        eventually(lambda: not passts(user.far), "passt has ended")
        if victim != "program":
            # What the holder would have removed, any guise command does: its socket.
            assert list(user.run_dir.glob("*.sock"))
            eventually(lambda: user.call("ls").expect() and sockets_gone(user), "it is removed")


def test_a_user_pings_through_passt(user: UserSide, tmp_path: Path, leftovers: Leftovers) -> None:
    """passt asks with a socket that the host lets whole groups have, by a sysctl."""
    # Debian's own has a privilege of its own, and so the loader would not take guise with it.
    ping = tmp_path / "ping"
    shutil.copyfile(shutil.which("ping") or "ping", ping)
    ping.chmod(0o755)
    user.far.run("sysctl", "-w", "net.ipv4.ping_group_range=0 2000000").expect()
    leftovers.look()
    for peer in (user.peer, user.peer6):
        done = user.run(ping, *PATIENT, "-c", "3", "-i", "0.1", peer)
        assert numbers(done) == ["1", "2", "3"], done
    done = user.run(ping, *PATIENT, "-c", "2", "-i", "0.1", "127.0.0.1")
    assert numbers(done) == ["1", "2"], done


def only_passt(far: Namespace) -> int:
    [pid] = passts(far)
    return pid


def test_passt_that_hangs_is_ended_with_the_stack(user: UserSide, content: Content) -> None:
    script = f"""
import socket, sys
socket.create_connection(({user.peer!r}, {content.port}), 30).close()
print("has been there", flush=True)
sys.stdin.readline()
"""
    with user.start(PYTHON, "-c", script, stdin=-1) as process:
        wait_until_says(process, "has been there")
        os.kill(only_passt(user.far), signal.SIGSTOP)
        assert process.stdin
        process.stdin.close()
        process.finish().expect()
        eventually(lambda: not passts(user.far), "passt has ended")


def test_a_connection_that_passt_is_slow_to_see_is_made(user: UserSide, content: Content) -> None:
    """Debian 12's passt hangs when it reads two SYNs of one connection together."""
    script = f"""
import select, socket, sys
where = ({user.peer!r}, {content.port})
socket.create_connection(where, 30).close()
print("has been there", flush=True)
sys.stdin.readline()
with socket.socket() as s:
    s.setblocking(False)
    s.connect_ex(where)
    while not s.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 8)[2]:
        pass
    print("asked twice", flush=True)
    select.select([], [s], [], 30)
    s.settimeout(30)
    s.sendall(b"GET /blob HTTP/1.0\\r\\n\\r\\n")
    print(s.recv(8))
"""
    with user.start(PYTHON, "-c", script, stdin=-1) as process:
        wait_until_says(process, "has been there")
        os.kill(only_passt(user.far), signal.SIGSTOP)
        assert process.stdin
        process.stdin.write(b"\n")
        process.stdin.close()
        wait_until_says(process, "asked twice")
        os.kill(only_passt(user.far), signal.SIGCONT)
        done = process.finish().expect()
    assert "HTTP/1." in done.text, done


def test_passt_that_dies_in_mid_transfer_is_said(user: UserSide, content: Content) -> None:
    """A connection waits, as with an unplugged cable; a new connection fails."""
    script = f"""
import socket, sys
with socket.create_connection(({user.peer!r}, {content.port}), 30) as s:
    s.sendall(b"GET /blob HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
    s.recv(1000)
    print("flows", flush=True)
    sys.stdin.readline()
    s.settimeout(1)
    try:
        while s.recv(1 << 20):
            pass
        print("ended")
    except TimeoutError:
        print("waits")
with open("/dev/null") as carrier, socket.socket() as s:
    s.settimeout(1)
    try:
        s.connect(({user.peer!r}, {content.port}))
        print("connected")
    except OSError as error:
        print("no way:", error)
"""
    reader, writer = os.pipe()
    with (
        os.fdopen(reader, "rb") as stdin,
        os.fdopen(writer, "wb") as tell,
        user.start(PYTHON, "-c", script, stdin=stdin, options=["-v"]) as process,
    ):
        wait_until_says(process, "flows")
        for pid in passts(user.far):
            os.kill(pid, signal.SIGKILL)
        eventually(lambda: "lost" in process.said().errors, "the loss is said")
        tell.write(b"\n")
        tell.flush()
        done = process.finish().expect()
    assert "waits\nno way:" in done.text, done
    said = [line for line in done.errors.splitlines() if "is lost" in line]
    assert len(said) == 1 and "passt has ended" in said[0] and "eth0" in said[0], done


def test_a_download_does_not_wait_for_what_passt_drops(user: UserSide, far: Namespace) -> None:
    """Each stall would take passt 2 s; three times as much as any socket holds has 30 s."""
    send = ["socat", "-u", "OPEN:/dev/zero,readbytes=100000000", "TCP4-LISTEN:7000,reuseaddr"]
    with far.start("socat", "-d", "-d", *send[1:]) as server:
        wait_until_says(server, "listening")
        count = ["sh", "-c", f"socat -u TCP4:{user.peer}:7000 - | wc -c"]
        done = user.run(*count, seconds=100).expect()
    assert done.text.strip() == "100000000", done


def test_killed_programs_leave_passt_in_step(user: UserSide) -> None:
    """At passt's own MTU, at which a frame is mostly written in two parts."""
    kill_clients(user, 150)
