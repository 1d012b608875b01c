# SPDX-License-Identifier: GPL-2.0-only
"""A stack belongs to one user (docs/security.md): who has other rights than its own does not get
its memory, and who gives up rights gives it up. rights.c attacks."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from topology.namespace import Word
from topology.process import Finished, Process, eventually, run
from topology.side import BUILD, GUISE

RIGHTS = BUILD / "test" / "stack" / "rights"
# Its own processes are the only ones that it can find.
ALONE: tuple[Word, ...] = ("unshare", "--pid", "--fork", "--mount-proc", "--")
RUN: tuple[Word, ...] = (*ALONE, GUISE, "run", "-v", "--link", "none", "--")
SAYS_GADGET = "is lost: "

needs_root = pytest.mark.skipif(bool(os.geteuid()), reason="needs root, to be other users")

# The process has one thread; or another one that waits in a call; or it is a child.
HOW = ["", "threads", "child"]
# What became of rights: a way of rights.c, in the process that has sockets, ...
GIVEN_UP = ["setuid", "capabilities", "namespace"]
# ... those that leave the process its user; ...
SANDBOXES = ["no_new_privs", "filter"]
# ... and rights that the program does not have when it begins.
STARTED: dict[str, tuple[Word, ...]] = {
    "su": ("su", "-s", "/bin/sh", "nobody", "-c", 'exec "$0" "$@"', "--"),
    "setpriv": ("setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups"),
    "groups": ("setpriv", "--reuid", "nobody", "--groups", "4"),
    "bounded": ("setpriv", "--bounding-set", "-chown"),
    "unshared": ("unshare", "--user", "--map-root-user"),
}


def attacks(*words: Word) -> Finished:
    done = run([*RUN, *words])
    assert "sockets: alive" in done.text, done
    return done


def fails(done: Finished) -> None:
    assert "regions: 0" in done.text, done
    assert SAYS_GADGET not in done.errors, done


@needs_root
@pytest.mark.parametrize("how", HOW)
def test_the_attack_would_succeed(how: str) -> None:
    """With the stack's rights: it finds the region, and the holder acts on what it writes there."""
    done = attacks(RIGHTS, "nothing", how)
    assert "regions: 0" not in done.text, done
    assert SAYS_GADGET in done.errors, done


@needs_root
@pytest.mark.parametrize(
    ("way", "how"),
    [(w, h) for w in GIVEN_UP for h in HOW if (w, h) != ("namespace", "threads")],  # refused
)
def test_who_gives_up_rights_gives_up_the_region(way: str, how: str) -> None:
    """Its sockets are alive afterwards, and a call that waited meanwhile has lost nothing."""
    fails(attacks(RIGHTS, way, how))


@needs_root
@pytest.mark.parametrize("how", HOW)
def test_who_takes_other_groups_gives_up_the_region(how: str) -> None:
    """Where the stack's user may take groups, and not users."""
    may_not = ("setpriv", "--bounding-set", "-setuid")
    done = run([*may_not, *RUN, RIGHTS, "groups", how, "alone"])
    assert "sockets: alive" in done.text, done
    fails(done)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("way", SANDBOXES)
def test_who_enters_a_sandbox_gives_up_the_region(way: str, how: str) -> None:
    fails(attacks(RIGHTS, way, how, "alone"))


@needs_root
@pytest.mark.parametrize("started", STARTED)
def test_who_begins_with_other_rights_has_no_region(started: str) -> None:
    fails(attacks(*STARTED[started], RIGHTS, "nothing", "child", "alone"))


@needs_root
@pytest.mark.parametrize("how", ["", "child"])
def test_who_takes_the_rights_of_the_stacks_user_is_a_member(how: str) -> None:
    """As the workers of a server do that root has started on a stack of theirs."""
    run_as = [*RUN[: RUN.index("--link")], "--user", "www-data", *RUN[RUN.index("--link") :]]
    done = run([*run_as, RIGHTS, "www-data", how, "alone"])
    assert "sockets: alive" in done.text and "region: mapped" in done.text, done
    done = run([*run_as, RIGHTS, "nothing", how, "alone"])
    assert "sockets: alive" in done.text, done
    fails(done)


# As nginx does: a child of the root that listens takes the user whose stack it is, and has a child
# itself. All say their pids and wait.
WORKERS = """
import os, pwd, signal, socket
s = socket.create_server(("127.0.0.1", 0))
worker = os.fork()
if not worker:
    user = pwd.getpwnam("www-data")
    os.initgroups(user.pw_name, user.pw_gid)
    os.setgid(user.pw_gid)
    os.setuid(user.pw_uid)
    os.fork()
print(os.getpid(), flush=True)
if worker:
    signal.pause()
s.accept()
"""


@needs_root
def test_who_takes_the_rights_of_the_stacks_user_is_counted_as_a_member() -> None:
    """By `guise ls` and -v, which says nothing of --user then."""
    words: list[Word] = [GUISE, "run", "-v", "--link", "none", "--user", "www-data", "--"]
    with Process([*words, sys.executable, "-c", WORKERS]) as process:

        def begun() -> set[str]:
            said = set(process.said().text.split())
            return said if len(said) == 3 else set()

        pids = eventually(begun, "the programs have begun")

        def listed() -> bool:
            stacks = json.loads(run([GUISE, "ls", "--json"]).expect().text)
            [stack] = [s for s in stacks if pids & {str(pid) for pid in s["pids"]}]
            members = stack["members"], stack["served"]
            return members == (3, 1) and {str(pid) for pid in stack["pids"]} == pids

        eventually(listed, "two are members, and one is served")
        assert "3 (1 served)" in run([GUISE, "ls"]).expect().text
        done = process.stop()
    assert "2 members direct and 1 served" in done.errors, done
    assert "--user" not in done.errors, done


# Packets of the listener's connection come after tcpdump has taken another user.
CAPTURE = """
tcpdump -Z nobody -lni lo -c 6 tcp > "$1" 2>&1 & watcher=$!
until grep -q 'listening on' "$1"; do sleep 0.05; done
until grep -q '^Uid:.65534' "/proc/$watcher/status"; do sleep 0.05; done
"$0" -c 'import socket
near = socket.create_server(("127.0.0.1", 0))
far = socket.create_connection(near.getsockname())
near.accept()[0].send(b"x")
far.recv(1)'
wait $watcher
"""


@needs_root
def test_packet_rings_stay(tmp_path: Path) -> None:
    """tcpdump opens its rings, and takes another user then."""
    said = tmp_path / "said"
    run([*RUN, "sh", "-c", CAPTURE, sys.executable, said], seconds=60).expect()
    assert "6 packets captured" in said.read_text(), said.read_text()


LISTENS = """
import os, socket, subprocess, sys
os.setgroups([]); os.setgid(65534)
at_first = socket.create_server(("127.0.0.1", 5001))
os.setuid(65534)
later = socket.create_server(("127.0.0.1", 5002))
if os.fork():
    os.wait()
else:
    by_child = socket.create_server(("127.0.0.1", 5003))
    print(subprocess.run(["ss", "-Htlne"], capture_output=True, text=True).stdout)
"""


@needs_root
def test_a_served_program_is_itself_in_the_stack() -> None:
    done = run([*RUN, sys.executable, "-c", LISTENS]).expect()
    users = {
        line.split()[3]: "uid:65534" in line for line in done.text.splitlines() if "LISTEN" in line
    }
    assert users == {"127.0.0.1:5001": False, "127.0.0.1:5002": True, "127.0.0.1:5003": True}, done
