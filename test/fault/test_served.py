# SPDX-License-Identifier: GPL-2.0-only
"""Programs that are served: they have no memory of the stack's, and are killed without a tracer."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from topology.holders import comm_of
from topology.namespace import Word
from topology.process import Process, eventually, run
from topology.side import BUILD, DENY, GUISE, PYTHON, program
from topology.user import skip_unless_readable

CHILDREN = BUILD / "test" / "fault" / "children"
UNSEEN = BUILD / "test" / "region" / "unseen"
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


# The child executes another program, and its own child goes on. All have a socket.
TREE = """
import os, signal, socket
s = socket.socket()
s.set_inheritable(True)
child = os.fork()
if not child:
    if not os.fork():
        signal.pause()
    os.execvp("sleep", ["sleep", "1000"])
print(os.getpid(), child, flush=True)
signal.pause()
"""


def test_guise_ls_has_the_pids_of_programs_and_says_how_many_are_served() -> None:
    with Process([*SERVED, PYTHON, "-c", TREE]) as process:
        parent, child = eventually(lambda: process.said().text.split(), "the programs have begun")
        grandchild = Path(f"/proc/{child}/task/{child}/children")
        # Until then there are places for what it executes as well.
        sleeps = f"{child} has executed its program"
        eventually(lambda: comm_of(int(child)) == "sleep", sleeps)

        def listed() -> bool:
            stacks = json.loads(run([GUISE, "ls", "--json"]).expect().text)
            [stack] = [s for s in stacks if int(parent) in s["pids"]]
            pids = {int(parent), int(child), *map(int, grandchild.read_text().split())}
            return (
                set(stack["pids"]) == pids
                and stack["members"] == stack["served"] == 3
                and stack["programs"]
            )

        eventually(listed, "all three are listed, by their own pids")
        assert "3 (3 served)" in run([GUISE, "ls"]).expect().text
        refused = run([GUISE, "detach", child])
        assert f"process {child} is served, and guise does not trace it" in refused.errors
        done = process.stop()
    assert "0 members direct and " in done.errors, done


def test_the_summary_names_the_user_whose_programs_most_are() -> None:
    def user(*words: Word) -> object:
        options: tuple[Word, ...] = (GUISE, "run", "--json", "--link", "none", "--served", "--")
        done = run([*options, *words]).expect()
        return json.loads(done.errors.splitlines()[-1])["served_user"]

    drop = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    skip_unless_readable(65534)
    assert user("true") is None
    assert user(*drop, "sh", "-c", "true; cat </dev/null; true | cat") == 65534


def members(pid: int) -> int:
    stacks = json.loads(run([GUISE, "ls", "--json"]).expect().text)
    return sum(pid in stack["pids"] for stack in stacks)


def test_a_killed_program_is_gone_though_a_child_has_copies_of_all_it_had() -> None:
    """A child that guise has not seen begin has its parent's channel, too."""
    words: list[Word] = [GUISE, "run", "--link", "none", "--served", "--", UNSEEN, "stay"]
    with Process(words) as process:
        child = int(eventually(lambda: process.said().text, "the child has begun"))
        try:
            assert members(process.pid) == 1
            process.signal(signal.SIGKILL)
            eventually(lambda: not members(process.pid), "its servant has ended")
        finally:
            os.kill(child, signal.SIGKILL)


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


@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_a_served_program_reads_rings_of_packets(version: str) -> None:
    """They lie in the region; it has a copy."""
    done = run([*SERVED, PYTHON, program("packet_ring.py"), version]).expect()
    assert done.text == "1000 0\n"


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
        servants = run(
            ["pgrep", "-f", f"^guise-holder --servant [0-9]+ [0-9]+ {pid} [0-9:,]+$"]
        ).expect()
        run(["kill", "-9", *servants.text.split()]).expect()
        p.signal(signal.SIGUSR1)
        done = p.finish()
    assert "Network is down" in done.text, done
