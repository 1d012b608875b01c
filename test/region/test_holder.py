# SPDX-License-Identifier: GPL-2.0-only
"""What guise-holder says to the process that started it: docs/plan.md."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from topology.exhausted import processor_share
from topology.holders import carrier_of
from topology.namespace import Word
from topology.process import DEADLINE, Process, run
from topology.side import BUILD, DENY, PYTHON, program, wait_until_says


@dataclass
class Holder:
    process: subprocess.Popen[bytes]
    ticket: socket.socket
    status: socket.socket
    text: bytes = b""

    def line(self) -> str | None:
        """Its next report; None when it has no more."""
        while b"\n" not in self.text:
            piece = self.status.recv(4096)
            if not piece:
                assert not self.text, self.text
                return None
            self.text += piece
        line, self.text = self.text.split(b"\n", 1)
        return line.decode()

    def ends(self) -> int:
        return self.process.wait(DEADLINE)


@contextlib.contextmanager
def holding(plan: str | bytes, *before: Word, keep: Iterable[int] = ()) -> Iterator[Holder]:
    ticket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    status, report = socket.socketpair()
    reader, writer = os.pipe()
    fds = {"--plan": reader, "--ticket": theirs.fileno(), "--status": report.fileno()}
    words = [word for name, fd in fds.items() for word in (name, str(fd))]
    process = subprocess.Popen(
        [*before, BUILD / "guise-holder", *words], pass_fds=[*fds.values(), *keep]
    )
    try:
        os.close(reader)
        theirs.close()
        report.close()
        status.settimeout(DEADLINE)
        # It does not read on when it has read too much.
        with contextlib.suppress(BrokenPipeError), open(writer, "wb") as file:
            file.write(plan if isinstance(plan, bytes) else plan.encode())
        with ticket, status:
            yield Holder(process, ticket, status)
    finally:
        process.kill()
        process.wait()


PLAN = """\
name test
memory 48M
# the program that joins looks at these
sysctl net.ipv4.tcp_congestion_control westwood
address lo 192.0.2.7/32
up lo
"""

LOOK = [
    "/usr/bin/python3",
    "-c",
    "import socket\n"
    "s = socket.create_server(('192.0.2.7', 0))\n"
    "c = socket.create_connection(s.getsockname())\n"
    "print(c.getsockopt(6, socket.TCP_CONGESTION, 16).rstrip(b'\\0').decode())\n",
]


def test_plan_is_applied_and_the_summary_tells_what_was_done() -> None:
    with holding(PLAN) as holder:
        assert holder.line() == "ready"
        env = {
            "LD_PRELOAD": str(BUILD / "libguise-preload.so"),
            "GUISE_STACK": str(holder.ticket.fileno()),
        }
        done = subprocess.run(
            LOOK,
            env={**os.environ, **env},
            pass_fds=[holder.ticket.fileno()],
            capture_output=True,
            text=True,
            timeout=DEADLINE,
        )
        assert (done.stdout, done.stderr) == ("westwood\n", "")
        holder.ticket.close()  # no process can join any more, and none has joined
        word, summary = (holder.line() or "").split(" ", 1)
        assert word == "summary"
        told = json.loads(summary)
        assert told["cc"] == "westwood"
        assert told["connections"] == 2  # one, with both ends in the stack
        assert told["sockets"] == 2 and told["escaped"] == 0  # accept is no socket()
        assert told["members"] == 1 and told["refused"] == 0 and told["lost"] is False
        assert holder.line() is None
        assert holder.ends() == 0


@pytest.mark.parametrize(
    ("plan", "line", "words"),
    [
        ("name x\nfrobnicate 7\n", 2, ["frobnicate", "name, memory, kernel, clock"]),
        ("name x\n\nup lo\nup eth9\n", 4, ["eth9"]),
        ("address lo 300.1.2.3/24\n", 1, ["300.1.2.3/24"]),
        ("boot\nsysctl net.ipv4.tcp_congestion_control tahoe\n", 2, ["tahoe", "cubic"]),
        (b"boot\n\0\n", 0, ["zero byte"]),
        (b"#" * 2_000_000, 0, ["longer than"]),
    ],
    ids=["word", "device", "address", "value", "zero", "long"],
)
def test_line_that_fails_is_named(plan: str | bytes, line: int, words: list[str]) -> None:
    with holding(plan) as holder:
        said = holder.line() or ""
        assert said.startswith(f"error {line}: ")
        assert all(word in said for word in words), said
        assert holder.line() is None
        assert holder.ends() == 1


def test_a_holder_whose_threads_are_stopped_ends_and_undoes(tmp_path: Path) -> None:
    """By a debugger, say: those of the relays and the pump do not come to their ends."""
    undo, journal = tmp_path / "undo", tmp_path / "journal"
    undo.write_text('#!/bin/sh\necho "$1" >"$2"\n')
    undo.chmod(0o755)
    plan = f"undo {undo} {journal}\nup lo\nrelay 169.254.77.1 127.0.0.1\n"
    with holding(plan) as holder:
        assert holder.line() == "ready"
        with Process(
            [PYTHON, program("stopper.py"), str(carrier_of(holder.process.pid))]
        ) as stopper:
            wait_until_says(stopper, "stopped")
            assert int(stopper.said().text.split()[1]) >= 2
            holder.ticket.close()
            assert holder.line() is None, "it has no summary"
            assert journal.read_text() == "undo\n"
        assert holder.ends() == 1


def test_what_undoes_inherits_nothing(tmp_path: Path) -> None:
    """Neither what the holder was given, such as the control socket, nor what was left open."""
    undo, journal = tmp_path / "undo", tmp_path / "journal"
    # The last one is that of the folder itself.
    undo.write_text('#!/bin/bash\necho $(ls /proc/self/fd) >"$2"\n')
    undo.chmod(0o755)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with listener, open("/dev/null", "rb") as left:
        listener.bind(str(tmp_path / "control"))
        listener.listen()
        plan = f"undo {undo} {journal}\ncontrol fd={listener.fileno()} {tmp_path}/control\nboot\n"
        with holding(plan, keep=[listener.fileno(), left.fileno()]) as holder:
            assert holder.line() == "ready"
            holder.ticket.close()
            assert (holder.line() or "").startswith("summary ")
            assert holder.ends() == 0
    assert journal.read_text().split() == ["0", "1", "2", "3"]


def test_what_undoes_has_a_deadline(tmp_path: Path) -> None:
    """It is stopped in the middle: the stack ends, and says that something is left."""
    undo, pid = tmp_path / "undo", tmp_path / "pid"
    undo.write_text('#!/bin/sh\necho $$ >"$2"\nkill -STOP $$\n')
    undo.chmod(0o755)
    with holding(f"undo {undo} {pid}\nboot\n") as holder:
        assert holder.line() == "ready"
        holder.ticket.close()
        assert (holder.line() or "").startswith("summary ")
        assert holder.line() is None
        assert holder.ends() == 1
    assert not Path(f"/proc/{pid.read_text().strip()}").exists()


def test_whatever_fails_is_undone(tmp_path: Path) -> None:
    undo = tmp_path / "undo"
    undo.write_text('#!/bin/sh\necho "$1 $(basename "$2")" >>"$2"\n')
    undo.chmod(0o755)
    journal = tmp_path / "journal"
    with holding(f"undo {undo} {journal}\nup eth9\n") as holder:
        assert (holder.line() or "").startswith("error 2: ")
        assert holder.line() is None
        assert holder.ends() == 1
    assert journal.read_text() == "undo journal\n"


def test_started_by_hand_it_says_how_it_is_meant() -> None:
    done = run([BUILD / "guise-holder"]).expect(2)
    assert "Started by guise run" in done.errors


def test_a_holder_whose_host_has_no_memory_for_a_message_waits() -> None:
    """The request stays where it is, and does not keep a processor busy."""
    with holding(PLAN, DENY, "recvmsg=ENOMEM", "--") as holder:
        assert holder.line() == "ready"
        holder.ticket.send(b"x")
        carrier = carrier_of(holder.process.pid)
        assert processor_share(carrier) < 0.1
        assert processor_share(holder.process.pid) < 0.1
        holder.ticket.close()
