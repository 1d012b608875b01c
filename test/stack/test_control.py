# SPDX-License-Identifier: GPL-2.0-only
"""Running stacks: guise ls, and the control socket that commands use."""

from __future__ import annotations

import array
import json
import os
import re
import signal
import socket
from pathlib import Path
from typing import Any

import pytest
from topology.exhausted import no_descriptor_left, processor_share
from topology.holders import carrier_of
from topology.leftovers import Leftovers
from topology.namespace import Namespace, Word
from topology.process import DEADLINE, Process, eventually, run
from topology.side import BUILD, GUISE, PYTHON, GuiseSide, wait_until_says

SERVE = """
import socket, sys
server = socket.create_server(("127.0.0.1", 4000))
print("ready", flush=True)
sys.stdin.read()
"""


class Run:
    """A program on a stack of guise run, without a link."""

    def __init__(self, run_dir: Path, *command: str) -> None:
        self.run_dir = run_dir
        self.env = {"GUISE_RUNDIR": str(run_dir)}
        words = command or (PYTHON, "-c", SERVE)
        self.process = Process(
            [GUISE, "run", "--link", "none", "--", *words], stdin=-1, env=self.env
        )
        try:
            wait_until_says(self.process, "ready")
        except BaseException:
            self.process.stop()
            raise

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.stop()
        eventually(lambda: not self.run_dir.exists(), "the runtime folder is gone")

    def ls(self) -> list[dict[str, Any]]:
        found = json.loads(run([GUISE, "ls", "--json"], env=self.env).expect().text)
        assert isinstance(found, list)
        return found

    def connect(self) -> socket.socket:
        client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        client.settimeout(DEADLINE)
        client.connect(str(self.run_dir / f"{self.process.pid}.sock"))
        return client

    def ask(self, request: bytes) -> bytes:
        with self.connect() as client:
            client.send(request)
            return client.recv(1 << 16)


@pytest.fixture
def stack(run_dir: Path) -> Any:
    with Run(run_dir) as stack:
        yield stack


def test_ls_lists_what_runs(stack: Run) -> None:
    [found] = stack.ls()
    assert found["stack"] == str(stack.process.pid) and found["named"] is False
    assert found["name"] == "python3" and found["pids"] == [stack.process.pid]
    assert (found["members"], found["links"], found["lost"]) == (1, [], False)
    assert found["sockets"] == 1
    assert 0 < found["memory"] < found["memory_limit"] == 256 << 20
    table = run([GUISE, "ls"], env=stack.env).expect().text.splitlines()
    assert re.match(r"STACK +NAME +AGE +MEMBERS +LINKS +SOCKETS +SENT +RECEIVED +MEMORY", table[0])
    assert re.match(
        rf"{stack.process.pid} +python3 +\d+s +1 +none +1 +0B +0B .* of 256M +up$", table[1]
    )


def test_ls_counts_what_went_over_the_links(guise: GuiseSide, leftovers: Leftovers) -> None:
    script = (
        "import socket, sys; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        f"s.sendto(bytes(1000), ({guise.peer!r}, 9)); print('ready', flush=True); sys.stdin.read()"
    )
    with guise.start(PYTHON, "-c", script, stdin=-1) as process:
        wait_until_says(process, "ready")

        def sent() -> bool:
            [found] = json.loads(guise.call("ls", "--json").expect().text)
            [link] = found["links"]
            return bool(
                link["kind"] == "tap" and link["name"] == "eth0" and link["tx_bytes"] > 1000
            )

        eventually(sent, "a datagram of 1000 bytes is counted")


def test_without_a_stack_there_is_only_the_heading(run_dir: Path) -> None:
    env = {"GUISE_RUNDIR": str(run_dir)}
    assert len(run([GUISE, "ls"], env=env).expect().text.splitlines()) == 1
    assert json.loads(run([GUISE, "ls", "--json"], env=env).expect().text) == []
    assert not run_dir.exists()


def test_a_stack_that_still_delivers_is_said_to_be_ending(
    far: Namespace, guise: GuiseSide, leftovers: Leftovers
) -> None:
    """Its program has ended, and the peer has not acknowledged what it sent."""
    with far.socket() as server:
        server.bind(("0.0.0.0", 0))
        server.listen()
        port = server.getsockname()[1]
        script = (
            f"import socket; s = socket.create_connection(({guise.peer!r}, {port}))\n"
            "print('ready', flush=True); input(); s.sendall(b'delivered')"
        )
        with guise.start(PYTHON, "-c", script, stdin=-1) as program:
            wait_until_says(program, "ready")
            with server.accept()[0] as client:
                with far.deaf("guise*"):
                    assert program.stdin
                    program.stdin.write(b"\n")
                    program.stdin.flush()
                    program.finish().expect()
                    [found] = json.loads(guise.call("ls", "--json").expect().text)
                    assert "error" not in found and found["ending"], found
                    assert (found["members"], found["sockets"] > 0) == (0, True)
                    assert guise.call("ls").expect().text.rstrip().endswith(" ending")
                    late = guise.call("exec", found["stack"], "true")
                    assert late.status and "takes no more programs" in late.errors, late
                assert client.recv(100) == b"delivered"


def test_ticket_of_a_client_is_the_right_to_join(stack: Run) -> None:
    with stack.connect() as client:
        client.send(b"ticket")
        word, ancillary, _, _ = client.recvmsg(64, socket.CMSG_SPACE(4))
    assert word == b"ok"
    [(_, _, data)] = ancillary
    [ticket] = array.array("i", data)
    script = "import socket; socket.create_connection(('127.0.0.1', 4000)); print('connected')"
    env = {"LD_PRELOAD": str(BUILD / "libguise-preload.so"), "GUISE_STACK": str(ticket)}
    try:
        with Process([PYTHON, "-c", script], env=env, inherit=[ticket]) as joined:
            assert joined.finish().expect().text == "connected\n"
    finally:
        os.close(ticket)


def test_stack_stays_while_somebody_has_a_ticket(stack: Run) -> None:
    with stack.connect() as client:
        client.send(b"ticket")
        _, ancillary, _, _ = client.recvmsg(64, socket.CMSG_SPACE(4))
    [ticket] = array.array("i", ancillary[0][2])
    stack.process.signal(signal.SIGTERM)
    stack.process.finish()
    eventually(lambda: stack.ls()[0]["members"] == 0, "the program has left")
    os.close(ticket)
    eventually(lambda: not stack.ls(), "the stack has ended")


@pytest.mark.parametrize(
    "request_", [b"status ", b"down", b"down 5x", b"down -", b"x" * 1000, b"\0", b"tickets"]
)
def test_what_is_no_request_is_refused(stack: Run, request_: bytes) -> None:
    assert stack.ask(request_).startswith(b"error unknown request"), request_
    assert len(stack.ls()) == 1


def test_stranger_is_refused_with_a_sentence(stack: Run) -> None:
    if os.geteuid():
        pytest.skip("needs root, to be another user")
    path = stack.run_dir / f"{stack.process.pid}.sock"
    stack.run_dir.chmod(0o1711)  # guise's own folder keeps its mark
    path.chmod(0o777)
    script = (
        "import socket, sys\ns = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
        "s.connect(sys.argv[1]); print(s.recv(500).decode())"
    )
    drop = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    said = run([*drop, PYTHON, "-c", script, str(path)]).expect().text
    assert said.startswith("error the stack python3 belongs to user 0; you are user 65534"), said


def test_who_asks_a_holder_without_descriptors_is_told(stack: Run) -> None:
    """No client waits for a free descriptor, and the holder does not use a processor all the time
    meanwhile."""
    with no_descriptor_left(carrier_of(stack.ls()[0]["holder"])):
        for _ in range(3):
            with stack.connect() as client:
                assert client.recv(500).startswith(b"error the stack's holder has no descriptor")
    assert len(stack.ls()) == 1


def test_a_holder_that_cannot_even_refuse_waits(stack: Run) -> None:
    """As where another thread took its spare descriptor, or the host has no memory."""
    holder = carrier_of(stack.ls()[0]["holder"])
    with no_descriptor_left(holder, 3), stack.connect() as client:
        assert processor_share(holder) < 0.1
        client.setblocking(False)
        with pytest.raises(BlockingIOError):
            client.recv(500)
    assert len(stack.ls()) == 1


def test_killed_holder_leaves_a_socket_that_the_next_command_removes(run_dir: Path) -> None:
    with Run(run_dir) as stack:
        os.kill(stack.ls()[0]["holder"], signal.SIGKILL)
        # A command that looks for such sockets before the holder has died leaves this one to the
        # next.
        eventually(lambda: not stack.ls() and not run_dir.exists(), "it is listed no more")


def test_a_folder_that_was_there_stays(tmp_path: Path) -> None:
    """Also when the stacks in it end one after the other, and one of them by its holder's death."""
    folder = tmp_path / "own"
    folder.mkdir(mode=0o700)
    env = {"GUISE_RUNDIR": str(folder)}
    words: list[Word] = [GUISE, "run", "-v", "--link", "none", "--"]
    run(
        [*words, "sh", "-c", f"{GUISE} run -v --link none -- true; exec {GUISE} ls"], env=env
    ).expect()
    eventually(lambda: not os.listdir(folder), "nothing is left in it")
    with Process([*words[:2], *words[3:], PYTHON, "-c", SERVE], stdin=-1, env=env) as process:
        wait_until_says(process, "ready")
        stacks = json.loads(run([GUISE, "ls", "--json"], env=env).expect().text)
        os.kill(stacks[0]["holder"], signal.SIGKILL)

        def swept() -> bool:
            run([GUISE, "ls"], env=env)
            return not os.listdir(folder)

        eventually(swept, "what the killed holder left is gone")
        process.stop()
    assert folder.is_dir()


def test_stack_that_stands_still_is_listed_all_the_same(stack: Run) -> None:
    """The holder reports what it knows although the stack's kernel does not answer."""
    holder = carrier_of(stack.ls()[0]["holder"])
    os.kill(holder, signal.SIGSTOP)
    try:
        [found] = stack.ls()
        assert found["stack"] == str(stack.process.pid) and "does not answer" in found["error"]
    finally:
        os.kill(holder, signal.SIGCONT)
    [found] = stack.ls()
    assert "error" not in found and found["sockets"] == 1


def test_stack_runs_where_no_socket_can_be_made(tmp_path: Path) -> None:
    env = {"GUISE_RUNDIR": "/proc/guise"}
    done = run([GUISE, "run", "-v", "--link", "none", "--", "true"], env=env).expect()
    assert "guise ls does not list this stack" in done.errors and "/proc/guise" in done.errors


def test_long_folder(tmp_path: Path) -> None:
    """An address of a socket has 107 bytes; a path may have more."""
    with Run(tmp_path / ("x" * 150)) as stack:
        assert len(stack.ls()) == 1
