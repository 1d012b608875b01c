# SPDX-License-Identifier: GPL-2.0-only
"""fill.py: opens connections over loopback, each full of data that is not read, until the stack has
no memory for another. It closes all of them, and then a transfer must work as
before. Prints in JSON with which error the stack refused, how many connections there were then,
and whether the transfer was right."""

import contextlib
import errno
import json
import resource
import socket

MOST = 100_000


def fill(address: tuple[str, int], listener: socket.socket, kept: list[socket.socket]) -> None:
    """Returns only by an error of the stack."""
    while len(kept) < MOST:
        client = socket.socket()
        kept.append(client)
        client.connect(address)
        server, _ = listener.accept()
        kept.append(server)
        client.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                client.send(bytes(65536))


def transfer() -> bool:
    """Over a listener of its own: in the queue of the other may wait a connection that accept had
    no memory for, whose client is gone."""
    message = b"as if nothing had happened" * 10_000
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as client,
    ):
        server, _ = listener.accept()
        with server:
            sent = received = b""
            client.settimeout(20)
            server.settimeout(20)
            while len(received) < len(message):
                piece = message[len(sent) : len(sent) + 4096]
                client.sendall(piece)
                sent += piece
                received += server.recv(65536)
            return received == message


soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
kept: list[socket.socket] = []
refusal = "none"
with socket.create_server(("127.0.0.1", 0), backlog=16) as listener:
    address = listener.getsockname()
    try:
        fill(address, listener, kept)
    except OSError as error:
        refusal = errno.errorcode[error.errno or 0]
    count = len(kept) // 2
    for one in kept:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        one.close()
    print(json.dumps({"refusal": refusal, "count": count, "right": transfer()}))
