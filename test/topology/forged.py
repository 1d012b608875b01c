# SPDX-License-Identifier: GPL-2.0-only
"""Packets with any addresses, for tests that attack; their checksums are right."""

from __future__ import annotations

import ipaddress
import socket
import struct
from typing import Self

from topology.namespace import Namespace

FIN, SYN, RST, ACK = 1, 2, 4, 16
TCP, UDP, ICMP6 = 6, 17, 58
ETH_P_IP, ETH_P_ARP, ETH_P_IPV6 = 0x0800, 0x0806, 0x86DD
MAC = bytes.fromhex("020000000066")


def packed(address: str) -> bytes:
    return ipaddress.ip_address(address).packed


def _sum(data: bytes) -> int:
    total = sum(struct.unpack(f"!{(len(data) + 1) // 2}H", data + bytes(len(data) % 2)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def packet(source: str, destination: str, protocol: int, body: bytes, at: int) -> bytes:
    """An IP packet; the checksum of its body is at that place."""
    addresses = packed(source) + packed(destination)
    pseudo = addresses + struct.pack("!II", len(body), protocol)
    body = body[:at] + struct.pack("!H", _sum(pseudo + body)) + body[at + 2 :]
    if len(addresses) == 32:
        return struct.pack("!IHBB", 6 << 28, len(body), protocol, 64) + addresses + body
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(body), 0, 0x4000, 64, protocol, 0)
    head += addresses
    return head[:10] + struct.pack("!H", _sum(head)) + head[12:] + body


def tcp(source: str, destination: str, ports: tuple[int, int], flags: int = SYN) -> bytes:
    body = struct.pack("!HHIIBBHHH", *ports, 1, 0, 5 << 4, flags, 65535, 0, 0)
    return packet(source, destination, TCP, body, 16)


def udp(source: str, destination: str, ports: tuple[int, int], payload: bytes) -> bytes:
    body = struct.pack("!HHHH", *ports, 8 + len(payload), 0) + payload
    return packet(source, destination, UDP, body, 6)


def cut(ip: bytes, bytes_less: int) -> bytes:
    """The packet without its end, as if it had been sent so."""
    ip = ip[:-bytes_less]
    if ip[0] >> 4 == 6:
        return ip[:4] + struct.pack("!H", len(ip) - 40) + ip[6:]
    head = ip[:2] + struct.pack("!H", len(ip)) + ip[4:10] + bytes(2) + ip[12:20]
    return head[:10] + struct.pack("!H", _sum(head)) + head[12:] + ip[20:]


class Forger:
    """Sends frames by an interface of a namespace, and sees what comes back. Without an address to
    send to, it is an interface without Ethernet."""

    def __init__(self, far: Namespace, interface: str, to: bytes | None) -> None:
        with far.entered():
            self._packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        self._packets.bind((interface, 3))
        self._packets.settimeout(0)
        self._interface, self._to = interface, to

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._packets.close()

    def send(self, ip: bytes) -> None:
        kind = ETH_P_IPV6 if ip[0] >> 4 == 6 else ETH_P_IP
        ether = self._to + MAC + struct.pack("!H", kind) if self._to else b""
        self._packets.sendto(ether + ip, (self._interface, kind))

    def ask(self, own: str, address: str) -> None:
        """By ARP, whose address that is."""
        asks = struct.pack("!HHBBH", 1, ETH_P_IP, 6, 4, 1)
        asks += MAC + packed(own) + bytes(6) + packed(address)
        self._packets.send(b"\xff" * 6 + MAC + struct.pack("!H", ETH_P_ARP) + asks)

    def heard(self) -> list[bytes]:
        """The frames that the other end has sent since the last look."""
        frames: list[bytes] = []
        while True:
            try:
                frame, (_, _, kind, _, _) = self._packets.recvfrom(1 << 16)
            except BlockingIOError:
                return frames
            if kind != socket.PACKET_OUTGOING:
                frames.append(frame)
