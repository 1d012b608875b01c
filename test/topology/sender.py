# SPDX-License-Identifier: GPL-2.0-only
"""A TCP sender of a test's own, frame by frame: it says what lies in each, and sees each answer.

It is a neighbour in a subnet of the namespace far, with an address that far does not have, on a
packet socket of the interface there (a tap of guise's, or a cable). Its frames are as large as they
are given, as those of a sender whose segments are left to the device.
"""

from __future__ import annotations

import socket
import struct
import time
from typing import Self

from topology.namespace import Namespace
from topology.process import DEADLINE

SOL_PACKET, PACKET_VNET_HDR = 263, 15
VNET = struct.Struct("=BBHHHH")  # flags, gso_type, hdr_len, gso_size, csum_start, csum_offset
NEEDS_CSUM, GSO_TCPV4 = 1, 1
ETH_P_ARP, ETH_P_IP = 0x0806, 0x0800
FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
HEADERS = 14 + 20 + 20
MSS = 1448
MAC = bytes.fromhex("020000000077")


def _sum(data: bytes) -> int:
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


class Sender:
    """One connection to a port of `address`, whose answers carry a window."""

    def __init__(self, far: Namespace, interface: str, own: str, address: str, port: int) -> None:
        with far.entered():
            self._packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        self._packets.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
        self._packets.bind((interface, 3))
        self._own, self._address = socket.inet_aton(own), socket.inet_aton(address)
        self._ports = (49152 + int(time.monotonic() * 1000) % 16000, port)
        self._mac = b"\xff" * 6
        self._next, self._expected, self._scale = 1, 0, 0
        self.window = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._segment(RST | ACK)
        self._packets.close()

    def _resolve(self) -> None:
        asks = struct.pack("!HHBBH", 1, ETH_P_IP, 6, 4, 1)
        asks += MAC + self._own + bytes(6) + self._address
        ether = b"\xff" * 6 + MAC + struct.pack("!H", ETH_P_ARP)
        self._packets.send(bytes(VNET.size) + ether + asks)

    def _segment(self, flags: int, payload: bytes = b"", options: bytes = b"") -> None:
        length = 20 + len(options) + len(payload)
        ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + length, 1, 0x4000, 64, 6, 0)
        ip += self._own + self._address
        ip = ip[:10] + struct.pack("!H", _sum(ip) ^ 0xFFFF) + ip[12:]
        # The rest of the sum is the device's.
        pseudo = _sum(self._own + self._address + struct.pack("!HH", 6, length))
        tcp = struct.pack("!HHII", *self._ports, self._next, self._expected)
        tcp += struct.pack("!BBHHH", (5 + len(options) // 4) << 4, flags, 65535, pseudo, 0)
        large = len(payload) > MSS
        header = VNET.pack(
            NEEDS_CSUM, large * GSO_TCPV4, HEADERS if large else 0, MSS if large else 0, 34, 16
        )
        ether = self._mac + MAC + struct.pack("!H", ETH_P_IP)
        self._packets.send(header + ether + ip + tcp + options + payload)
        self._next += len(payload) + bool(flags & SYN)

    def _answer(self, wanted: int, seconds: float) -> int | None:
        """Waits for a segment that acknowledges what was sent, and returns its flags."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._packets.settimeout(left)
            try:
                frame = self._packets.recv(1 << 17)[VNET.size :]
            except TimeoutError:
                return None
            kind = int.from_bytes(frame[12:14], "big")
            if kind == ETH_P_ARP and frame[38:42] == self._own:
                self._mac = frame[6:12]
                if frame[21] == 1:  # it asks
                    self._resolve()
            if kind != ETH_P_IP or frame[26:30] != self._address or frame[23] != 6:
                continue
            tcp = frame[34:]
            if struct.unpack_from("!HH", tcp) != self._ports[::-1]:
                continue
            sequence, acknowledged = struct.unpack_from("!II", tcp, 4)
            if tcp[13] & RST:
                raise ConnectionResetError
            if acknowledged == wanted:
                if tcp[13] & SYN:
                    self._expected = sequence + 1
                    self._scale = _window_scale(tcp[20 : (tcp[12] >> 4) * 4])
                else:
                    self.window = struct.unpack_from("!H", tcp, 14)[0] << self._scale
                return tcp[13]
        return None

    def connect(self) -> None:
        self._resolve()
        end = time.monotonic() + DEADLINE
        first = self._next
        while True:
            self._next = first
            self._segment(SYN, options=struct.pack("!BBHBBBB", 2, 4, MSS, 1, 3, 3, 7))
            if self._answer(first + 1, 1):
                break
            assert time.monotonic() < end, "nobody answers"
        self._segment(ACK)

    def send(self, length: int) -> int:
        """One frame with so much payload: the window that its acknowledgement opens."""
        self._segment(PSH | ACK, bytes(length))
        assert self._answer(self._next, 10) is not None, "nothing is acknowledged"
        return self.window


def _window_scale(options: bytes) -> int:
    while options and options[0]:
        if options[0] == 3:
            return options[2]
        options = options[1:] if options[0] == 1 else options[options[1] :]
    return 0
