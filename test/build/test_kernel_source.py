# SPDX-License-Identifier: GPL-2.0-only
"""What KERNEL_SRC may be, and what it may not be is refused with a sentence."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def build(tmp_path: Path, source: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [ROOT / "linux/build.sh", tmp_path / "build"],
        env={**os.environ, "KERNEL_SRC": str(source), "XDG_CACHE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("version", [(5, 10), (6, 6), (6, 13)])
def test_another_series_is_refused(tmp_path: Path, version: tuple[int, int]) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "Makefile").write_text(f"VERSION = {version[0]}\nPATCHLEVEL = {version[1]}\n")
    done = build(tmp_path, tree)
    assert done.returncode == 1
    assert f"{tree} is Linux {version[0]}.{version[1]}, but guise supports only" in done.stderr
    assert not (tmp_path / "build/guise-kernel").exists()


def test_what_is_no_kernel_tree_is_refused(tmp_path: Path) -> None:
    done = build(tmp_path, tmp_path)
    assert done.returncode == 1
    assert "not a kernel source tree" in done.stderr


def test_what_does_not_exist_is_refused(tmp_path: Path) -> None:
    done = build(tmp_path, tmp_path / "nowhere")
    assert done.returncode == 1
    assert f"KERNEL_SRC={tmp_path}/nowhere does not exist" in done.stderr
