# SPDX-License-Identifier: GPL-2.0-only
"""Reads what lo carries through a ring of a packet socket, of version 1, 2 or 3, which is filled
several times over. Prints how many frames came, whether each was right, and what was dropped.

    packet_ring.py VERSION
"""

import mmap
import select
import socket
import struct
import sys

SOL_PACKET, RX_RING, STATISTICS, VERSION = 263, 5, 6, 10
TP_STATUS_USER = 1
BLOCK, BLOCKS, FRAME = 65536, 16, 2048
DATAGRAMS = 1000
version = int(sys.argv[1])
units, unit_size = (BLOCKS, BLOCK) if version == 3 else (BLOCKS * BLOCK // FRAME, FRAME)
status = {1: "=Q", 2: "=I", 3: "=8xI"}[version]


def content(number: int) -> bytes:
    return struct.pack("=I", number) * 100


def numbers(at: int) -> list[int]:
    """The datagrams of one unit."""
    found = []
    if version < 3:
        offsets = [at]
    else:
        count, offset = struct.unpack_from("=II", ring, at + 12)
        offsets = []
        for _ in range(count):
            offsets.append(at + offset)
            offset += struct.unpack_from("=I", ring, at + offset)[0]
    for frame in offsets:
        mac = struct.unpack_from({1: "=16xH", 2: "=12xH", 3: "=24xH"}[version], ring, frame)[0]
        data = frame + mac + 14 + 20 + 8
        number = struct.unpack_from("=I", ring, data)[0]
        assert ring[data : data + 400] == content(number), number
        found.append(number)
    return found


packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
packets.bind(("lo", 0))
packets.setsockopt(SOL_PACKET, VERSION, version - 1)
request = struct.pack("=IIII", BLOCK, BLOCKS, FRAME, BLOCK * BLOCKS // FRAME)
packets.setsockopt(SOL_PACKET, RX_RING, request + struct.pack("=III", 10, 0, 0) * (version == 3))
ring = mmap.mmap(packets.fileno(), BLOCK * BLOCKS)
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.bind(("127.0.0.1", 0))
seen: list[int] = []
sent = unit = 0
while len(seen) < DATAGRAMS:
    # Even if each is in a block of its own, there is room for all that are under way.
    for _ in range(10 if sent == len(seen) else 0):
        sender.sendto(content(sent), sender.getsockname())
        sender.recv(1000)
        sent += 1
    if not struct.unpack_from(status, ring, unit * unit_size)[0] & TP_STATUS_USER:
        assert select.select([packets], [], [], 60)[0], f"nothing comes after {len(seen)}"
    while struct.unpack_from(status, ring, unit * unit_size)[0] & TP_STATUS_USER:
        seen += numbers(unit * unit_size)
        start, size = {1: (0, 8), 2: (0, 4), 3: (8, 4)}[version]
        at = unit * unit_size + start
        ring[at : at + size] = bytes(size)
        unit = (unit + 1) % units
assert seen == [*range(DATAGRAMS)]
total, dropped = struct.unpack("=II", packets.getsockopt(SOL_PACKET, STATISTICS, 12)[:8])
ring.close()
print(len(seen), dropped)
