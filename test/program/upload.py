# SPDX-License-Identifier: GPL-2.0-only
"""upload.py HOST PORT BYTES: sends that many bytes, and prints in JSON which congestion control
this connection had, and the checksum that the receiver answered with."""

import json
import random
import socket
import sys

host, port, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with socket.create_connection((host, port)) as connection:
    connection.sendall(random.Random(1).randbytes(size))
    connection.shutdown(socket.SHUT_WR)
    name = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
    answer = b""
    while data := connection.recv(4096):
        answer += data
print(json.dumps({"cc": name.rstrip(b"\0").decode(), "sha256": answer.decode()}))
