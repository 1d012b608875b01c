# SPDX-License-Identifier: GPL-2.0-only
"""What a sender is told of when its data went where: timestamps.py udp|tcp ADDRESS PORT KIND...

Prints the kinds of timestamps that came, those that are waited for and any other, in their order of
time, and whether each is later than the one before.
"""

import select
import socket
import struct
import sys
import time

SO_TIMESTAMPING, IP_RECVERR = 37, 11
TX_SOFTWARE, SOFTWARE, OPT_ID, TX_SCHED, TX_ACK, OPT_TSONLY = 2, 16, 128, 256, 512, 2048
KINDS = {0: "sent", 1: "scheduled", 2: "acknowledged"}
SECONDS = 30


def take(sender: socket.socket) -> tuple[str, float]:
    """One that lies ready."""
    _, messages, _, _ = sender.recvmsg(2048, 512, socket.MSG_ERRQUEUE)
    when, kind = 0.0, "none"
    for _, what, data in messages:
        if what == SO_TIMESTAMPING:
            seconds, nanoseconds = struct.unpack_from("qq", data)
            when = seconds + nanoseconds / 1e9
        elif what == IP_RECVERR:
            kind = KINDS[struct.unpack_from("=IBBBBI", data)[5]]
    return kind, when


def main() -> None:
    how, address, port, *wanted = sys.argv[1:]
    kind = socket.SOCK_DGRAM if how == "udp" else socket.SOCK_STREAM
    with socket.socket(socket.AF_INET, kind) as sender:
        flags = TX_SOFTWARE | SOFTWARE | OPT_ID | TX_SCHED | OPT_TSONLY
        sender.connect((address, int(port)))
        sender.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPING, flags | (TX_ACK * (how == "tcp")))
        sender.send(b"x" * 1000)
        events = select.poll()
        events.register(sender, 0)
        seen: dict[str, float] = {}
        end = time.monotonic() + SECONDS
        while not set(wanted) <= seen.keys() and time.monotonic() < end:
            if events.poll(100):
                name, when = take(sender)
                seen[name] = when
    order = sorted(seen, key=lambda name: seen[name])
    now = time.time()
    print(*order, all(now - 60 < when <= now for when in seen.values()))


main()
