# SPDX-License-Identifier: GPL-2.0-only
"""A connection that carries data both ways all the time, while a test does things to its paths.

both_ways.py serve PORT                        sends back what it gets; asks for MPTCP
both_ways.py exchange ADDRESS PORT PROTOCOL    sends until its standard input ends

PROTOCOL is "tcp", as any program asks, or "mptcp". The client prints how many pieces came back, one
number a line, and at the end "right, longest stall N ms" if what came back is what was sent. The
stall is the longest time without a byte, from the connection's first attempt on."""

import hashlib
import os
import select
import socket
import sys
import threading
import time

IPPROTO_MPTCP = 262
PIECE = 65536


def answer(connection: socket.socket) -> None:
    with connection:
        while got := connection.recv(PIECE):
            connection.sendall(got)


def serve(port: int) -> None:
    listener = socket.socket(socket.AF_INET6, socket.SOCK_STREAM, IPPROTO_MPTCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("::", port))
    listener.listen()
    print("ready", flush=True)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=answer, args=(connection,), daemon=True).start()


def exchange(address: str, port: int, protocol: int) -> None:
    sent, heard = hashlib.sha256(), hashlib.sha256()
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    stall, last = 0.0, time.monotonic()
    with socket.socket(family, socket.SOCK_STREAM, protocol) as connection:
        connection.connect((address, port))

        def send() -> None:
            while not select.select([sys.stdin], [], [], 0)[0]:
                piece = os.urandom(PIECE)
                sent.update(piece)
                connection.sendall(piece)
            connection.shutdown(socket.SHUT_WR)

        sender = threading.Thread(target=send)
        sender.start()
        size = pieces = 0
        while got := connection.recv(PIECE):
            now = time.monotonic()
            stall, last = max(stall, now - last), now
            heard.update(got)
            size += len(got)
            if size // PIECE > pieces:
                pieces = size // PIECE
                print(pieces, flush=True)
        sender.join()
    if heard.digest() != sent.digest():
        sys.exit(f"the checksum is wrong after {size} bytes")
    print(f"right, longest stall {stall * 1000:.0f} ms")


if sys.argv[1] == "serve":
    serve(int(sys.argv[2]))
else:
    exchange(sys.argv[2], int(sys.argv[3]), IPPROTO_MPTCP if sys.argv[4] == "mptcp" else 0)
