# SPDX-License-Identifier: GPL-2.0-only
"""A peer that speaks Multipath TCP of version 0 (RFC 6824) alone, as the kernels of
multipath-tcp.org did: it answers a SYN of any version with its own.

mptcp_version_0.py DEVICE ADDRESS   reads and writes whole packets of a tun device of the namespace

It knows as much of TCP as one request and one short answer take."""

import fcntl
import ipaddress
import os
import struct
import sys

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 1, 0x1000
FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
MPTCP, KEY = 30, bytes(range(8))
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nold"


def checksum(content: bytes) -> int:
    content += b"\0" * (len(content) % 2)
    total = sum(struct.unpack(f"!{len(content) // 2}H", content))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


class Segment:
    """One that came, over IPv4."""

    def __init__(self, packet: bytes) -> None:
        at = (packet[0] & 15) * 4
        self.source, self.target = packet[12:16], packet[16:20]
        self.from_port, self.to_port, self.sequence = struct.unpack_from("!HHI", packet, at)
        self.flags = packet[at + 13]
        self.data = packet[at + (packet[at + 12] >> 4) * 4 : int.from_bytes(packet[2:4], "big")]

    def reply(self, flags: int, sequence: int, taken: int, options: bytes, data: bytes) -> bytes:
        taken = (self.sequence + taken) & 0xFFFFFFFF
        length = 20 + len(options)
        head = struct.pack("!HHIIBBH", self.to_port, self.from_port, sequence, taken,
                           length // 4 << 4, flags, 65535)  # fmt: skip
        size = length + len(data)
        pseudo = self.target + self.source + struct.pack("!HH", 6, size)
        total = checksum(pseudo + head + b"\0\0\0\0" + options + data)
        segment = head + struct.pack("!HH", total, 0) + options + data
        ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + size, 0, 0, 64, 6, 0)
        ip += self.target + self.source
        return ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:] + segment


def answers(segment: Segment) -> list[bytes]:
    if segment.flags & RST:
        return []
    if segment.flags & SYN:
        # Subtype 0, version 0; HMAC-SHA1.
        return [segment.reply(SYN | ACK, 1000, 1, bytes([MPTCP, 12, 0, 1]) + KEY, b"")]
    if segment.data:
        return [segment.reply(ACK | PSH | FIN, 1001, len(segment.data), b"", ANSWER)]
    if segment.flags & FIN:
        return [segment.reply(ACK, 1002 + len(ANSWER), 1, b"", b"")]
    return []


name, own = sys.argv[1], ipaddress.IPv4Address(sys.argv[2]).packed
tun = os.open("/dev/net/tun", os.O_RDWR)
fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
print("ready", flush=True)
while packet := os.read(tun, 65536):
    if packet[0] >> 4 == 4 and packet[9] == 6 and packet[16:20] == own:
        for answer in answers(Segment(packet)):
            os.write(tun, answer)
