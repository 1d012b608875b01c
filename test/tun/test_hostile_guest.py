# SPDX-License-Identifier: GPL-2.0-only
"""A guest that sends what no program sends by its sockets. Whatever it is, the relays' thread comes
to each of its tasks again, and the stack's end to its end. Guests here are root, and so is the
holder."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from pathlib import Path

import pytest
from topology.holders import carrier_of, wardens
from topology.namespace import Namespace
from topology.process import DEADLINE, Process, eventually
from topology.side import PYTHON, GuiseSide, wait_until_says

TESTS = Path(__file__).resolve().parents[1]

# Sends floods of one kind by a raw socket, until it gets a word. At the next one it connects.
FLOOD = """
import select, socket, sys
sys.path.insert(0, sys.argv[1])
from topology import forged

what, address, port = sys.argv[2], sys.argv[3], int(sys.argv[4])
four = ":" not in address
family = socket.AF_INET if four else socket.AF_INET6
with socket.socket(family, socket.SOCK_DGRAM) as s:
    s.connect((address, 9))
    own = s.getsockname()[0]
stranger = "198.51.100.1" if four else "2001:db8::77"
raw = socket.socket(family, socket.SOCK_RAW, socket.IPPROTO_RAW)

def flood(number):
    for i in range(4200):
        ports = (1024 + (number * 4200 + i) % 60000, port)
        if what == "short":
            made = forged.cut(forged.tcp(own, address, ports), 4)
        elif what == "half-open":
            made = forged.tcp(stranger, address, ports)
        else:
            made = forged.udp(own, address, ports, b"flood")
        try:
            raw.sendto(made, (address, 0))
        except OSError: # no room in the queue
            pass

number = 0
while not select.select([sys.stdin], [], [], 0)[0]:
    flood(number)
    number += 1
    print("flooded", flush=True)
sys.stdin.readline()
print("resting", flush=True)
sys.stdin.readline()
with socket.create_connection((address, int(sys.argv[5])), 60) as c:
    c.sendall(b"own")
    c.recv(1)
print("answered", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def tun(far: Namespace, guise: GuiseSide) -> GuiseSide:
    return GuiseSide(far, guise.run_dir, "--mode", "tun")


def go_on(process: Process) -> None:
    assert process.stdin
    process.stdin.write(b"go on\n")
    process.stdin.flush()


def worked(pid: int) -> int:
    """The clock ticks for which a process has had a processor."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def at_rest(pid: int) -> bool:
    """It does next to nothing for half a second."""
    before = worked(pid)
    time.sleep(0.5)
    return worked(pid) - before <= os.sysconf("SC_CLK_TCK") // 20


@pytest.mark.parametrize("address", ["169.254.77.1", "fd67:7569:7365::1"])
@pytest.mark.parametrize("what", ["short", "half-open", "datagrams"])
def test_a_flood_of_requests_starves_nobody(
    far: Namespace, tun: GuiseSide, what: str, address: str
) -> None:
    """More requests than the queue has room for: whose header is cut short, so that tproxy does not
    take them; of somebody who never answers; datagrams, each the first of a conversation. Meanwhile
    the holder answers; afterwards it rests, and a connection is carried as before; and the stack
    ends in the middle of it."""
    local = "::1" if ":" in address else "127.0.0.1"
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with far.socket(family) as flooded, far.socket(family) as server:
        for each in flooded, server:
            each.bind((local, 0))
            each.listen(4096)
        words = [str(TESTS), what, address]
        words += [str(each.getsockname()[1]) for each in (flooded, server)]
        with tun.start(PYTHON, "-c", FLOOD, *words, stdin=subprocess.PIPE) as guest:
            wait_until_says(guest, "flooded")
            [stack] = json.loads(tun.call("ls", "--json").expect().text)
            assert stack["sockets"] >= 0, stack
            [warden] = wardens(far)
            carrier = carrier_of(warden)
            go_on(guest)
            wait_until_says(guest, "resting")
            eventually(lambda: at_rest(carrier) and at_rest(warden), "the holder is at rest")
            go_on(guest)
            connection, _ = server.accept()
            with connection:
                connection.settimeout(DEADLINE)
                assert connection.recv(3) == b"own"
            wait_until_says(guest, "answered")
        with tun.start(PYTHON, "-c", FLOOD, *words, stdin=subprocess.PIPE) as guest:
            wait_until_says(guest, "flooded")
            guest.stop()
            eventually(lambda: not far.processes("guise-holder"), "the stack has ended")
