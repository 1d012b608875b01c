# SPDX-License-Identifier: GPL-2.0-only
"""lineage.py: a process, its children by fork and by exec, children of those, a grandchild whose
parent has ended, and a program that takes the process over. Each makes calls of the stack, and
prints the name of the program whose thread traces it, or "nobody"."""

import os
import socket
import subprocess
import sys
from pathlib import Path


def status(pid: int | str, key: str) -> int:
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.split(f"\n{key}:")[1].split()[0])


def converse(near: socket.socket, far: socket.socket) -> None:
    near.sendall(b"x" * 1000)
    assert far.recv(1000, socket.MSG_WAITALL) == b"x" * 1000


def pair() -> tuple[socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = socket.create_connection(listener.getsockname())
        return near, listener.accept()[0]


def says(who: str, near: socket.socket, far: socket.socket) -> None:
    converse(near, far)
    tracer = status("self", "TracerPid")
    name = Path(f"/proc/{status(tracer, 'Tgid')}/comm").read_text() if tracer else "nobody\n"
    os.write(1, f"{who}: {name}".encode())


def in_a_child(action) -> None:
    child = os.fork()
    if not child:
        action()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


def orphan(near: socket.socket, far: socket.socket) -> None:
    """A daemon's way: its parent is gone before it speaks."""
    end, its = os.pipe()

    def middle() -> None:
        os.setsid()
        me = os.getpid()
        if not os.fork():
            os.close(end)
            while os.getppid() == me:
                pass
            says("grandchild without a parent", near, far)
            os._exit(0)

    in_a_child(middle)
    os.close(its)
    assert os.read(end, 1) == b""  # the grandchild has ended


def executed(what: str) -> None:
    near, far = (socket.socket(fileno=int(number)) for number in sys.argv[2:])
    says(what, near, far)
    in_a_child(lambda: says("its child by fork", near, far))
    mine = pair()
    in_a_child(lambda: says("its child by fork, of its own sockets", *mine))


if sys.argv[1:]:
    executed(sys.argv[1])
else:
    # Before there is a socket that it could inherit: it joins the stack by itself.
    in_a_child(lambda: says("child that has no sockets", *pair()))
    sockets = pair()
    says("parent", *sockets)
    in_a_child(lambda: says("child by fork", *sockets))
    in_a_child(lambda: in_a_child(lambda: says("grandchild", *sockets)))
    orphan(*sockets)
    numbers = [s.fileno() for s in sockets]
    words = [sys.executable, __file__]
    after = [str(number) for number in numbers]
    subprocess.run([*words, "child by exec", *after], pass_fds=numbers, check=True)
    for number in numbers:
        os.set_inheritable(number, True)
    os.execv(words[0], [*words, "next program", *after])
