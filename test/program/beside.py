# SPDX-License-Identifier: GPL-2.0-only
"""How often processes wake that wait for a socket and a pipe, while others talk that do so, too.

beside.py IDLE ROUNDS: IDLE processes wait for what never comes; two more make ROUNDS round trips.
Prints the most switches that an idle one made of its own accord meanwhile.
"""

import os
import select
import socket
import sys
from pathlib import Path

IDLE, ROUNDS = int(sys.argv[1]), int(sys.argv[2])


def waiting(sock: socket.socket) -> select.poll:
    """Of the socket and of a pipe that says nothing."""
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    poll.register(os.pipe()[0], select.POLLIN)
    return poll


def udp() -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind(("127.0.0.1", 0))
    return sock


def child(work, *arguments) -> int:
    pid = os.fork()
    if not pid:
        work(*arguments)
        os._exit(0)
    return pid


def idle(ready: int, end: int) -> None:
    poll = waiting(udp())
    poll.register(end, select.POLLIN)
    poll.poll(0)
    os.write(ready, b"x")
    poll.poll()


def echo(sock: socket.socket) -> None:
    poll = waiting(sock)
    while True:
        poll.poll()
        data, peer = sock.recvfrom(16)
        if not data:
            return
        sock.sendto(data, peer)


def switches(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("voluntary_ctxt_switches"):
            return int(line.split()[1])
    raise LookupError(pid)


far, near = udp(), udp()
ready, end = os.pipe(), os.pipe()
idles = [child(idle, ready[1], end[0]) for _ in range(IDLE)]
for _ in idles:
    os.read(ready[0], 1)
server = child(echo, far)
poll = waiting(near)
before = [switches(pid) for pid in idles]
for _ in range(ROUNDS):
    near.sendto(b"x", far.getsockname())
    poll.poll()
    near.recv(16)
print(max(switches(pid) - then for pid, then in zip(idles, before, strict=True)))
near.sendto(b"", far.getsockname())
os.close(end[0])
os.close(end[1])
