# SPDX-License-Identifier: GPL-2.0-only
"""Programs that are served: they have no memory of the stack's, and are killed without a tracer."""

from __future__ import annotations

import signal

import pytest
from topology.namespace import Word
from topology.process import Process, eventually, run
from topology.side import BUILD, DENY, GUISE

CHILDREN = BUILD / "test" / "fault" / "children"
SERVED: tuple[Word, ...] = (GUISE, "run", "-v", "--link", "none", "--served", "--")
NO_TRACER: tuple[Word, ...] = (DENY, "ptrace=EPERM", "--")


def killed(rounds: int, seconds: float) -> None:
    with Process([*NO_TRACER, *SERVED, CHILDREN, str(rounds)]) as process:
        done = process.finish(seconds).expect()
    assert done.text == f"killed {rounds}, then 11\n"
    # The summary is there: all of its members, the servants, have ended.
    assert "1 program, " in done.errors, done
    assert "lost" not in done.errors, done


def test_killed_without_a_tracer() -> None:
    killed(100, 120)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_many_killed_without_a_tracer() -> None:
    killed(3000, 800)


def test_a_served_program_has_no_memory_of_the_stack() -> None:
    maps = run([*SERVED, "cat", "/proc/self/maps"]).expect().text
    assert "memfd:guise-ring" in maps
    assert "memfd:guise " not in maps
    assert "guise-kernel" not in maps
    links = run([*SERVED, "sh", "-c", "exec ls -l /proc/self/fd"]).expect().text
    assert "memfd:guise " not in links
    assert "guise-kernel" not in links


SCRIPT = """
import os, socket, sys
listener = socket.create_server(("127.0.0.1", 0))
if not os.fork():
    with socket.create_connection(listener.getsockname()) as far:
        far.sendall(b"x" * 1000000)
    os._exit(0)
near, _ = listener.accept()
os.set_inheritable(near.fileno(), True)
os.execvp(sys.executable, [sys.executable, "-c", "import socket;"
    f"s = socket.socket(fileno={near.fileno()}); n = 0\\n"
    "while d := s.recv(65536): n += len(d)\\n"
    "print(n)"])
"""


def test_sockets_pass_to_children_and_to_the_next_program() -> None:
    assert run([*SERVED, "python3", "-c", SCRIPT]).expect().text == "1000000\n"


def test_a_servant_that_is_killed_leaves_its_program_without_a_network() -> None:
    script = (
        "import os, signal, socket\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])\n"
        "s = socket.create_server(('127.0.0.1', 0))\n"
        "print(os.getpid(), flush=True)\n"
        "signal.sigwait([signal.SIGUSR1])\n"
        "try:\n"
        "    socket.create_connection(s.getsockname())\n"
        "except OSError as e:\n"
        "    print(e.strerror)\n"
    )
    with Process([GUISE, "run", "--link", "none", "--served", "--", "python3", "-c", script]) as p:
        pid = eventually(lambda: p.said().text.strip(), "the program has begun")
        servants = run(["pgrep", "-f", f"^guise-holder --servant [0-9]+ [0-9]+ {pid}$"]).expect()
        run(["kill", "-9", *servants.text.split()]).expect()
        p.signal(signal.SIGUSR1)
        done = p.finish()
    assert "Network is down" in done.text, done
