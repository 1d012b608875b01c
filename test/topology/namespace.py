# SPDX-License-Identifier: GPL-2.0-only
"""Network namespaces that a test makes, and what there is in them to be left behind."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import itertools
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Self, Unpack

from topology.process import DEADLINE, Finished, How, Process, run

CLONE_NEWNET = 0x40000000

_numbers = itertools.count(1)
_libc = ctypes.CDLL(None, use_errno=True)

Word = str | os.PathLike[str]


def _setns(file: int) -> None:
    if _libc.setns(file, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "cannot enter the network namespace")


class Namespace:
    """A network namespace with lo up. Its name has the test run's pid: copies do not collide."""

    def __init__(self, role: str) -> None:
        self.name = f"test-{os.getpid()}-{next(_numbers)}-{role}"
        atexit.register(self.delete)  # whatever interrupts the test
        run(["ip", "netns", "add", self.name]).expect()
        self.ip("link", "set", "lo", "up")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.delete()

    def delete(self) -> None:
        atexit.unregister(self.delete)
        run(["ip", "netns", "delete", self.name]).expect()

    @property
    def inode(self) -> int:
        return os.stat(f"/run/netns/{self.name}").st_ino

    def command(self, *command: Word) -> list[str]:
        return ["ip", "netns", "exec", self.name, *(os.fspath(word) for word in command)]

    def start(self, *command: Word, **how: Unpack[How]) -> Process:
        return Process(self.command(*command), **how)

    def run(self, *command: Word, seconds: float = DEADLINE, **how: Unpack[How]) -> Finished:
        return run(self.command(*command), seconds=seconds, **how)

    def ip(self, *words: str) -> str:
        return run(["ip", "-netns", self.name, *words]).expect().text

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """This thread's new sockets belong to the namespace."""
        with (
            open("/proc/thread-self/ns/net", "rb") as before,
            open(f"/run/netns/{self.name}", "rb") as inside,
        ):
            _setns(inside.fileno())
            try:
                yield
            finally:
                _setns(before.fileno())

    def socket(self, family: int = socket.AF_INET, kind: int = socket.SOCK_STREAM) -> socket.socket:
        with self.entered():
            made = socket.socket(family, kind)
        made.settimeout(DEADLINE)
        return made

    def reaches(self, address: str, port: int) -> bool:
        """Whether a program listens on a TCP port, as seen from here."""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with self.socket(family) as probe:
            probe.settimeout(2)
            return probe.connect_ex((address, port)) == 0

    def interfaces(self) -> set[str]:
        return {link["ifname"] for link in json.loads(self.ip("-json", "link"))}

    def tables(self) -> set[str]:
        """Of nftables: "ip guise_x". Not as JSON: Debian 12's nft crashes if one is owned."""
        listing = self.run("nft", "list", "tables").expect().text
        return {line.removeprefix("table ") for line in listing.splitlines()}

    @contextlib.contextmanager
    def deaf(self, interface: str) -> Iterator[None]:
        """Nothing arrives by that interface."""
        chain = f'{{ type filter hook input priority 0; iifname "{interface}" drop; }}'
        self.run("nft", f"add table inet deaf; add chain inet deaf in {chain}").expect()
        try:
            yield
        finally:
            self.run("nft", "delete table inet deaf").expect()

    def sysctls(self) -> dict[str, str]:
        """Of the network, those that the kernel does not write itself. /proc/sys/net is the
        reading thread's own."""
        found = {}
        with self.entered():
            for folder, _, names in os.walk("/proc/sys/net"):
                for name in names:
                    with contextlib.suppress(OSError, UnicodeDecodeError):
                        path = os.path.join(folder, name)
                        found[path] = Path(path).read_text(encoding="ascii")
        # The kernel writes these itself.
        for name in ("netfilter/nf_conntrack_count", "ipv4/tcp_fastopen_key"):
            found.pop(f"/proc/sys/net/{name}", None)
        return found

    def processes(self, program: str) -> list[int]:
        """Those that run this program in the namespace."""
        found = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError, ValueError):
                if (
                    os.stat(entry / "ns/net").st_ino == self.inode
                    and os.path.basename(os.readlink(entry / "exe")) == program
                ):
                    found.append(int(entry.name))
        return found


def join(left: Namespace, right: Namespace, subnet: str, subnet6: str) -> None:
    """A cable: left gets .1 and ::1 of the subnets, right .2 and ::2."""
    left.ip("link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", right.name)
    for number, end in enumerate((left, right), 1):
        end.ip("address", "add", f"{subnet}.{number}/24", "dev", "cable")
        end.ip("address", "add", f"{subnet6}::{number}/64", "dev", "cable", "nodad")
        end.ip("link", "set", "cable", "up")
