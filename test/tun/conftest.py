# SPDX-License-Identifier: GPL-2.0-only
"""Programs that cannot be preloaded."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent


@pytest.fixture
def talk(tmp_path: Path) -> Path:
    """A static program in C."""
    program = tmp_path / "talk"
    flags = ["-static", "-O1", "-D_GNU_SOURCE"]
    subprocess.run(["cc", *flags, "-o", str(program), str(HERE / "talk.c")], check=True)
    return program


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A static program in Go."""
    program = tmp_path_factory.mktemp("go") / "web"
    build = [str(ROOT / "make/go"), "build", "-o", str(program), "./test/tun/web"]
    subprocess.run(build, check=True, cwd=ROOT, env=os.environ | {"CGO_ENABLED": "0"})
    yield program
