# SPDX-License-Identifier: GPL-2.0-only
"""qemu_peer.py SOCKET TAP: what QEMU does with -netdev stream,server=on: waits for one visitor on a
Unix socket, and moves frames between it and a tap of this network namespace, each behind its length
of four bytes. It sends odd parts of frames: the framing must not depend on that."""

import fcntl
import os
import select
import socket
import struct
import sys

TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 2, 0x1000


def main(path: str, name: str) -> None:
    tap = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI))
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(1)
    print("waiting", flush=True)
    visitor, _ = listener.accept()
    gathered, part = b"", 1
    while True:
        readable, _, _ = select.select([tap, visitor.fileno()], [], [])
        if tap in readable:
            frame = os.read(tap, 65536)
            visitor.sendall(struct.pack(">I", len(frame)) + frame)
        if visitor.fileno() in readable:
            part = part * 7 % 40_009
            got = visitor.recv(part)
            if not got:
                return
            gathered += got
            while len(gathered) >= 4:
                (length,) = struct.unpack_from(">I", gathered)
                if len(gathered) < 4 + length:
                    break
                os.write(tap, gathered[4 : 4 + length])
                gathered = gathered[4 + length :]


main(*sys.argv[1:])
