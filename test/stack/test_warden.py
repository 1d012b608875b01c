# SPDX-License-Identifier: GPL-2.0-only
"""The holder in two: what the carrier has given up, as the host shows it and as code that runs in
it finds it; and what a carrier that somebody has taken over gets from its warden."""

from __future__ import annotations

import ctypes
import json
import os
import pwd
import random
import re
import signal
import socket
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from topology.holders import carrier_of, comm_of, wardens
from topology.namespace import Word
from topology.process import Process, eventually, run
from topology.side import (
    BUILD,
    DENY,
    GUISE,
    PYTHON,
    GuiseSide,
    program,
    wait_until_says,
)
from topology.user import UserSide

HOLDER = BUILD / "guise-holder"
SERVE = (
    "import socket, sys\n"
    "s = socket.create_server(('127.0.0.1', 0))\n"
    "print('ready', flush=True)\n"
    "sys.stdin.readline()\n"
    "c = socket.create_connection(s.getsockname())\n"
    "a, _ = s.accept()\n"
    "a.sendall(b'alive')\n"
    "print(c.recv(5).decode(), flush=True)\n"
)
OTHER = "daemon"  # a user that every host has
NONE = "0" * 16
ROOT = Path(__file__).resolve().parents[2]
WIRE = (ROOT / "holder" / "warden" / "wire.h").read_text()
REQUESTS = re.findall(r"WARDEN_\w+", WIRE.split("enum warden_what {")[1].split("}")[0])
SETS = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")


def status(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: rest.strip() for name, _, rest in (line.partition(":") for line in lines)}


def space(pid: int | str, kind: str) -> str:
    return os.readlink(f"/proc/{pid}/ns/{kind}")


def maps_a_region(pid: int) -> bool:
    return "/memfd:guise " in Path(f"/proc/{pid}/maps").read_text()


class Stack(NamedTuple):
    process: Process
    warden: int
    member: int  # the program, or its servant


@contextmanager
def stack(run_dir: Path, *options: str, before: tuple[str, ...] = ()) -> Iterator[Stack]:
    """A program that waits for a line, and then uses its stack."""
    env = {"GUISE_RUNDIR": str(run_dir)}
    words = [*before, str(GUISE), "run", "-v", "--link", "none", *options, "--"]
    with Process([*words, PYTHON, "-c", SERVE], stdin=-1, env=env) as process:
        wait_until_says(process, "ready")
        [found] = json.loads(run([GUISE, "ls", "--json"], env=env).expect().text)
        [member] = found["pids"]
        yield Stack(process, found["holder"], member)


def still_works(process: Process) -> str:
    assert process.stdin
    process.stdin.write(b"\n")
    process.stdin.flush()
    done = process.finish().expect()
    assert done.text == "ready\nalive\n", done
    return done.errors


def servant_of(member: int) -> int:
    """That of a program, or itself."""
    if comm_of(member) == "guise-servant":
        return member
    found = run(["pgrep", "-f", f"^guise-holder --servant [0-9]+ [0-9]+ {member} "]).expect()
    return int(found.text)


def assert_confined(pid: int, uid: int) -> None:
    has = status(pid)
    assert {name: has[name] for name in SETS} == dict.fromkeys(SETS, NONE)
    assert has["NoNewPrivs"] == "1" and has["Seccomp"] == "2"
    assert has["Uid"].split() == [str(uid)] * 4
    for kind in ("mnt", "ipc", "uts"):
        assert space(pid, kind) != space("self", kind), kind


def test_the_carrier_has_given_up_all_that_it_can(run_dir: Path) -> None:
    """Root's: it has root's id, and nothing that comes with it."""
    with stack(run_dir) as (process, warden, _):
        carrier = carrier_of(warden)
        assert_confined(carrier, 0)
        assert os.listdir(f"/proc/{carrier}/root") == []
        assert os.readlink(f"/proc/{carrier}/cwd") == "/"
        assert maps_a_region(carrier)
        still_works(process)


def test_the_warden_has_no_region_and_one_thread(run_dir: Path) -> None:
    with stack(run_dir) as (process, warden, _):
        has = status(warden)
        assert has["CapEff"] == status(os.getpid())["CapEff"], "it undoes what was changed"
        assert has["Threads"] == "1"
        assert int(has["VmRSS"].split()[0]) < 8 << 10
        assert not maps_a_region(warden)
        still_works(process)


@pytest.mark.also_without_root
def test_who_is_not_root_gets_the_same_in_a_user_namespace(guise: GuiseSide) -> None:
    uid = guise.user.id if isinstance(guise, UserSide) else 0
    with guise.start("sh", "-c", "echo runs; exec sleep 1000") as process:
        wait_until_says(process, "runs")
        [warden] = wardens(guise.far)
        carrier = carrier_of(warden)
        assert_confined(carrier, uid)
        assert (space(carrier, "user") != space("self", "user")) == bool(uid)
        assert os.listdir(f"/proc/{carrier}/root") == []
        assert bool(int(status(warden)["CapEff"], 16)) == (not uid)
        process.stop()


# ---- whose the stack is -------------------------------------------------------------


def test_a_stack_of_another_user_has_that_users_rights(run_dir: Path) -> None:
    user = pwd.getpwnam(OTHER)
    with stack(run_dir, "--user", OTHER) as (process, warden, member):
        carrier = carrier_of(warden)
        assert_confined(carrier, user.pw_uid)
        has = status(carrier)
        assert has["Gid"].split() == [str(user.pw_gid)] * 4
        groups = os.getgrouplist(OTHER, user.pw_gid)
        assert sorted(map(int, has["Groups"].split())) == sorted(groups)
        assert status(warden)["Uid"].split() == ["0"] * 4
        # Root's program is served.
        servant = servant_of(member)
        assert_confined(servant, user.pw_uid)
        assert maps_a_region(servant)
        still_works(process)


def test_a_user_that_is_not_there_is_named(run_dir: Path) -> None:
    env = {"GUISE_RUNDIR": str(run_dir)}
    done = run([GUISE, "run", "--link", "none", "--user", "nobody-such", "--", "true"], env=env)
    assert done.status == 2
    assert done.errors == (
        'guise: --user nobody-such: user: this host has no user "nobody-such"\n'
    ), done
    assert not list(run_dir.glob("*.sock"))


def test_a_user_has_a_name_or_a_number(run_dir: Path) -> None:
    """And not an empty one, as of a variable that is not set: the stack would be the caller's."""
    number = str(pwd.getpwnam(OTHER).pw_uid)
    with stack(run_dir, "--user", number) as (process, warden, _):
        assert_confined(carrier_of(warden), int(number))
        still_works(process)
    for nobody in "", "4294967294", "4294967295", "99999999999", f"{number}x", "-1":
        done = run([GUISE, "run", "--link", "none", f"--user={nobody}", "--", "true"]).expect(2)
        assert done.errors.startswith("guise: --user") and "user" in done.errors, done
    done = run([GUISE, "up", "-"], stdin=b'name = "x"\nuser = ""\nlink = []\n').expect(2)
    assert 'standard input:2: user: "" is no name of a user' in done.errors, done


def test_only_root_may_name_another_user(tmp_path: Path) -> None:
    os.chmod(tmp_path, 0o777)
    drop = ["setpriv", f"--reuid={OTHER}", f"--regid={OTHER}", "--clear-groups", "--inh-caps=-all"]
    words: list[Word] = [
        *drop,
        "env",
        f"GUISE_RUNDIR={tmp_path}/run",
        GUISE,
        "run",
        "--link",
        "none",
        "--user",
    ]
    done = run([*words, "bin", "--", "true"])
    assert done.status == 2, done
    assert "that belongs to another user (bin); run guise as bin, or as root\n" in done.errors
    done = run([*words, "root", "--", "true"])
    assert "that belongs to another user (root); run guise as root\n" in done.errors
    assert run([*words, OTHER, "--", "echo", "runs"]).expect().text == "runs\n"


# ---- hosts that do not allow it ----------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "left", "said"),
    [
        ("unshare=EPERM", ["namespaces", "files"], "namespaces of its own; an empty root"),
        ("seccomp=ENOSYS", ["calls"], "a filter of system calls"),
        ("mount=EPERM", ["files"], "an empty root"),
    ],
    ids=["namespaces", "seccomp", "mount"],
)
def test_what_a_host_does_not_allow_is_said_once(
    run_dir: Path, rule: str, left: list[str], said: str
) -> None:
    """The stack works, and the rest is given up."""
    before = (str(DENY), rule, "--")
    with stack(run_dir, before=before) as (process, warden, _):
        has = status(carrier_of(warden))
        assert has["CapEff"] == NONE and has["CapPrm"] == NONE and has["NoNewPrivs"] == "1"
        errors = still_works(process)
    assert f"had to do without {said} (guise doctor)" in errors
    quiet = run([*before, GUISE, "run", "--link", "none", "--", "true"]).expect()
    assert quiet.errors == "", quiet
    doctor = json.loads(run([*before, GUISE, "doctor", "--json"]).text)
    [finding] = [f for f in doctor["findings"] if f["name"] == "isolation"]
    assert finding["status"] == "note" and finding["next"]
    assert json.loads(run([*before, HOLDER, "--isolation"]).expect().text) == {"unconfined": left}


# ---- attacks ------------------------------------------------------------------------------


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="it sets registers of x86-64")
def test_code_that_runs_in_the_carrier_gets_nowhere(run_dir: Path, tmp_path: Path) -> None:
    """As if a member had rewritten what the virtual CPU goes on with: calls that are made in the
    carrier's place, with its rights and through its filter."""
    secret = tmp_path / "secret"
    secret.write_text("root's")
    with stack(run_dir) as (process, warden, member):
        words = [PYTHON, program("intruder.py"), carrier_of(warden), warden, member, secret]
        said = run([str(word) for word in words]).expect().text
        lines = dict(line.split(" ", 1) for line in said.splitlines())
        # It does make calls: one that is allowed gives what it gives.
        assert lines.pop("getpid") == str(carrier_of(warden))
        assert len(lines) > 25
        assert set(lines.values()) <= {"EPERM", "ENOSYS"}, lines
        still_works(process)


@pytest.mark.skipif(sys.version_info < (3, 9), reason="no pidfd_open")
@pytest.mark.parametrize("user", [None, OTHER])
def test_a_carrier_that_lies_gains_nothing(run_dir: Path, user: str | None) -> None:
    """Messages of every size and kind on the carrier's own channel, and requests about processes
    that are none of its user's."""
    options = ["--user", user] if user else []
    with stack(run_dir, *options) as (process, warden, _):
        channel = channel_of(carrier_of(warden), warden)
        channel.settimeout(20)
        for size in (0, 1, 15, 17, 64, 5000):
            if size:
                channel.send(b"\1" * size)
                assert result(channel.recv(8192)) < 0, size
        for number in (0, kind("WHATS"), 99, 2**32 - 1):
            assert request(channel, number) < 0, number
        # What comes with descriptors comes with as many as it takes.
        for name in ("CLIENT", "HOLD", "SERVANT"):
            assert request(channel, kind(name)) < 0, name
        for name in ("LISTEN", "SEIZE", "RELEASE"):
            assert request(channel, kind(name), fds=[0, 1]) < 0, name
        assert request(channel, kind("DEADLINE"), about=10_000) < 0, "so late an end"
        for pid in (0, -1, 1, os.getpid(), warden):
            assert user is None or request(channel, kind("SEIZE"), about=pid) < 0, pid
            assert request(channel, kind("KILL_PASST"), about=pid) < 0, pid
        assert user is None or status(1)["TracerPid"] == "0"
        assert request(channel, kind("PROCESS"), about=warden, word=2) < 0, "no other file"
        assert request(channel, kind("GUEST_TABLE"), about=warden) < 0, "no guest"
        noise = random.Random(7)
        for _ in range(500):
            what = noise.choice([0, *range(kind("WHATS"), 300)])
            channel.send(struct.pack("<IiII", what, *(noise.getrandbits(31) for _ in range(3))))
            assert result(channel.recv(8192)) < 0
        channel.close()
        still_works(process)


def kind(name: str) -> int:
    return REQUESTS.index(f"WARDEN_{name}") + 1


def channel_of(carrier: int, warden: int) -> socket.socket:
    """The carrier's end of the channel of requests: the first of two that the warden made."""
    libc = ctypes.CDLL(None, use_errno=True)
    process = os.pidfd_open(carrier)
    try:
        for name in sorted(os.listdir(f"/proc/{carrier}/fd"), key=int):
            fd = libc.syscall(438, process, int(name), 0)
            assert fd >= 0, os.strerror(ctypes.get_errno())
            try:
                found = socket.socket(fileno=fd)
                kind = found.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE)
                who = found.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
                listens = found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
            except OSError:
                os.close(fd)
                continue
            if (
                kind == socket.SOCK_SEQPACKET
                and struct.unpack("3i", who)[0] == warden
                and not listens
            ):
                return found
            found.close()
    finally:
        os.close(process)
    raise AssertionError("the carrier has no channel")


def result(answer: bytes) -> int:
    assert len(answer) == 8 + 4096
    (number,) = struct.unpack_from("<i", answer)
    return int(number)


def request(
    channel: socket.socket, what: int, about: int = 0, word: int = 0, fds: list[int] | None = None
) -> int:
    text = struct.pack("<IiII", what, about, word, 0)
    socket.send_fds(channel, [text], fds or [])
    return result(channel.recv(8192))


# ---- ends -----------------------------------------------------------------------------------


def test_what_was_changed_is_undone_when_the_carrier_is_killed(run_dir: Path) -> None:
    with stack(run_dir) as (process, warden, _):
        carrier = carrier_of(warden)
        os.kill(carrier, signal.SIGKILL)
        eventually(lambda: not comm_of(warden), "the warden has ended")
        assert not list(run_dir.glob("*.sock")), "the control socket is gone"
        process.signal(signal.SIGTERM)
        done = process.finish()
    assert f"carrier, process {carrier}, was killed by signal 9" in done.errors, done


def test_a_carrier_does_not_outlive_its_warden(run_dir: Path) -> None:
    with stack(run_dir) as (process, warden, _):
        carrier = carrier_of(warden)
        os.kill(carrier, signal.SIGSTOP)
        os.kill(warden, signal.SIGKILL)
        eventually(lambda: not comm_of(carrier), "the carrier has ended")
        process.signal(signal.SIGTERM)
        process.finish()


def test_neither_wakes_up_while_nothing_happens(run_dir: Path) -> None:
    """The warden not once; the carrier for the stack's clock alone."""

    def switches(pid: int) -> int:
        return sum(
            int(line.split()[1])
            for task in Path(f"/proc/{pid}/task").iterdir()
            for line in (task / "status").read_text().splitlines()
            if "ctxt_switches" in line
        )

    with stack(run_dir) as (process, warden, _):
        carrier = carrier_of(warden)
        time.sleep(1)  # what is measured begins when the stack is at rest
        before = switches(warden), switches(carrier)
        time.sleep(3)
        assert switches(warden) == before[0]
        assert switches(carrier) - before[1] < 30
        still_works(process)
