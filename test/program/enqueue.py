# SPDX-License-Identifier: GPL-2.0-only
"""enqueue.py HOST PORT SIZE: leaves that many bytes in its send buffer, and ends. "queued" comes
before."""

import socket
import sys

data = bytes(i % 251 for i in range(int(sys.argv[3])))
connection = socket.socket()
connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * len(data))
connection.connect((sys.argv[1], int(sys.argv[2])))
connection.setblocking(False)
assert connection.send(data) == len(data)
print("queued", flush=True)
