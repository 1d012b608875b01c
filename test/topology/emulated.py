# SPDX-License-Identifier: GPL-2.0-only
"""Programs for arm64 that run on this machine's kernel, their instructions done by qemu-user.

    holder ── ticket ── python3, curl, … (Debian's for arm64, each in a qemu-aarch64 of its own)

No execve leads from one to the next, as it would need the kernel to know qemu: a test starts the
holder, and each program that joins its stack, by itself.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from topology.process import DEADLINE, Finished, Process
from topology.side import BUILD

PROJECT = Path(__file__).resolve().parents[2]
ARM64 = BUILD / "arm64"
SLOW = 3 * DEADLINE  # of what is emulated


def packages(which: str) -> list[str]:
    """One of the lists of versions.env."""
    command = ["sh", "-c", f'. ./versions.env && echo "${which}"']
    return subprocess.run(
        command, cwd=PROJECT, check=True, capture_output=True, text=True
    ).stdout.split()


def debian(*names: str, suite: str | None = None) -> Path:
    """A folder with these packages for arm64, unpacked."""
    made = subprocess.run(
        [PROJECT / "make/arm64-root", *names],
        env=os.environ | ({"ARM64_SUITE": suite} if suite else {}),
        capture_output=True,
        text=True,
    )
    assert made.returncode == 0, made.stderr
    return Path(made.stdout.strip())


@dataclass
class Emulator:
    """How qemu runs a program: flags of its own may give it other pages and addresses."""

    root: Path
    flags: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        assert shutil.which("qemu-aarch64"), "make check needs Debian's package qemu-user"

    def words(self, *program: str | Path, **env: str) -> list[str]:
        setting = [word for name, value in env.items() for word in ("-E", f"{name}={value}")]
        return ["qemu-aarch64", "-L", str(self.root), *self.flags, *setting, *map(str, program)]


class EmulatedStack:
    """A stack of a holder, with lo alone. Programs that run on it have the ticket."""

    def __init__(self, emulator: Emulator, *plan: str) -> None:
        self._emulator = emulator
        self._plan = "\n".join(["name arm64", "memory 64M", *plan, "boot", ""])

    def __enter__(self) -> Self:
        plan = os.memfd_create("plan")
        os.write(plan, self._plan.encode())
        os.lseek(plan, 0, os.SEEK_SET)
        self._ticket, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        hear, say = socket.socketpair()
        hear.settimeout(SLOW)
        self._status = hear.makefile()
        fds = {"--plan": plan, "--ticket": its.fileno(), "--status": say.fileno()}
        self._holder = Process(
            self._emulator.words(
                ARM64 / "guise-holder", *(word for k, v in fds.items() for word in (k, str(v)))
            ),
            inherit=list(fds.values()),
        )
        os.close(plan)
        its.close()
        say.close()
        hear.close()
        try:
            line = self._status.readline()
            assert line == "ready\n", f"{line!r}, {self._holder.said()}"
        except BaseException:
            self._holder.stop()
            raise
        return self

    def start(self, *program: str | Path) -> Process:
        words = self._emulator.words(
            *program,
            LD_PRELOAD=str(ARM64 / "libguise-preload.so"),
            GUISE_STACK=str(self._ticket.fileno()),
        )
        return Process(words, inherit=[self._ticket.fileno()])

    def run(self, *program: str | Path) -> Finished:
        with self.start(*program) as process:
            return process.finish(SLOW)

    def end(self) -> dict[str, Any]:
        """No program is left: the holder ends by itself. What it counted."""
        self._ticket.close()
        words = self._status.readline().split(" ", 1)
        assert words[0] == "summary", f"{words}, {self._holder.said()}"
        self._holder.finish(SLOW).expect()
        counted: dict[str, Any] = json.loads(words[1])
        return counted

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._ticket.close()
        self._status.close()
        said = self._holder.stop()
        if error is not None:
            error.add_note(f"the holder: {said}")
