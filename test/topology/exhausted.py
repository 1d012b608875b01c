# SPDX-License-Identifier: GPL-2.0-only
"""A process that gets no descriptor any more, and whether it waits for one in peace."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def descriptors(pid: int) -> set[int]:
    """The numbers of those that it has."""
    return {int(name) for name in os.listdir(f"/proc/{pid}/fd")}


@contextmanager
def no_descriptor_left(pid: int, limit: int | None = None) -> Iterator[None]:
    """All numbers below its limit are taken, until the end of the context. A lower limit that is
    given is below those of its spare ones as well: to close them helps it nothing."""
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    taken = descriptors(pid)
    free = next(number for number in range(len(taken) + 1) if number not in taken)
    assert limit is None or limit < free
    free = limit or free
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (free, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


def sleeps_for_long(pid: int, looks: int = 20) -> bool:
    """Whether no thread of it wants a processor, at each of many looks."""
    for _ in range(looks):
        for task in Path(f"/proc/{pid}/task").iterdir():
            if (task / "stat").read_text("ascii").rpartition(")")[2].split()[0] == "R":
                return False
        time.sleep(0.002)
    return True


def processor_share(pid: int, seconds: float = 1.0) -> float:
    """Which part of a processor it uses, for that long from now on."""

    def used() -> float:
        words = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    before, began = used(), time.monotonic()
    time.sleep(seconds)
    return (used() - before) / (time.monotonic() - began)
