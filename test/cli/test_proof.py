# SPDX-License-Identifier: GPL-2.0-only
"""The line that guise run -v ends with counts right: what the peer sees is what it says."""

import json
import subprocess

import pytest
from topology.content import Content
from topology.namespace import Word
from topology.process import Process, run
from topology.side import GUISE, PYTHON, GuiseSide, proof

# Datagrams are no connections, nor is what only listens.
PROGRAM = """
import socket, sys
peer, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
listener = socket.create_server(("127.0.0.1", 0))
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", (peer, 9))
for _ in range(count):
    with socket.create_connection((peer, port)) as c:
        c.sendall(b"HEAD / HTTP/1.0\\r\\n\\r\\n")
        while c.recv(4096):
            pass
        got = c.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\\0").decode()
    assert got == sys.argv[4], got
"""


@pytest.mark.parametrize(("count", "cc"), [(0, "cubic"), (1, "westwood"), (7, "bbr")])
def test_figures_are_right(guise: GuiseSide, content: Content, count: int, cc: str) -> None:
    words = [PYTHON, "-c", PROGRAM, guise.peer, str(content.port), str(count), cc]
    with guise.start(*words, options=["-v", "--cc", cc]) as process:
        line = proof(process.finish().expect())
    assert line["cc"] == cc
    assert line["connections"] == str(count)
    assert line["programs"] == "1 program"
    assert line["escaped"] == "0"


def test_both_ends_within_the_stack_count(guise: GuiseSide) -> None:
    script = (
        "import socket; s = socket.create_server(('127.0.0.1', 0)); "
        "[socket.create_connection(s.getsockname()) for _ in range(3)]"
    )
    with guise.start(PYTHON, "-c", script, options=["-v"]) as process:
        assert proof(process.finish().expect())["connections"] == "6"


GOES_ON = "the stack has not ended yet, so there is no summary: other programs are"


def of_one_that_goes_on(flag: str) -> str:
    script = "import os; os.fork() or os.read(0, 1)"
    words = [str(GUISE), "run", flag, "--link", "none", "--", PYTHON, "-c", script]
    with Process(words, stdin=subprocess.PIPE) as process:
        done = process.finish().expect()
        assert process.stdin
        process.stdin.close()
    return done.errors


def test_of_a_stack_that_goes_on_there_is_no_line_yet() -> None:
    """guise waits for it for some seconds, and says why it knows no figures."""
    assert GOES_ON in of_one_that_goes_on("-v")


def test_there_is_always_an_object_for_machines() -> None:
    """In the last line, whatever the program says."""
    program: list[Word] = ["sh", "-c", "echo err >&2; exit 3"]
    first, last = (
        run([GUISE, "run", "--json", "--link", "none", "--", *program])
        .expect(3)
        .errors.splitlines()
    )
    counts = json.loads(last)
    assert first == "err" and counts["version"] == 1, last
    assert counts["programs"] == 1 and counts["outside"] == [] and counts["cc"], last
    assert json.loads(of_one_that_goes_on("--json"))["error"].startswith(GOES_ON)


def test_without_a_link_nothing_is_on_the_wire() -> None:
    done = run([GUISE, "run", "-v", "--link", "none", "--", "true"]).expect()
    assert proof(done)["reach"] == "within the stack (no link)", done
    done = run([GUISE, "run", "--json", "--link", "none", "--", "true"]).expect()
    assert json.loads(done.errors)["reach"] == "none", done


def test_figures_cannot_be_of_a_stack_that_is_there_already() -> None:
    done = run([GUISE, "run", "--json", "--stack", "none", "--", "true"]).expect(2)
    assert "--json would be of a new one" in done.errors, done
