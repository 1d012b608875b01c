#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""A modem: carries IP packets between a tun of one network namespace and a tun of another.

modem.py NAMESPACE NAME NAMESPACE NAME    says "ready"; ends when its stdin does
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import select
import struct
import sys

CLONE_NEWNET = 0x40000000
TUNSETIFF = 0x400454CA
IFF_TUN_NO_PI = 0x1001


def tun(namespace: str, name: str) -> int:
    with open(f"/run/netns/{namespace}", "rb") as inside:
        if ctypes.CDLL(None, use_errno=True).setns(inside.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"cannot enter {namespace}")
    fd = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN_NO_PI))
    return fd


def main() -> None:
    ends = [tun(*sys.argv[1:3]), tun(*sys.argv[3:5])]
    print("ready", flush=True)
    while True:
        readable, _, _ = select.select([*ends, 0], [], [])
        if 0 in readable and not os.read(0, 1):
            return
        for end, other in (ends, reversed(ends)):
            if end in readable:
                packet = os.read(end, 65536)
                try:
                    os.write(other, packet)
                except OSError:  # it is down
                    continue


if __name__ == "__main__":
    main()
