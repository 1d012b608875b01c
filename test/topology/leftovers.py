# SPDX-License-Identifier: GPL-2.0-only
"""What guise could leave behind on the host, compared with what there was before."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from topology.namespace import Namespace
from topology.process import DEADLINE, eventually


class Leftovers:
    """Looks at a namespace, at guise's files, and at its processes in that namespace."""

    def __init__(self, far: Namespace, run_dir: Path) -> None:
        self.far = far
        self.run_dir = run_dir
        self.look()

    def look(self) -> None:
        """What exists now is not left over."""
        self.interfaces = self.far.interfaces()
        self.tables = self.far.tables()
        self.sysctls = self.far.sysctls()

    def now(self) -> list[str]:
        """In words; empty when there is nothing."""
        found = [f"interface {name}" for name in self.far.interfaces() - self.interfaces]
        found += [f"nftables table {name}" for name in self.far.tables() - self.tables]
        for key, value in self.far.sysctls().items():
            if key in self.sysctls and self.sysctls[key] != value:
                found.append(f"{key}: {self.sysctls[key].strip()!r} became {value.strip()!r}")
        for program in ("guise-holder", "passt", "passt.avx2"):
            found += [f"process {pid} ({program})" for pid in self.far.processes(program)]
        with contextlib.suppress(FileNotFoundError):
            found.append(f"{self.run_dir}, with {os.listdir(self.run_dir)}")
        return found

    def wait_until_none(self, seconds: float = DEADLINE) -> None:
        """The holder may take a moment after the program has ended."""
        last: list[str] = []

        def none() -> bool:
            last[:] = self.now()
            return not last

        try:
            eventually(none, "nothing is left behind", seconds, pause=0.1)
        except AssertionError:
            raise AssertionError("left behind: " + "; ".join(last)) from None
