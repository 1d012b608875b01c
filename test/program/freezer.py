# SPDX-License-Identifier: GPL-2.0-only
"""freezer.py COMMAND...: runs itself by COMMAND (guise run), and has the freezer of control groups
v2, at /sys/fs/cgroup, stop one of the processes there while the others converse over lo and with a
server outside. Says what came of it, and at the end in how many rounds the others stood still
because the frozen one had been in the middle of a call.

The processes: one that does what it reads from its standard input, one that waits for its bytes
and sends them back, and one that calls the stack without end."""

import os
import random
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

SERVER = ("192.0.2.1", 8081)
GROUP = Path("/sys/fs/cgroup/frozen")
ROUNDS = 12
DEADLINE = 60.0
STILL = 1.5  # seconds without an answer: they hang


def pair() -> tuple[socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = socket.create_connection(listener.getsockname())
        return near, listener.accept()[0]


def exchange(near: socket.socket, far: socket.socket) -> None:
    near.sendall(b"x" * 1000)
    assert far.recv(1000, socket.MSG_WAITALL) == b"x" * 1000


def child(action, its: socket.socket, ours: socket.socket) -> int:
    pid = os.fork()
    if not pid:
        ours.close()
        action(its)
        os._exit(0)
    its.close()
    return pid


# ---- on the stack ------------------------------------------------------------------------------


def echo(connection: socket.socket) -> None:
    while data := connection.recv(65536):
        connection.sendall(data)


def send_always(connection: socket.socket) -> None:
    block = bytes(65536)
    while True:
        connection.sendall(block)


def call_always(connection: socket.socket) -> None:
    while True:
        connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def drain(connection: socket.socket) -> None:
    while connection.recv(1 << 20):
        pass


def obey() -> None:
    local = pair()
    outside = socket.create_connection(SERVER)
    near, far = pair()
    loads = {"bulk": send_always, "calls": call_always}
    waiting = child(echo, far, near)
    print("ready", waiting, flush=True)
    for line in sys.stdin:
        match line.split():
            case ["lo"]:
                exchange(*local)
            case ["outside"]:
                exchange(outside, outside)
            case ["send"]:
                near.sendall(b"x" * 1000)
            case ["receive"]:
                assert near.recv(1000, socket.MSG_WAITALL) == b"x" * 1000
            case ["load", kind]:
                ours, its = pair()
                print(child(loads[kind], its, ours), end=" ")
                threading.Thread(target=drain, args=[ours], daemon=True).start()
            case ["end", pid]:
                os.waitpid(int(pid), 0)
        print("done", flush=True)
    near.close()
    os.waitpid(waiting, 0)


# ---- beside it ---------------------------------------------------------------------------------


class Members:
    def __init__(self, command: list[str]) -> None:
        words = [*command, sys.executable, __file__, "obey"]
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.waiting = int(self.answer().split()[1])

    def tell(self, *words: str) -> None:
        assert self._process.stdin
        self._process.stdin.write(" ".join(words).encode() + b"\n")
        self._process.stdin.flush()

    def answer(self, seconds: float = DEADLINE) -> str:
        assert self._process.stdout
        if not select.select([self._process.stdout], [], [], seconds)[0]:
            return ""
        return self._process.stdout.readline().decode()

    def do(self, *words: str) -> str:
        self.tell(*words)
        answer = self.answer()
        assert answer.endswith("done\n"), f"{words}: {answer!r}"
        return answer

    def end(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        assert self._process.wait(DEADLINE) == 0


def freeze(pid: int) -> None:
    (GROUP / "cgroup.procs").write_text(str(pid))
    (GROUP / "cgroup.freeze").write_text("1")
    end = time.monotonic() + DEADLINE
    while "frozen 1" not in (GROUP / "cgroup.events").read_text():
        assert time.monotonic() < end, f"{pid} is not frozen"
        time.sleep(0.001)


def thaw() -> None:
    (GROUP / "cgroup.freeze").write_text("0")


def while_it_waits(members: Members) -> None:
    longest = 0.0
    for i in range(ROUNDS):
        # No other thread waits in the stack: it leads.
        time.sleep(0.05)
        freeze(members.waiting)
        before = time.monotonic()
        members.do("outside")
        members.do("lo")
        longest = max(longest, time.monotonic() - before)
        if i % 2:
            members.do("send")
            members.do("outside")
        thaw()
        if not i % 2:
            members.do("send")
        members.do("receive")
    print(f"the others waited {longest:.3f} s at most", file=sys.stderr)
    print("the others go on without one that waits, and it goes on")


def under_load(members: Members, kind: str) -> None:
    """Each round another moment. At the end it is killed as it holds the others up, if it does."""
    pid = int(members.do("load", kind).split()[0])
    still = 0
    for i in range(ROUNDS):
        time.sleep(random.uniform(0.02, 0.1))
        freeze(pid)
        members.tell("lo")
        waits = not (said := members.answer(STILL))
        still += waits
        if waits and i >= ROUNDS // 2:
            break
        thaw()
        assert (said or members.answer()) == "done\n"
    os.kill(pid, signal.SIGKILL)
    if waits:
        assert members.answer() == "done\n"
    members.do("end", str(pid))
    thaw()
    members.do("lo")
    members.do("outside")
    print(f"{kind}: {still} of {i + 1} stood still, the last was killed", file=sys.stderr)
    print(f"{kind}: when it goes on the others do, and when it is killed")


def serve(listener: socket.socket) -> None:
    while True:
        echo(listener.accept()[0])


if sys.argv[1:] == ["obey"]:
    obey()
else:
    GROUP.mkdir()
    with socket.create_server(SERVER) as listener:
        threading.Thread(target=serve, args=[listener], daemon=True).start()
        members = Members(sys.argv[1:])
        while_it_waits(members)
        for kind in ("bulk", "calls"):
            under_load(members, kind)
        members.end()
    GROUP.rmdir()
