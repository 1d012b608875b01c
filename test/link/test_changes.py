# SPDX-License-Identifier: GPL-2.0-only
"""Links, addresses, routes, rules and MPTCP endpoints that come and go while programs are on the
stack: `change` of the control socket."""

from __future__ import annotations

import array
import fcntl
import json
import os
import random
import socket
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from topology.holders import carrier_of
from topology.leftovers import Leftovers
from topology.namespace import Namespace
from topology.process import DEADLINE, Process, eventually, run
from topology.side import GUISE, PYTHON, wait_until_says

TUNSETIFF = 0x400454CA
TAP = 0x0002 | 0x1000 | 0x4000  # without packet information, with a virtio-net header
FLAPS = 100
DRAIN = 50  # seconds; holder/drain.h has a minute

# Answers each line with its address, as seen from here; a thread for each client.
SERVE = """
import socket, sys, threading
server = socket.create_server(("0.0.0.0", 4000))
def serve(client):
    with client, client.makefile("rw") as lines:
        for line in lines:
            lines.write(client.getsockname()[0] + " " + line)
            lines.flush()
def accept():
    while True:
        threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
threading.Thread(target=accept, daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
"""


class Stack:
    """A stack without links, and a server on it."""

    def __init__(self, run_dir: Path, *options: str) -> None:
        self.env = {"GUISE_RUNDIR": str(run_dir)}
        self.run_dir = run_dir
        self.process = Process(
            [GUISE, "run", "--link", "none", *options, "--", PYTHON, "-c", SERVE],
            stdin=-1,
            env=self.env,
        )
        wait_until_says(self.process, "ready")
        self.control = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.control.settimeout(DEADLINE)
        self.control.connect(str(run_dir / f"{self.process.pid}.sock"))

    def end(self) -> None:
        self.control.close()
        self.process.stop()
        eventually(lambda: not self.run_dir.exists(), "the runtime folder is gone")

    def ask(self, line: str, *files: int) -> str:
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))] if files else []
        self.control.sendmsg([f"change {line}".encode()], rights)
        return self.control.recv(4096).decode()

    def change(self, line: str, *files: int) -> None:
        assert self.ask(line, *files) == "ok", line

    def exec(self, *command: str) -> str:
        stack = str(self.process.pid)
        return run([GUISE, "exec", stack, "--", *command], env=self.env).expect().text

    def ip(self, *words: str) -> list[dict[str, Any]]:
        found = json.loads(self.exec("ip", "-j", *words) or "[]")
        assert isinstance(found, list)
        return found

    def carrier(self) -> int:
        [found] = json.loads(run([GUISE, "ls", "--json"], env=self.env).expect().text)
        return carrier_of(found["holder"])

    def taps(self, pid: int) -> int:
        """How many descriptors of taps that process has."""
        folder = Path(f"/proc/{pid}/fd")
        names = [os.readlink(fd) for fd in folder.iterdir() if fd.is_symlink()]
        return names.count("/dev/net/tun")


@pytest.fixture
def stack(run_dir: Path, leftovers: Leftovers) -> Iterator[Stack]:
    stack = Stack(run_dir)
    try:
        yield stack
    finally:
        stack.end()


def tap(far: Namespace, name: str) -> int:
    """The descriptor of a tap in far, which has it as an interface, up."""
    with far.entered():
        fd = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
        fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", name.encode(), TAP))
    far.ip("link", "set", name, "up")
    return fd


def add(stack: Stack, far: Namespace, number: int, name: str = "") -> str:
    """A link, with an address on each side; the stack's."""
    name = name or f"path{number}"
    fd = tap(far, name)
    far.ip("address", "add", f"10.79.{number}.1/24", "dev", name)
    stack.change(f"link {name} tap fd=0", fd)
    os.close(fd)
    stack.change(f"address {name} 10.79.{number}.2/24")
    stack.change(f"up {name}")
    return f"10.79.{number}.2"


class Client:
    def __init__(self, far: Namespace, address: str) -> None:
        self.socket = far.socket()
        self.socket.settimeout(DEADLINE)
        self.socket.connect((address, 4000))
        self.lines = self.socket.makefile("rw")
        self.address = address

    def talk(self, word: str) -> None:
        self.lines.write(word + "\n")
        self.lines.flush()
        assert self.lines.readline() == f"{self.address} {word}\n"

    def close(self) -> None:
        self.lines.close()
        self.socket.close()


@pytest.fixture
def client(far: Namespace) -> Iterator[Callable[[str], Client]]:
    clients: list[Client] = []

    def make(address: str) -> Client:
        clients.append(Client(far, address))
        return clients[-1]

    yield make
    for one in clients:
        one.close()


def test_a_running_program_serves_a_link_that_comes(
    stack: Stack, far: Namespace, client: Callable[[str], Client]
) -> None:
    assert stack.taps(stack.process.pid) == 0
    one = client(add(stack, far, 1))
    for turn in range(8):
        one.talk(f"turn {turn}")
    two = client(add(stack, far, 2))
    for turn in range(8):
        two.talk(f"turn {turn}")
        one.talk(f"turn {turn}")

    # The program itself watches both by now, and not the pump alone.
    def has_both() -> bool:
        one.talk("more")
        return stack.taps(stack.process.pid) == 2

    eventually(has_both, "the program has the descriptors of both taps")


def test_a_link_that_goes_takes_nothing_else_with_it(
    stack: Stack, far: Namespace, client: Callable[[str], Client]
) -> None:
    one, two = client(add(stack, far, 1)), client(add(stack, far, 2))
    one.talk("before")
    two.talk("before")
    stack.change("no link path1")
    two.talk("after")
    assert [link["ifname"] for link in stack.ip("link")] == ["lo", "path2"]

    def has_one() -> bool:
        two.talk("more")
        return stack.taps(stack.process.pid) == 1

    eventually(has_one, "the program has closed the descriptor of the tap that is gone")
    # Then the host's device is gone as well, as nobody has it open.
    eventually(lambda: "path1" not in far.ip("link"), "the tap is gone")


def test_an_address_that_comes_back_carries_its_connections_on(
    stack: Stack, far: Namespace, client: Callable[[str], Client]
) -> None:
    one = client(add(stack, far, 1))
    one.talk("before")
    [before] = stack.ip("link", "show", "path1")
    stack.change("no link path1")
    eventually(lambda: "path1" not in far.ip("link"), "the tap is gone")
    add(stack, far, 2)
    add(stack, far, 1)
    one.talk("after")
    # By this number sockets that are bound to it know it.
    [after] = stack.ip("link", "show", "path1")
    assert after["ifindex"] == before["ifindex"]


def test_an_index_that_is_taken_meanwhile_is_left_to_its_interface(
    stack: Stack, far: Namespace, client: Callable[[str], Client]
) -> None:
    add(stack, far, 1)
    [before] = stack.ip("link", "show", "path1")
    stack.change("no link path1")
    eventually(lambda: "path1" not in far.ip("link"), "the tap is gone")
    stack.exec(
        "ip", "link", "add", "name", "other", "index", str(before["ifindex"]), "type", "dummy"
    )
    one = client(add(stack, far, 1))
    one.talk("over another one")
    [after] = stack.ip("link", "show", "path1")
    assert after["ifindex"] != before["ifindex"]


def test_a_hundred_flaps_leave_nothing(
    stack: Stack, far: Namespace, client: Callable[[str], Client]
) -> None:
    stay = client(add(stack, far, 2))
    stay.talk("before")
    carrier = stack.carrier()

    def flap() -> None:
        add(stack, far, 1)
        stack.change("route default via 10.79.1.1 dev path1 table 101")
        stack.change("rule from 10.79.1.2 table 101")
        stack.change("mptcp endpoint 10.79.1.2 dev path1 subflow")
        stack.change("no mptcp endpoint 10.79.1.2 dev path1")
        stack.change("no rule from 10.79.1.2 table 101")
        stack.change("no link path1")
        stay.talk("meanwhile")
        eventually(lambda: "path1" not in far.ip("link"), "the tap is gone")

    def there_is() -> tuple[int, int, str, str, str]:
        return (
            len(os.listdir(f"/proc/{carrier}/fd")),
            len(os.listdir(f"/proc/{stack.process.pid}/fd")),
            stack.exec("ip", "rule"),
            stack.exec("ip", "-4", "route", "show", "table", "all"),
            stack.exec("ip", "mptcp", "endpoint"),
        )

    flap()
    before = there_is()
    for _ in range(FLAPS):
        flap()
    assert there_is() == before


def test_programs_and_routes_hear_of_a_carrier_that_is_lost(stack: Stack, far: Namespace) -> None:
    add(stack, far, 1)
    add(stack, far, 2)
    stack.change("sysctl net.ipv4.conf.all.ignore_routes_with_linkdown 1")
    stack.change("route default via 10.79.1.1 dev path1 metric 10")
    stack.change("route default via 10.79.2.1 dev path2 metric 20")
    monitor = Process(
        [GUISE, "exec", str(stack.process.pid), "--", "ip", "monitor", "link"], env=stack.env
    )
    try:
        eventually(
            lambda: (
                "NETLINK" in stack.exec("cat", "/proc/net/protocols")
                and len(stack.exec("cat", "/proc/net/netlink").splitlines()) > 2
            ),
            "ip monitor listens",
        )

        def way() -> str:
            [found] = stack.ip("route", "get", "192.0.2.1")
            return str(found["dev"])

        assert way() == "path1"
        stack.change("carrier path1 off")
        assert way() == "path2"
        stack.change("carrier path1 on")
        assert way() == "path1"
        wait_until_says(monitor, "NO-CARRIER")
    finally:
        monitor.stop()


def test_reset_takes_back_all_that_changes_made(stack: Stack, far: Namespace) -> None:
    before = [stack.exec("ip", *words) for words in (["rule"], ["mptcp", "endpoint"], ["link"])]
    for number in 1, 2, 3:
        address = add(stack, far, number)
        stack.change(f"route default via 10.79.{number}.1 dev path{number} table {100 + number}")
        stack.change(f"rule from {address} table {100 + number}")
        stack.change(f"mptcp endpoint {address} dev path{number} subflow")
    stack.change("no link path2")
    stack.change("reset")
    after = [stack.exec("ip", *words) for words in (["rule"], ["mptcp", "endpoint"], ["link"])]
    assert after == before
    stack.change("reset")


def test_an_endpoint_that_is_there_becomes_a_backup(stack: Stack, far: Namespace) -> None:
    address = add(stack, far, 1)
    stack.change(f"mptcp endpoint {address} dev path1 subflow")
    assert "backup" not in stack.exec("ip", "mptcp", "endpoint")
    stack.change(f"mptcp endpoint {address} dev path1 subflow backup")
    assert "backup" in stack.exec("ip", "mptcp", "endpoint")
    stack.change(f"no mptcp endpoint {address} dev path1")
    assert stack.exec("ip", "mptcp", "endpoint") == ""


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("", "error"),
        ("no", "expected a line of a plan"),
        ("no no link a", "unknown directive"),
        ("link a tap", "fd=N"),
        ("link a tap fd=0", "fd=N"),
        ("link a tap fd=-1", "fd=N"),
        ("link a passt fd=0", "fd=N"),
        ("no link a", "no link of this name"),
        ("carrier lo off", "no link of this name"),
        ("carrier lo", "expected"),
        ("address none 10.0.0.1/24", 'no interface "none"'),
        ("no address lo 10.0.0.1/8", "10.0.0.1/8"),
        ("no address lo", "expected"),
        ("route default", "expected"),
        ("route 10.0.0.0/8 via", "expected"),
        ("no route 10.0.0.0/8 dev lo", "10.0.0.0/8"),
        ("no rule from 10.0.0.1 table 100", "10.0.0.1"),
        ("mptcp endpoint 10.0.0.1 dev none subflow", 'no interface "none"'),
        ("no mptcp endpoint 10.0.0.1 dev lo", "none of this address"),
        ("no mptcp limits 8 8", "mptcp endpoint"),
        ("mtu lo many", "many"),
        ("keep", "cannot change"),
        ("undo /bin/true /tmp", "cannot change"),
        ("no carrier lo on", "cannot be taken back"),
        ("sysctl net.no.such 1", "net.no.such"),
        ("x" * 900, "unknown directive"),
        ("x" * 4000, "less than"),
        ("y " * 400, "words"),
    ],
)
def test_bad_lines_are_refused_with_a_sentence(stack: Stack, line: str, says: str) -> None:
    answer = stack.ask(line)
    assert answer.startswith("error ") and says in answer
    assert [link["ifname"] for link in stack.ip("link")] == ["lo"]


# The first 13 change something.
WORDS = """
no link address route rule mptcp endpoint limits sysctl qdisc carrier mtu up reset keep path1 path2
lo eth9 tap pair fd=0 fd=1 fd=9 mac=02:00:00:00:00:09 mtu=1400 offload=off 10.79.1.2/24 10.79.1.2
10.79.9.9/33 fd00::2/64 fe80::1 default via dev table metric src onlink from to iif 100 0 -1
4294967296 on off subflow backup signal fullmesh netem delay 5ms none 8 1500 65536
net.ipv4.ip_forward 1
""".split()  # noqa: SIM905
LINES = 400


def test_any_line_is_answered(
    stack: Stack, far: Namespace, client: Callable[[str], Client]
) -> None:
    """The same lines each time; the first word is mostly one that changes something."""
    chance = random.Random(12)
    stay = client(add(stack, far, 2, "stay"))
    carrier = stack.carrier()
    stack.ask("reset")
    add(stack, far, 2, "stay")
    files = len(os.listdir(f"/proc/{carrier}/fd"))
    with open("/dev/null") as null:
        for _ in range(LINES):
            words = [chance.choice(WORDS[:13]), *chance.choices(WORDS, k=chance.randrange(8))]
            line = " ".join(words)
            if line == "reset" or "stay" in line:
                continue
            answer = stack.ask(line, *[null.fileno()] * chance.randrange(4))
            assert answer == "ok" or answer.startswith("error "), line
    stay.talk("still there")
    assert len(os.listdir(f"/proc/{carrier}/fd")) <= files + 2


def test_the_end_does_not_wait_for_a_path_that_is_gone(
    run_dir: Path, leftovers: Leftovers, far: Namespace, client: Callable[[str], Client]
) -> None:
    stack = Stack(run_dir)
    try:
        one, two = client(add(stack, far, 1)), client(add(stack, far, 2))
        one.talk("before")
        two.talk("before")
        stack.change("no link path1")
        stack.change("carrier path2 off")
        before = time.monotonic()
    finally:
        stack.end()
    # A minute is what it waits for connections that a peer may still acknowledge.
    assert time.monotonic() - before < DRAIN


def test_descriptors_that_are_no_taps_are_refused_and_closed(stack: Stack) -> None:
    carrier = stack.carrier()
    before = len(os.listdir(f"/proc/{carrier}/fd"))
    stack.ask("reset")  # the thread that changes is there
    with open("/dev/null") as null:
        assert "not a tap" in stack.ask("link a tap fd=0", null.fileno())
        assert "fd=N" in stack.ask("link a tap fd=1", null.fileno())
        assert "cannot come" in stack.ask("link a stream fd=0", null.fileno())
        assert "descriptors at most" in stack.ask("link a tap fd=0", *[null.fileno()] * 4)
    eventually(
        lambda: len(os.listdir(f"/proc/{carrier}/fd")) <= before + 2, "all of them are closed"
    )
