# SPDX-License-Identifier: GPL-2.0-only
"""The engine of connections in relay/ does not depend on its user: its files include nothing of the
holder, and its objects call nothing of it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from topology.side import BUILD

ROOT = Path(__file__).resolve().parents[2]
OWN = {"relay"}
BELOW = {folder.name for folder in (ROOT / "lib").iterdir() if folder.is_dir()} | {"guise"}


def test_what_it_includes_is_its_own_or_libguises() -> None:
    included = {
        (file.name, name)
        for file in (ROOT / "relay").glob("*.[ch]")
        for name in re.findall(r'^\s*#\s*include\s*"([^"]+)"', file.read_text(), re.MULTILINE)
    }
    assert ("engine.c", "relay/engine.h") in included
    assert {entry for entry in included if entry[1].split("/")[0] not in OWN | BELOW} == set()


def symbols(kind: str, *files: Path) -> set[str]:
    command = ["nm", f"--{kind}-only", "--extern-only", "--format=posix", *map(str, files)]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {line.split()[0] for line in listed.splitlines() if not line.endswith(":")}


def test_what_it_calls_is_not_the_holders() -> None:
    objects = {
        folder: [
            BUILD / "obj" / source.relative_to(ROOT).with_suffix(".o")
            for source in (ROOT / folder).rglob("*.c")
            if not source.stem.endswith("_test")
        ]
        for folder in ("relay", "holder")
    }
    used, holders = symbols("undefined", *objects["relay"]), symbols("defined", *objects["holder"])
    assert "engine_begin" in symbols("defined", *objects["relay"])
    assert "relay_start" in holders
    assert used & holders == set()
