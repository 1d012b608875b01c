# SPDX-License-Identifier: GPL-2.0-only
"""Tests that are about the kernel that is shipped, run on another one."""

from __future__ import annotations

import sys
import xml.etree.ElementTree
from pathlib import Path

import pytest
from topology.process import run

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 3000.0  # seconds, for the tests of a whole folder


def passes(image: Path, tests: str, tmp_path: Path) -> None:
    """A file or a folder of tests; one that is skipped is no pass."""
    results = tmp_path / "results.xml"
    command = [sys.executable, "-m", "pytest", f"--junitxml={results}", f"--rootdir={ROOT}"]
    done = run(
        [*command, "-m", "not slow and not soak", str(ROOT / tests)],
        env={"GUISE_KERNEL": str(image)},
        cwd=ROOT,
        seconds=PATIENCE,
    ).expect()
    (suite,) = xml.etree.ElementTree.parse(results).iter("testsuite")
    assert int(suite.get("tests", 0)) > 5
    if skipped := int(suite.get("skipped", 0)):
        pytest.skip(f"{skipped} of these tests were skipped: {done.text[-1000:]}")
