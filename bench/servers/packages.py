# SPDX-License-Identifier: GPL-2.0-only
"""Where the programs are: make/unpack laid in build/ those whose packages would start a server
when they are installed (PACKAGES_UNPACKED in versions.env); the others are installed
(PACKAGES_BENCH)."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("GUISE_BUILD", ROOT / "build")).resolve()
UNPACKED = BUILD / "test/unpacked"
FOLDERS = ("usr/lib/postgresql/*/bin", "usr/sbin", "usr/bin")


class Failed(Exception):
    """A server could not be measured; the text says why."""


def find(name: str) -> str | None:
    """The path of a program: the one that was unpacked, else the one that is installed."""
    for root in (UNPACKED, Path("/")):
        for folder in FOLDERS:
            if found := sorted(root.glob(f"{folder}/{name}")):
                return str(found[-1])
    return shutil.which(name)


def program(name: str) -> str:
    found = find(name)
    if not found:
        raise Failed(f"{name} is not there any more")
    return found


def libraries() -> dict[str, str]:
    """What the environment of an unpacked program needs."""
    patterns = ("lib/*-linux-gnu", "usr/lib/*-linux-gnu")
    folders = [str(folder) for pattern in patterns for folder in sorted(UNPACKED.glob(pattern))]
    return {"LD_LIBRARY_PATH": ":".join(folders)} if folders else {}
