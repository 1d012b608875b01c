# SPDX-License-Identifier: GPL-2.0-only
"""Several processes, or a process and its signals, in one region."""

from __future__ import annotations

import socket
import statistics

import pytest
from topology.leftovers import Leftovers
from topology.namespace import Namespace, Word
from topology.process import run
from topology.side import BUILD, DENY, GUISE, PYTHON, GuiseSide, program

PROGRAMS = BUILD / "test" / "region"
ON_GUISE = (GUISE, "run", "--link", "none", "--")
NO_TRACER = (DENY, "ptrace=EPERM", "--")


def member(*words: str, before: tuple[Word, ...] = ()) -> list[list[str]]:
    """Its lines, in words; it joins by itself."""
    done = run([*before, *ON_GUISE, "env", "GUISE_PRELOAD=off", PROGRAMS / "member", *words])
    return [line.split() for line in done.expect().text.splitlines()]


def test_killed_members_are_heard_of_and_their_places_used_again() -> None:
    """Half of 200 are killed while they sleep in a call; each connection ends."""
    ended, places = member("churn", "200")
    assert ended == ["left", "100", "killed", "100", "heard", "200"]
    assert int(places[2]) <= 0, places
    assert int(places[5]) <= 0, places


def test_each_member_gets_its_share() -> None:
    """Two that make call after call, and one that needs the virtual CPU after each sleep.

    Each of the two has a third of the calls or more, and the third sleeps a quarter as often as
    beside two that leave the stack alone. The host decides how much processor time each gets, and
    on a busy machine that changes all the time: so it is the better rounds that count,
    the third quartile. A lock that passes one of them over does so in every round.
    """
    rounds = [[int(count) for count in line] for line in member("fair", "9")]
    shares = [min(a, b) / (a + b) for _, a, b, *_ in rounds]
    woken = [contended / alone for contended, _, _, alone, *_ in rounds]
    assert statistics.quantiles(shares, n=4)[2] > 1 / 3, rounds
    assert statistics.quantiles(woken, n=4)[2] > 1 / 4, rounds


def test_a_lost_stack_gives_enetdown_to_all() -> None:
    """Threads that sleep in read, in poll, or for a descriptor of the host as well, and a call."""
    gone = ["ENETDOWN", "ENETDOWN"]  # the call that was inside, and the next one
    assert member("lost", before=NO_TRACER) == [[how, *gone] for how in "rphn"]


def test_lost_stack_is_named_at_the_end() -> None:
    words = ["run", "-v", "--link", "none", "--", "env", "GUISE_PRELOAD=off"]
    done = run([*NO_TRACER, GUISE, *words, PROGRAMS / "member", "lost"]).expect()
    assert "the stack was lost" in done.errors


def test_threads_share_what_processes_do_not() -> None:
    same, other, number, closed, own = member("threads")
    assert same == ["process", "1", "thread", "0"]
    assert other == ["other", "EBADF"]
    assert closed == ["closed", "EBADF"]
    assert number[0] == own[0] == "process" and number[1] != own[1]


@pytest.mark.parametrize("flag", ["again", "never"])
def test_storm_of_signals_loses_nothing(flag: str) -> None:
    """SA_RESTART or not, and the handler makes calls, too."""
    for where in ((), ON_GUISE):
        first, interrupted, last = (
            run([*where, PROGRAMS / "storm", flag]).expect().text.splitlines()
        )
        assert first == "all received 1, all right 1"
        assert last == "handler sent 1, received 1"
        assert flag == "never" or interrupted == "interrupted 0"


def test_children_that_come_and_go_leave_nothing_in_the_region() -> None:
    """In a small one, which cannot hold what each of them would leave."""
    words: list[Word] = [GUISE, "run", "--memory", "32M", "--link", "none"]
    words += ["--", PROGRAMS / "forks", "1000"]
    assert run(words, seconds=120).expect().text == "1000 0 0\n"


QUEUED = 250_000  # what a send buffer holds, on Linux 6.1 as well: its packets are charged more


def test_what_was_sent_arrives_after_the_program_has_ended(
    guise: GuiseSide, far: Namespace, leftovers: Leftovers
) -> None:
    """The receiver reads nothing before the sender is gone."""
    with far.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        listener.bind(("0.0.0.0", 0))
        listener.listen()
        port = str(listener.getsockname()[1])
        with guise.start(PYTHON, program("enqueue.py"), guise.peer, port, str(QUEUED)) as process:
            connection, _ = listener.accept()
            assert process.finish().expect().text == "queued\n"
        assert far.processes("guise-holder"), "the stack has to outlive its program"
        with connection:
            connection.settimeout(60)
            received = b""
            while piece := connection.recv(4096):
                received += piece
    assert received == bytes(i % 251 for i in range(QUEUED))
    leftovers.wait_until_none()


def test_a_child_that_nobody_saw_leaves_its_parents_sockets_alone() -> None:
    """It has none of them, is told so once, and joins for sockets of its own."""
    done = run([*ON_GUISE, PROGRAMS / "unseen"]).expect()
    said = [line.split() for line in done.text.splitlines()]
    assert dict(said[:-1]) == {
        "send": "EBADF",
        "again": "EBADF",
        "poll": "ok",  # POLLNVAL
        "close": "ok",
        "own": "ok",
    }
    assert said[-1] == ["parent", "works"]
    assert "socket of the parent process" in done.errors


def test_a_place_that_was_just_taken_by_who_is_killed_is_free_again() -> None:
    done = run([*ON_GUISE, PROGRAMS / "half"]).expect()
    assert done.text == "0 places more\n", done
