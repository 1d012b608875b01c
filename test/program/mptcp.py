# SPDX-License-Identifier: GPL-2.0-only
"""One end of a connection that may be Multipath TCP.

mptcp.py listen FAMILY ADDRESS PORT PROTOCOL      answers an upload with its checksum
mptcp.py connect FAMILY ADDRESS PORT PROTOCOL SUBFLOWS

FAMILY is 4 or 6; PROTOCOL is "mptcp", which asks for it, or "tcp", as an unmodified program does.
The connecting end sends until the connection has SUBFLOWS additional subflows, then some more. Both
print in JSON what their socket says of itself: MPTCP_INFO, or the error with which it says that it
is none."""

import hashlib
import json
import os
import socket
import struct
import sys
import time

IPPROTO_MPTCP = 262
SOL_MPTCP = 284
MPTCP_INFO = 1
FALLBACK = 1
PIECE = b"all paths lead to it" * 3277


def info(connection: socket.socket) -> dict[str, object]:
    try:
        raw = connection.getsockopt(SOL_MPTCP, MPTCP_INFO, 512)
    except OSError as error:
        return {"error": os.strerror(error.errno or 0)}
    flags = struct.unpack_from("I", raw, 8)[0]
    return {"subflows": raw[0], "fallback": bool(flags & FALLBACK)}


def listen(listener: socket.socket, address: tuple[str, int]) -> None:
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(address)
    listener.listen()
    print("ready", flush=True)
    connection, _ = listener.accept()
    checksum = hashlib.sha256()
    while data := connection.recv(1 << 20):
        checksum.update(data)
    answer = info(connection)
    connection.sendall(checksum.hexdigest().encode())
    connection.close()
    print(json.dumps({**answer, "sha256": checksum.hexdigest()}))


def connect(connection: socket.socket, address: tuple[str, int], subflows: int) -> None:
    connection.connect(address)
    checksum = hashlib.sha256()
    end = time.monotonic() + 20
    rest = 100
    while rest and time.monotonic() < end:
        connection.sendall(PIECE)
        checksum.update(PIECE)
        now = info(connection)
        if "error" in now or now["subflows"] == subflows:
            rest -= 1
    answer = info(connection)
    connection.shutdown(socket.SHUT_WR)
    received = b""
    while data := connection.recv(4096):
        received += data
    right = received.decode() == checksum.hexdigest()
    print(json.dumps({**answer, "sha256": checksum.hexdigest(), "right": right}))


role, family, host, port, protocol = sys.argv[1:6]
end = socket.socket(
    socket.AF_INET if family == "4" else socket.AF_INET6,
    socket.SOCK_STREAM,
    IPPROTO_MPTCP if protocol == "mptcp" else 0,
)
if role == "listen":
    listen(end, (host, int(port)))
else:
    connect(end, (host, int(port)), int(sys.argv[6]))
