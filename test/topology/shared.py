# SPDX-License-Identifier: GPL-2.0-only
"""A stack on an interface of the host.

near ──cable── far (guise runs here)
10.77.1.2      .1
fd77:0:0:1::2  ::1
──modem── rmnet0 (IP packets without Ethernet)
10.77.5.2      .1
fd77:0:0:5::2  ::1
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

from topology.namespace import Namespace
from topology.process import eventually
from topology.side import GuiseSide, program, wait_until_says

MODEM, MODEM6 = "10.77.5", "fd77:0:0:5:"


class PacketSide(GuiseSide):
    """Its programs are on a stack that uses an interface of far."""

    def __init__(self, far: Namespace, run_dir: Path, *options: str, number: int = 1) -> None:
        super().__init__(far, run_dir, *options, number=number, paths=0)

    @property
    def address(self) -> str:
        return f"{self.subnet}.1"

    @property
    def address6(self) -> str:
        return f"{self.subnet6}::1"

    @property
    def peer(self) -> str:
        return f"{self.subnet}.2"

    @property
    def peer6(self) -> str:
        return f"{self.subnet6}::2"


@contextlib.contextmanager
def modem(far: Namespace, near: Namespace) -> Iterator[None]:
    """far has rmnet0, and near the network behind it."""
    ends = [far.name, "rmnet0", near.name, "tower"]
    carrier = near.start("/usr/bin/python3", program("modem.py"), *ends, stdin=subprocess.PIPE)
    with carrier:
        wait_until_says(carrier, "ready")
        for number, (end, name) in enumerate(((far, "rmnet0"), (near, "tower")), 1):
            end.ip("address", "add", f"{MODEM}.{number}/24", "dev", name)
            end.ip("address", "add", f"{MODEM6}:{number}/64", "dev", name, "nodad")
            end.ip("link", "set", name, "up")
        yield
    eventually(lambda: "rmnet0" not in far.interfaces(), "rmnet0 has gone with the modem")


def counters(where: Namespace) -> dict[str, int]:
    """Of /proc/net/snmp: "Tcp.InSegs"."""
    found = {}
    with where.entered():
        lines = Path("/proc/thread-self/net/snmp").read_text(encoding="ascii").splitlines()
    for names, values in zip(lines[::2], lines[1::2], strict=True):
        kind = names.split(":")[0]
        for name, value in zip(names.split()[1:], values.split()[1:], strict=True):
            found[f"{kind}.{name}"] = int(value)
    return found
