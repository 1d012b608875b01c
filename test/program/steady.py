# SPDX-License-Identifier: GPL-2.0-only
"""One end of a connection that goes on and on, while a test does things to its paths.

steady.py serve PORT PROTOCOL      serves connections, each in a thread of its own
steady.py send ADDRESS PORT        sends piece after piece, until its standard input ends

PROTOCOL is "mptcp", which asks for it, or "tcp". The server answers each piece with its number, and
the end with the checksum of all. The client prints how many pieces were answered, then "right" if
the checksum is, and else what went wrong."""

import hashlib
import select
import socket
import sys
import threading

IPPROTO_MPTCP = 262
PIECE = bytes(range(256)) * 256


def read(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            break
        data += more
    return data


def answer(connection: socket.socket) -> None:
    checksum = hashlib.sha256()
    number = 0
    with connection:
        while len(piece := read(connection, len(PIECE))) == len(PIECE):
            checksum.update(piece)
            number += 1
            connection.sendall(number.to_bytes(8, "big"))
        connection.sendall(checksum.digest())


def serve(port: int, protocol: int) -> None:
    listener = socket.socket(socket.AF_INET6, socket.SOCK_STREAM, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("::", port))
    listener.listen()
    print("ready", flush=True)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=answer, args=(connection,), daemon=True).start()


def send(address: str, port: int) -> None:
    checksum = hashlib.sha256()
    number = 0
    with socket.create_connection((address, port)) as connection:
        print("connected", flush=True)
        while not select.select([sys.stdin], [], [], 0.005)[0]:
            number += 1
            piece = number.to_bytes(8, "big") + PIECE[8:]
            checksum.update(piece)
            connection.sendall(piece)
            got = int.from_bytes(read(connection, 8), "big")
            if got != number:
                sys.exit(f"piece {number} was answered with {got}")
            print(number, flush=True)
        connection.shutdown(socket.SHUT_WR)
        if read(connection, 32) != checksum.digest():
            sys.exit("the checksum is wrong")
    print("right")


if sys.argv[1] == "serve":
    serve(int(sys.argv[2]), IPPROTO_MPTCP if sys.argv[3] == "mptcp" else 0)
else:
    send(sys.argv[2], int(sys.argv[3]))
