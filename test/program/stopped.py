# SPDX-License-Identifier: GPL-2.0-only
"""stopped.py leads HOST PORT  a child that waits for HOST is stopped: its parent goes on with HOST
stopped.py woken           a child that waits on lo is stopped, and is sent something

Both say "stopped" when it has, and wait for a line before they go on; the second then prints what
came back from the child after it was continued."""

import os
import signal
import socket
import sys


def stop(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)
    os.waitpid(pid, os.WUNTRACED)


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
        child = os.fork()
        if not child:
            other.recv(1)
            os._exit(0)
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


def woken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        child = os.fork()
        if not child:
            connection, _ = listener.accept()
            while data := connection.recv(1):
                connection.sendall(data)
            os._exit(0)
        with socket.create_connection(listener.getsockname()) as connection:
            exchange(connection)
            until_it_sleeps(child)
            stop(child)
            connection.sendall(b"y")
            print("stopped", flush=True)
            sys.stdin.readline()
            os.kill(child, signal.SIGCONT)
            print(connection.recv(1).decode(), flush=True)
        os.waitpid(child, 0)


if sys.argv[1] == "leads":
    leads(sys.argv[2], int(sys.argv[3]))
else:
    woken()
