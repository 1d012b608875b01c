# SPDX-License-Identifier: GPL-2.0-only
"""A conversation whose ends come one by one, and one that is reset: what a relay on the way must
pass on as it is."""

from __future__ import annotations

import socket
import struct

from topology.side import PYTHON, GuiseSide

CLIENT = """
import socket, sys
at = (sys.argv[1], int(sys.argv[2]))
with socket.create_connection(at, 30) as c:
    c.sendall(b"question" * 100000)
    c.shutdown(socket.SHUT_WR)
    print(len(b"".join(iter(lambda: c.recv(65536), b""))))
with socket.create_connection(at, 30) as c:
    c.sendall(b"x")
    try:
        print(c.recv(1))
    except ConnectionResetError:
        print("reset")
"""


def each_end_comes_by_itself(side: GuiseSide, address: str, server: socket.socket) -> None:
    """What is sent after the peer's end still arrives, and a reset is a reset. server is what the
    side reaches at that address."""
    server.listen()
    with side.start(PYTHON, "-c", CLIENT, address, str(server.getsockname()[1])) as client:
        peer, _ = server.accept()
        peer.settimeout(60)
        assert len(b"".join(iter(lambda: peer.recv(65536), b""))) == 800000
        peer.sendall(b"answer" * 500000)
        peer.close()
        peer, _ = server.accept()
        peer.settimeout(60)
        assert peer.recv(1) == b"x"
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.close()
        assert client.finish().expect().text.split() == ["3000000", "reset"]
