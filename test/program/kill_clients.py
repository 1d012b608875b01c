# SPDX-License-Identifier: GPL-2.0-only
"""kill_clients.py HOST PORT ROUNDS: two children at a time exchange bulk with an echo server, and
are killed in the midst of it. Prints in how many rounds both lived until then; at the end one that
is not killed has back what it sent."""

import os
import random
import signal
import socket
import sys
import time

PIECE = bytes(range(256)) * 256


def connect(address: tuple[str, int]) -> socket.socket:
    connection = socket.create_connection(address, timeout=20)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * len(PIECE))
    return connection


def exchange(connection: socket.socket) -> None:
    connection.sendall(PIECE)
    back = b""
    while len(back) < len(PIECE):
        piece = connection.recv(len(PIECE) - len(back))
        assert piece, "the server has closed"
        back += piece
    assert back == PIECE


def start(address: tuple[str, int]) -> tuple[int, int]:
    """A child, and where it says that it has begun."""
    reads, writes = os.pipe()
    child = os.fork()
    if child:
        os.close(writes)
        return child, reads
    try:
        connection = connect(address)
        exchange(connection)
        os.write(writes, b"x")
        while True:
            exchange(connection)
    except BaseException as error:
        print(repr(error), file=sys.stderr, flush=True)
    os._exit(3)


address, rounds = (sys.argv[1], int(sys.argv[2])), int(sys.argv[3])
good = 0
for _ in range(rounds):
    children = [start(address) for _ in range(2)]
    for _, begun in children:
        os.read(begun, 1)
        os.close(begun)
    time.sleep(random.random() / 50)
    for child, _ in children:
        os.kill(child, signal.SIGKILL)
    good += all(os.waitpid(child, 0)[1] == signal.SIGKILL for child, _ in children)
print(good, "rounds")
with connect(address) as connection:
    exchange(connection)
print("ok")
