# SPDX-License-Identifier: GPL-2.0-only
"""Runs a twin case on the host and on guise, and compares what it printed, line by line.

The host's side runs in a network namespace of its own with lo up, guise's on a stack without a
link that has the settings of that namespace. A case prints the same number of lines wherever it
runs. Lines may differ only as an entry of differences.toml says.
"""

from __future__ import annotations

import functools
import os
import re
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path

from topology.side import BUILD, GUISE

PROGRAMS = BUILD / "test" / "call"
SOURCES = Path(__file__).resolve().parents[1] / "call"
SECONDS = 100  # a case ends itself after 60

# What an administrator may have set on the host, and programs see in their sockets.
SETTINGS = (
    "net.core.optmem_max",
    "net.core.rmem_default",
    "net.core.rmem_max",
    "net.core.somaxconn",
    "net.core.wmem_default",
    "net.core.wmem_max",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
)


def cases(*programs: str) -> list[str]:
    """PROGRAM.CASE of some programs, or of all, from their source."""
    found = []
    for source in sorted(SOURCES.glob("*.c")):
        if not programs or source.stem in programs:
            names = re.findall(r"^CASE\((\w+)\)", source.read_text("utf-8"), re.MULTILINE)
            found += [f"{source.stem}.{name}" for name in names]
    return found


def settings() -> list[str]:
    """Of this host, as flags of guise run."""
    flags = []
    for key in SETTINGS:
        file = Path("/proc/sys", *key.split("."))
        if file.exists():
            flags += ["--sysctl", f"{key}={' '.join(file.read_text('ascii').split())}"]
    return flags


def host_command(case: str) -> list[str]:
    """What runs a case on the host."""
    program, name = case.split(".")
    unshare = ["unshare", "--net"] if not os.geteuid() else ["unshare", "--net", "--map-root-user"]
    inside = ["sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    return [*unshare, *inside, str(PROGRAMS / program), name]


def _run(command: list[str]) -> list[str]:
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # where the stack's kernel may speak
        text=True,
        errors="replace",
        timeout=SECONDS,
    )
    return [*done.stdout.splitlines(), f"ended with {done.returncode}"]


@functools.cache
def on_host(case: str) -> list[str]:
    return _run(host_command(case))


@functools.cache
def on_guise(case: str) -> list[str]:
    program, name = case.split(".")
    run = [str(GUISE), "run", "--link", "none", *settings(), "--"]
    return _run([*run, str(PROGRAMS / program), name])


@dataclass(frozen=True)
class Lines:
    """Lines that may differ: what stands before the result, and the result on either side."""

    call: str
    host: str
    guise: str

    def allows(self, host: str, guise: str) -> bool:
        def fits(line: str, result: str) -> bool:
            return bool(re.fullmatch(rf"(?:{self.call}) = (?:{result})", line))

        return fits(host, self.host) and fits(guise, self.guise)


@dataclass(frozen=True)
class Difference:
    what: str
    reason: str
    cases: tuple[str, ...]
    lines: tuple[Lines, ...]
    newer_host: bool  # only where the host's kernel is newer than the stack's


@functools.cache
def differences() -> tuple[Difference, ...]:
    with open(SOURCES / "differences.toml", "rb") as file:
        entries = tomllib.load(file)["difference"]
    return tuple(
        Difference(
            entry["what"],
            entry["reason"],
            tuple(entry["cases"]),
            tuple(
                Lines(line["call"], line.get("host", ".*"), line.get("guise", ".*"))
                for line in entry["lines"]
            ),
            entry.get("newer_host", False),
        )
        for entry in entries
    )


def differing(case: str) -> list[tuple[str, str]]:
    """The lines that differ. A transcript that is longer than the other has none to compare."""
    host, guise = on_host(case), on_guise(case)
    assert len(host) == len(guise), (
        f"{len(host)} lines on the host and {len(guise)} on guise, which end with\n"
        + "\n".join(host[-3:])
        + "\nand\n"
        + "\n".join(guise[-3:])
    )
    return [pair for pair in zip(host, guise, strict=True) if pair[0] != pair[1]]


def unexplained(case: str) -> list[tuple[str, str]]:
    """The lines that differ and may not."""
    allowed = [
        lines
        for difference in differences()
        if case.split(".")[1] in difference.cases
        for lines in difference.lines
    ]
    return [pair for pair in differing(case) if not any(lines.allows(*pair) for lines in allowed)]
