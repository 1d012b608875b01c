# SPDX-License-Identifier: GPL-2.0-only
"""guise ls -c: the connections of running stacks, and the subflows of those that are Multipath
TCP; the request of the control socket that it is made of, which is answered page by page.

        one stack ──tap── far ──tap──┐
        10.77.4.2             ──tap──┤ another stack
                                     10.77.2.2, 10.77.3.2
"""

from __future__ import annotations

import json
import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from topology.leftovers import Leftovers
from topology.namespace import Namespace, Word
from topology.process import DEADLINE, Process, eventually, run
from topology.side import GUISE, PYTHON, GuiseSide, wait_until_says

# Both ends of each connection are in the stack: there are twice as many.
CROWD = """
import resource, socket, sys
n = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_NOFILE, (2 * n + 100, 2 * n + 100))
server = socket.create_server(("127.0.0.1", 4000), backlog=128)
ends = []
for _ in range(n):
    ends.append(socket.create_connection(("127.0.0.1", 4000)))
    ends.append(server.accept()[0])
print("ready", flush=True)
"""
HOLD = "sys.stdin.read()\n"
# Connections that come and go for as long as the program lives.
CHURN = """
passing = []
while True:
    passing.append(socket.create_connection(("127.0.0.1", 4000)))
    passing.append(server.accept()[0])
    if len(passing) > 40:
        for end in passing[:20]:
            end.close()
        del passing[:20]
"""
# SUBFLOWS and BYTES: sends when it has as many more subflows as it is told, and stays.
SEND = """
import socket, struct, sys, time
host, subflows, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
end = socket.create_connection((host, 5000))
def others():
    return end.getsockopt(284, 1, 512)[0]
while subflows and others() < subflows:
    end.sendall(b"x"); size -= 1; time.sleep(0.01)
while size > 0:
    size -= end.send(bytes(min(size, 1 << 16)))
assert end.recv(2) == b"ok"
print("ready", flush=True)
sys.stdin.read()
"""
RECEIVE = """
import socket, sys
server = socket.create_server(("0.0.0.0", 5000))
print("ready", flush=True)
connection, _ = server.accept()
rest = int(sys.argv[1])
while rest > 0:
    rest -= len(connection.recv(1 << 16))
connection.sendall(b"ok")
sys.stdin.read()
"""
SIZE = 8 << 20


class Stack:
    """A program on a stack without a link."""

    def __init__(self, run_dir: Path, process: Process) -> None:
        self.run_dir, self.process = run_dir, process
        self.env = {"GUISE_RUNDIR": str(run_dir)}

    @contextmanager
    def connect(self) -> Iterator[socket.socket]:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
            client.settimeout(DEADLINE)
            client.connect(str(self.run_dir / f"{self.process.pid}.sock"))
            yield client

    def pages(self) -> list[dict[str, Any]]:
        with self.connect() as client:
            found = [ask(client, 0)]
            while "next" in found[-1]:
                found.append(ask(client, found[-1]["next"]))
        return found

    def listed(self, *words: str) -> list[dict[str, Any]]:
        [found] = json.loads(run([GUISE, "ls", "--json", *words], env=self.env).expect().text)
        assert "error" not in found, found
        connections = found["connections"]
        assert isinstance(connections, list)
        return connections


def say(client: socket.socket, request: str) -> str:
    client.send(request.encode())
    return client.recv(1 << 16).decode()


def ask(client: socket.socket, start: int) -> dict[str, Any]:
    answer = json.loads(say(client, f"connections {start}"))
    assert isinstance(answer, dict) and answer["from"] == start
    return answer


@contextmanager
def crowd(run_dir: Path, pairs: int, *options: str, then: str = HOLD) -> Iterator[Stack]:
    env = {"GUISE_RUNDIR": str(run_dir)}
    command = [PYTHON, "-c", CROWD + then, str(pairs)]
    words: list[Word] = [GUISE, "run", "--link", "none", *options, "--", *command]
    with Process(words, stdin=-1, env=env) as process:
        wait_until_says(process, "ready")
        yield Stack(run_dir, process)
    eventually(lambda: not run_dir.exists(), "the runtime folder is gone")


@contextmanager
def transfer(
    receiver: GuiseSide, sender: GuiseSide, subflows: int, size: int
) -> Iterator[tuple[Process, Process]]:
    receive, send = (PYTHON, "-c", RECEIVE, str(size)), (PYTHON, "-c", SEND)
    with receiver.serve(*receive, says="ready", stdin=-1) as server:
        to = (receiver.address, str(subflows), str(size))
        with sender.serve(*send, *to, says="ready", stdin=-1) as client:
            yield server, client
        # Its end is acknowledged as long as the other stack is there.
        eventually(lambda: not stacks_of(sender, client), "the sender's stack has ended")


def stacks_of(side: GuiseSide, process: Process) -> list[dict[str, Any]]:
    found = json.loads(side.call("ls", "--json").expect().text)
    return [stack for stack in found if stack["stack"] == str(process.pid)]


def stack_of(side: GuiseSide, process: Process) -> dict[str, Any]:
    [found] = json.loads(side.call("ls", "--json", str(process.pid)).expect().text)
    assert isinstance(found, dict) and "error" not in found
    return found


def between(connection: dict[str, Any], *ports: int) -> bool:
    ends = (connection["local"], connection["remote"])
    return any(int(end.rpartition(":")[2]) in ports for end in ends)


@pytest.fixture
def two_paths(far: Namespace, run_dir: Path, leftovers: Leftovers) -> GuiseSide:
    return GuiseSide(far, run_dir, "--mptcp", paths=2)


@pytest.fixture
def one_path(far: Namespace, run_dir: Path, leftovers: Leftovers) -> GuiseSide:
    return GuiseSide(far, run_dir, "--mptcp", number=4)


def test_subflows_of_a_connection_over_two_paths(one_path: GuiseSide, two_paths: GuiseSide) -> None:
    with transfer(one_path, two_paths, 1, SIZE) as (server, client):
        found = stack_of(two_paths, client)
        [connection] = [c for c in found["connections"] if between(c, 5000)]
        assert (connection["protocol"], connection["fallback"]) == ("mptcp", False)
        assert connection["pids"] == [client.pid]
        assert connection["bytes"]["acked"] >= SIZE
        subflows = connection["subflows"]
        assert {s["interface"] for s in subflows} == {"eth0", "eth1"}, subflows
        ends = {s["local"].rpartition(":")[0] for s in subflows}
        assert ends == {"10.77.2.2", "10.77.3.2"}
        sent = sum(s["bytes"]["sent"] for s in subflows)
        assert SIZE <= sent < 1.5 * SIZE  # what was lost on a path is sent again on another
        for subflow in subflows:
            path = subflow["path"]
            assert path["rtt_us"] > 0 and path["min_rtt_us"] > 0 and path["cwnd"] > 0
            assert path["cwnd_bytes"] == path["cwnd"] * path["mss"] > 0
            assert (subflow["state"], subflow["backup"]) == ("established", False)
            assert path["retransmissions"] >= 0 and subflow["bytes"]["retransmitted"] >= 0

        at_server = stack_of(one_path, server)["connections"]
        [connection] = [c for c in at_server if between(c, 5000)]
        received = sum(s["bytes"]["received"] for s in connection["subflows"])
        assert len(connection["subflows"]) == 2 and SIZE <= received < 1.5 * SIZE

        text = two_paths.call("ls", "-c", str(client.pid)).expect().text
        heading, *lines = text.splitlines()
        assert heading.split()[:3] == ["STACK", "PROTOCOL", "STATE"]
        first = rf"{client.pid} +mptcp +established +10\.77\.\d\.2:\d+ +10\.77\.4\.2:5000 .*"
        assert re.match(rf"{first} {client.pid}/python3 *$", lines[0]), text
        for line in lines[1:3]:
            assert re.match(
                rf"{client.pid} +subflow +established +10\.77\.\d\.2:\d+ +10\.77\.4\.2:5000 +"
                r"eth\d +\S+ +\S+ +\d+ \(\S+\) +[\d.]+ms +\d+ \(\S+\) *$",
                line,
            ), text


def test_a_subflow_that_becomes_a_backup_is_said_to_be_one(
    one_path: GuiseSide, two_paths: GuiseSide
) -> None:
    with transfer(one_path, two_paths, 1, 10_000) as (_, client):

        def subflows() -> list[dict[str, Any]]:
            found = stack_of(two_paths, client)["connections"]
            [connection] = [c for c in found if between(c, 5000)]
            listed = connection["subflows"]
            assert isinstance(listed, list)
            return listed

        assert not any(s["backup"] for s in subflows())
        joined = max(subflows(), key=lambda s: s["local_id"])
        change = ("ip", "mptcp", "endpoint", "change", "id", str(joined["local_id"]), "backup")
        two_paths.call("exec", str(client.pid), "--", *change).expect()
        eventually(
            lambda: [s["local"] for s in subflows() if s["backup"]] == [joined["local"]],
            "the other subflow is a backup",
        )
        assert "  backup " in two_paths.call("ls", "-c").expect().text


def test_ls_has_a_line_for_each_of_several_links(one_path: GuiseSide, two_paths: GuiseSide) -> None:
    with transfer(one_path, two_paths, 1, SIZE) as (server, client):
        lines = two_paths.call("ls", str(client.pid)).expect().text.splitlines()
        assert len(lines) == 4, lines
        for i, line in enumerate(lines[2:]):
            assert re.match(rf" +tap:eth{i} +[\d.]+[BKMG] +[\d.]+[BKMG] *$", line), lines
        one = one_path.call("ls", str(server.pid)).expect().text.splitlines()
        assert len(one) == 2 and "tap:eth0" in one[1], one


def test_a_peer_without_mptcp_is_said_to_be_a_fallback(
    far: Namespace, two_paths: GuiseSide
) -> None:
    with far.start(PYTHON, "-c", RECEIVE, "1000", stdin=-1) as server:
        wait_until_says(server, "ready")
        send = (PYTHON, "-c", SEND, two_paths.peer, "0", "1000")
        with two_paths.serve(*send, says="ready", stdin=-1) as client:
            found = stack_of(two_paths, client)["connections"]
            [connection] = [c for c in found if between(c, 5000)]
            assert (connection["protocol"], connection["fallback"]) == ("mptcp", True)
            assert connection["pids"] == [client.pid]
            [subflow] = connection["subflows"]
            assert subflow["bytes"]["sent"] == connection["bytes"]["sent"] == 1000
            text = two_paths.call("ls", "-c").expect().text
            assert "mptcp (fell back to tcp)" in text


@pytest.mark.parametrize("options", [[], ["--served"]], ids=["direct", "served"])
def test_two_thousand_connections_come_in_pages_and_each_is_there_once(
    run_dir: Path, options: list[str]
) -> None:
    with crowd(run_dir, 1000, *options) as stack:
        pages = stack.pages()
        assert len(pages) > 2
        assert all(page["connections"] for page in pages[:-1])
        rows = [row for page in pages for row in page["connections"]]
        assert len(rows) == 2000
        assert len({row["cookie"] for row in rows}) == 2000
        ends = {(row["local"], row["remote"]) for row in rows}
        assert len(ends) == 2000 and {(remote, local) for local, remote in ends} == ends
        connections = stack.listed()
        assert {(c["local"], c["remote"]) for c in connections} == ends
        assert len(connections) == 2000
        assert all(c["pids"] == [stack.process.pid] for c in connections)


def test_connections_that_come_and_go_between_pages_do_no_harm(run_dir: Path) -> None:
    """Those that stay are in each list."""
    with crowd(run_dir, 150, then=CHURN) as stack:
        lists, named = [], []
        for _ in range(20):
            rows = [row for page in stack.pages() for row in page["connections"]]
            lists.append({row["cookie"] for row in rows})
            named.append({(c["local"], c["remote"]) for c in stack.listed()})
        for found in (lists, named):
            stayed: set[Any] = set.intersection(*found)
            assert len(stayed) >= 300
            assert len(set.union(*found)) > 400, "none came or went"
        assert stack.process.said().status == -1


@pytest.mark.parametrize(
    "cursor", ["", "x", "-1", "1x", "+1", " 1", "0x10", "9" * 19, "9" * 40, "1.5", "\x1b[2J", "0 0"]
)
def test_garbage_as_a_cursor_is_refused_with_a_sentence(run_dir: Path, cursor: str) -> None:
    with crowd(run_dir, 1) as stack, stack.connect() as client:
        answer = say(client, f"connections {cursor}")
        assert answer.startswith("error connections: expected 0, or the number"), answer
        assert len(ask(client, 0)["connections"]) == 2


def test_a_list_goes_on_where_it_was_and_nowhere_else(run_dir: Path) -> None:
    with crowd(run_dir, 200) as stack:
        with stack.connect() as client, stack.connect() as other:
            assert "no list was begun" in say(client, "connections 7")
            begun = ask(client, 0)["next"]
            wrong = say(client, f"connections {begun + 1}")
            assert wrong.startswith("error ") and f"goes on from {begun}" in wrong, wrong
            # Another client's list is another list, and begins at its own beginning.
            assert "no list was begun" in say(other, f"connections {begun}")
            assert ask(other, 0)["next"] == begun
            assert ask(client, begun)["connections"]
            # A list may begin anew at any time.
            assert ask(client, 0)["next"] == begun
        # The client that comes next finds nothing of theirs.
        with stack.connect() as client:
            assert "no list was begun" in say(client, f"connections {begun}")
        # Nor does the stack keep a socket for lists that were left in the middle.
        [found] = json.loads(run([GUISE, "ls", "--json"], env=stack.env).expect().text)
        assert found["sockets"] == 401


def test_another_user_may_not_ask(run_dir: Path) -> None:
    if os.geteuid():
        pytest.skip("needs root, to be another user")
    with crowd(run_dir, 1) as stack:
        run_dir.chmod(0o1711)
        (run_dir / f"{stack.process.pid}.sock").chmod(0o777)
        script = (
            "import socket, sys\ns = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
            "s.connect(sys.argv[1])\n"
            "try:\n s.send(b'connections 0'); print(s.recv(65536).decode())\n"
            "except (BrokenPipeError, ConnectionResetError): print('error hung up')"
        )
        drop = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        path = str(run_dir / f"{stack.process.pid}.sock")
        said = run([*drop, PYTHON, "-c", script, path]).expect().text
        assert re.match("error (hung up|the stack python3 belongs to user 0)", said), said


def test_processes_that_share_a_connection_are_all_named(run_dir: Path) -> None:
    fork = "import os\nchild = os.fork()\nif child: print('child', child, flush=True)\n"
    with crowd(run_dir, 1, then=fork + HOLD) as stack:
        wait_until_says(stack.process, "child")
        child = int(stack.process.said().text.split()[-1])
        for connection in stack.listed():
            assert sorted(connection["pids"]) == sorted([stack.process.pid, child])


def test_a_stack_without_connections_has_an_empty_list(run_dir: Path) -> None:
    with crowd(run_dir, 0) as stack:
        assert stack.listed() == []
        lines = run([GUISE, "ls", "--connections"], env=stack.env).expect().text.splitlines()
        assert len(lines) == 1 and lines[0].startswith("STACK ")
