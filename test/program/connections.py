#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Makes many connections to a server that sends back what it gets, one after the other, and counts
those that fail.

connections.py serve ADDRESS PORT          says "ready", and ends with its stdin
connections.py make ADDRESS PORT NUMBER    "1000 whole, 0 failed"
connections.py bulk ADDRESS PORT MEGABYTES there and back over one connection: "250 MB whole"
"""

from __future__ import annotations

import hashlib
import os
import socket
import sys
import threading


def answer(connection: socket.socket) -> None:
    with connection:
        while piece := connection.recv(65536):
            connection.sendall(piece)


def accept(listener: socket.socket) -> None:
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=answer, args=(connection,), daemon=True).start()


def serve(address: str, port: int) -> None:
    both = address == "::"
    family = socket.AF_INET6 if both else socket.AF_INET
    listener = socket.create_server(
        (address, port), family=family, backlog=512, dualstack_ipv6=both
    )
    with listener:
        threading.Thread(target=accept, args=(listener,), daemon=True).start()
        print("ready", flush=True)
        sys.stdin.read()


def make(address: str, port: int, number: int) -> None:
    failed, why = 0, ""
    for i in range(number):
        try:
            with socket.create_connection((address, port), timeout=30) as connection:
                said = os.urandom(1000 + i % 1000)
                connection.sendall(said)
                connection.shutdown(socket.SHUT_WR)
                heard = b""
                while piece := connection.recv(65536):
                    heard += piece
                if heard != said:
                    raise OSError(f"{len(heard)} bytes came back of {len(said)}")
        except OSError as error:
            failed, why = failed + 1, f": {error}"
    print(f"{number - failed} whole, {failed} failed{why}")


def bulk(address: str, port: int, megabytes: int) -> None:
    piece = os.urandom(1 << 20)
    with socket.create_connection((address, port), timeout=120) as connection:

        def send() -> None:
            for _ in range(megabytes):
                connection.sendall(piece)
            connection.shutdown(socket.SHUT_WR)

        sender = threading.Thread(target=send)
        sender.start()
        sent, heard = hashlib.sha256(), hashlib.sha256()
        for _ in range(megabytes):
            sent.update(piece)
        while got := connection.recv(1 << 20):
            heard.update(got)
        sender.join()
        whole = sent.digest() == heard.digest()
        print(f"{megabytes} MB {'whole' if whole else 'damaged'}")


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2], int(sys.argv[3]))
    else:
        {"make": make, "bulk": bulk}[sys.argv[1]](sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
