# SPDX-License-Identifier: GPL-2.0-only
"""A client of the service that opens uplinks, which asks for what guise never asks.

opener.py PATH say REQUEST...   each as a packet, with \\xHH for a byte; prints the answers
opener.py PATH many N           so many connections at once, each of a stack; prints the answers
opener.py PATH hold IFNAME A... a tap with these addresses, until its input ends
opener.py PATH stay IFNAME      a tap that is to stay (TUNSETPERSIST), likewise
opener.py PATH silent           a connection that says nothing; prints when it ended"""

from __future__ import annotations

import array
import fcntl
import socket
import sys

TUNSETPERSIST = 0x400454CB

taps = array.array("i")


def connect(path: str) -> socket.socket:
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(60)
    s.connect(path)
    return s


def ask(s: socket.socket, request: bytes) -> str:
    """The answer; a descriptor that comes along stays open."""
    try:
        s.send(request)
        answer, controls, _, _ = s.recvmsg(8192, socket.CMSG_SPACE(4))
    except (BrokenPipeError, ConnectionResetError):
        return "ended"
    except OSError as error:
        return str(error)
    for _, _, data in controls:
        taps.frombytes(data)
        answer += b" and a descriptor"
    return answer.decode() or "ended"


def main(path: str, what: str, *words: str) -> None:
    if what == "say":
        s = connect(path)
        for word in words:
            request = word.encode("latin-1").decode("unicode_escape").encode("latin-1")
            print(ask(s, request), flush=True)
    elif what == "many":
        all_of_them = []
        for _ in range(int(words[0])):
            try:
                all_of_them.append(connect(path))
            except OSError as error:
                print(error)
        for s in all_of_them:
            print(ask(s, b"1 ports"), flush=True)
    elif what == "hold":
        s = connect(path)
        print(ask(s, b"1 ports"))
        print(ask(s, f"2 open {words[0]}".encode()))
        print(ask(s, f"3 addresses {' '.join(words)}".encode()), flush=True)
        sys.stdin.read()
    elif what == "stay":
        s = connect(path)
        print(ask(s, b"1 ports"), ask(s, f"2 open {words[0]}".encode()))
        fcntl.ioctl(taps[0], TUNSETPERSIST, 1)
        print("stays", flush=True)
        sys.stdin.read()
    elif what == "silent":
        print("ended" if not connect(path).recv(1) else "?")


main(*sys.argv[1:])
