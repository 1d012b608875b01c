# SPDX-License-Identifier: GPL-2.0-only
"""What crosses a tap, seen from the host's side: a packet socket tells each frame's virtio-net
header as guise wrote it, or as guise will get it."""

from __future__ import annotations

import contextlib
import errno
import re
import socket
import struct
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from subprocess import PIPE

import pytest
from topology.content import Content
from topology.namespace import Namespace
from topology.process import DEADLINE, eventually
from topology.side import GuiseSide, without_proof

SOL_PACKET, PACKET_VNET_HDR = 263, 15
SO_RCVBUFFORCE = 33
HEADER = struct.Struct("=BBHHHH")  # flags, gso_type, hdr_len, gso_size, csum_start, csum_offset
NEEDS_CSUM = 1
GSO_NONE, GSO_TCPV4, GSO_TCPV6, GSO_ECN = 0, 1, 4, 0x80
MTU, ETHERNET = 1500, 14
PAGE, CHUNK = 4096, 32768  # linux/arch/guise/drivers/net/link.h
ETH_P_ALL = 3


@dataclass
class Seen:
    """Of the TCP segments with payload in one direction."""

    frames: int = 0
    largest: int = 0
    large: int = 0  # larger than the MTU
    unsummed: int = 0  # whose checksum is left to the receiver
    kinds: Counter[int] = field(default_factory=Counter)
    sizes: set[int] = field(default_factory=set)  # of the segments in the large ones

    def add(self, frame: bytes) -> None:
        flags, kind, _, size, _, _ = HEADER.unpack_from(frame)
        length = len(frame) - HEADER.size
        if length < 500:
            return  # no payload
        self.frames += 1
        self.largest = max(self.largest, length)
        self.unsummed += bool(flags & NEEDS_CSUM)
        self.kinds[kind & ~GSO_ECN] += 1
        if length > MTU + ETHERNET:
            self.large += 1
            self.sizes.add(size)


class Watch:
    """Every frame of the tap, from when it exists."""

    def __init__(self, far: Namespace) -> None:
        self.seen = {"out of guise": Seen(), "into guise": Seen()}
        self._far, self._stop = far, threading.Event()
        self._listens = threading.Event()
        self._before = far.interfaces()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.error: BaseException | None = None

    def _taps(self) -> set[str]:
        return self._far.interfaces() - self._before

    def _run(self) -> None:
        try:
            with self._far.entered():
                packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            with packets:
                packets.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
                packets.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
                eventually(lambda: self._taps() or self._stop.is_set(), "there is a tap")
                for tap in self._taps():
                    packets.bind((tap, ETH_P_ALL))
                packets.settimeout(0.1)
                self._listens.set()
                self._receive(packets)
        except BaseException as error:
            self.error = error

    def _receive(self, packets: socket.socket) -> None:
        while True:
            try:
                frame, (_, _, kind, _, _) = packets.recvfrom(1 << 17)
            except TimeoutError:
                if self._stop.is_set():
                    return
                continue
            except OSError as error:
                if error.errno != errno.ENETDOWN:  # said once before it is up, and at its end
                    raise
                continue
            outgoing = kind == socket.PACKET_OUTGOING
            self.seen["into guise" if outgoing else "out of guise"].add(frame)

    @contextlib.contextmanager
    def watching(self) -> Iterator[Watch]:
        self._thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            self._thread.join()
        if self.error:
            raise self.error

    def await_tap(self) -> None:
        """From now on the socket gets each frame."""
        assert self._listens.wait(DEADLINE), f"the tap is watched: {self.error!r}"


def transfer(guise: GuiseSide, content: Content, address: str, *options: str) -> dict[str, Seen]:
    """Sends the blob to guise and back, and checks it; the frames that were seen meanwhile."""
    url = f"http://{address}:{content.port}/"
    up = 'curl -sS -T - -H "Transfer-Encoding:" -H "$1" "$0"up'
    script = f'read -r line; curl -sS -o - "$0"blob | {up} && nstat -asz "*InTruncatedPkts"'
    length = f"Content-Length: {len(content.blob)}"
    words = ["sh", "-c", script, url, length]
    with (
        Watch(guise.far).watching() as watch,
        guise.start(*words, options=["-v", *options], stdin=PIPE) as process,
    ):
        watch.await_tap()
        assert process.stdin
        process.stdin.write(b"\n")
        process.stdin.close()
        done = without_proof(process.finish().expect(), guise.options)
    assert content.uploads == [content.sha256], "what went both ways is whole"
    # What did not fit would be sent again, in smaller frames.
    truncated = re.findall(r"^(Ip\w+)InTruncatedPkts +(\d+)", done.text, re.MULTILINE)
    assert truncated == [("Ip6", "0"), ("IpExt", "0")], f"each frame was taken whole: {done}"
    return watch.seen


@pytest.mark.parametrize(("family", "kind"), [(4, GSO_TCPV4), (6, GSO_TCPV6)], ids=["v4", "v6"])
def test_large_segments_cross_unsummed(
    guise: GuiseSide, content: Content, family: int, kind: int
) -> None:
    address = guise.peer if family == 4 else f"[{guise.peer6}]"
    for direction, seen in transfer(guise, content, address).items():
        # 8 MiB in few frames, each many segments of what fits the MTU.
        assert seen.large and seen.frames < (8 << 20) / MTU / 2, (direction, seen)
        # More than the first page and the first chunk that a frame is received into.
        assert seen.largest > PAGE + CHUNK, (direction, seen)
        assert seen.kinds.keys() <= {GSO_NONE, kind} and seen.kinds[kind], (direction, seen)
        assert all(MTU - 100 < size < MTU for size in seen.sizes), (direction, seen)
        assert seen.unsummed == seen.frames, (direction, seen)


def test_without_offload_each_frame_is_one_packet(guise: GuiseSide, content: Content) -> None:
    seen = transfer(guise, content, guise.peer, "--offload", "off")
    out = seen["out of guise"]
    assert out.frames > 1000  # a busy machine may not show us each
    assert not out.large and out.kinds.keys() == {GSO_NONE}, out
    assert not out.unsummed, out
