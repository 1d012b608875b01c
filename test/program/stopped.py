# SPDX-License-Identifier: GPL-2.0-only
"""stopped.py leads HOST PORT  a child that waits for HOST is stopped: its parent goes on with HOST
stopped.py woken THREADS   a child is stopped whose threads wait on lo; each is sent something

Both say "stopped" when it has, and wait for a line before they go on; the second then prints what
came back from the child's threads after it was continued. These wait for a socket and for a
descriptor of the host, so that each has to be woken by a bell (lib/region/bell.c)."""

import ctypes
import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable

PR_SET_PDEATHSIG = 1  # linux/prctl.h


def stop(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)
    os.waitpid(pid, os.WUNTRACED)


def start(work: Callable[[], object]) -> int:
    """A child that does that, and ends with its parent, stopped or not."""
    child = os.fork()
    if not child:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        work()
        os._exit(0)
    return child


def until_it_sleeps(pid: int) -> None:
    """One that sleeps ten times in a row where it is looked at, sleeps in its call."""
    seen = 0
    while seen < 10:
        with open(f"/proc/{pid}/stat") as stat:
            seen = seen + 1 if stat.read().rpartition(")")[2].split()[0] == "S" else 0
        with open(f"/proc/{pid}/status") as status:
            status.read()


def exchange(connection: socket.socket) -> None:
    for _ in range(20):
        connection.sendall(b"x")
        assert connection.recv(1) == b"x"


def leads(host: str, port: int) -> None:
    with socket.create_connection((host, port)) as other:
        child = start(lambda: other.recv(1))
        with socket.create_connection((host, port)) as connection:
            exchange(connection)
            until_it_sleeps(child)
            stop(child)
            print("stopped", flush=True)
            sys.stdin.readline()
            exchange(connection)
            print("ok", flush=True)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def answer(own: socket.socket, other: int) -> None:
    both = select.poll()
    both.register(own, select.POLLIN)
    both.register(other, select.POLLIN)
    both.poll()
    data, sender = own.recvfrom(1)
    own.sendto(data, sender)


def woken(count: int) -> None:
    sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(count + 1)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    mine, *others = sockets
    # Room for all answers: they may come before the first of them is read.
    mine.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1000 * count)
    never, keeps_it_open = os.pipe()

    def answer_all() -> None:
        threads = [threading.Thread(target=answer, args=(other, never)) for other in others]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    child = start(answer_all)
    while len(os.listdir(f"/proc/{child}/task")) < count + 1:
        os.sched_yield()
    for task in os.listdir(f"/proc/{child}/task"):
        until_it_sleeps(int(task))
    stop(child)
    for other in others:
        mine.sendto(b"y", other.getsockname())
    print("stopped", flush=True)
    sys.stdin.readline()
    os.kill(child, signal.SIGCONT)
    print(b"".join(mine.recv(1) for _ in others).decode(), flush=True)
    os.waitpid(child, 0)
    os.close(keeps_it_open)


if sys.argv[1] == "leads":
    leads(sys.argv[2], int(sys.argv[3]))
else:
    woken(int(sys.argv[2]))
