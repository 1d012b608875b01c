# SPDX-License-Identifier: GPL-2.0-only
"""Servers out of packages that are not installed, because they would start there and then.

make/unpack laid them in build/test/unpacked, with the libraries that the machine lacks.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from topology.side import BUILD

UNPACKED = BUILD / "test/unpacked"


def server(pattern: str) -> Path:
    """A program of theirs: "usr/sbin/mosquitto". The pattern stands for a version in its path."""
    found = sorted(UNPACKED.glob(pattern))
    if not found:
        pytest.skip(f"{UNPACKED}/{pattern} is not there: make/unpack fetches it with apt-get")
    return found[-1]


def libraries() -> dict[str, str]:
    """What a server's environment needs to find its libraries."""
    patterns = ("lib/*-linux-gnu", "usr/lib/*-linux-gnu")
    folders = (str(folder) for pattern in patterns for folder in sorted(UNPACKED.glob(pattern)))
    return {"LD_LIBRARY_PATH": ":".join(folders)}
