# SPDX-License-Identifier: GPL-2.0-only
"""The port on Linux 6.1: what its own tests show on the kernel that is shipped, they show there."""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree
from pathlib import Path

import pytest
from topology.process import run
from topology.side import BUILD, GUISE

ROOT = Path(__file__).resolve().parents[2]
RELEASE = BUILD / "test/kernels/release"
OLDER = BUILD / "guise-kernel-6.1"
PATIENCE = 3000.0  # seconds, for the tests of a whole folder


@pytest.fixture
def older() -> Path:
    if not OLDER.exists():
        pytest.skip("needs Debian 12's package linux-source-6.1")
    return OLDER


@pytest.mark.slow
def test_a_stack_says_that_it_is_linux_6_1(older: Path) -> None:
    """One that the program makes itself, and one that it is given."""
    release = r"\d+\.\d+\.\d+ \(Linux 6\.1\.\d+-guise\)\n"
    env = {"GUISE_KERNEL": str(older)}
    assert re.fullmatch(release, run([RELEASE], env=env).expect().text)
    words = [str(GUISE), "run", "--link", "none", "--", "env", "-u", "LD_PRELOAD", str(RELEASE)]
    assert re.fullmatch(release, run(words, env=env).expect().text)


TESTS = ["test/port", "test/sim", "test/region/test_stacks.py", "test/region/test_holder.py"]
TESTS += ["test/twin/test_http.py", "test/twin/test_congestion_control.py"]


@pytest.mark.slow
@pytest.mark.timeout(PATIENCE)
@pytest.mark.parametrize("tests", TESTS)
def test_linux_6_1_passes(older: Path, tests: str, tmp_path: Path) -> None:
    """The tests that are about the shipped kernel; one that is skipped is no pass."""
    results = tmp_path / "results.xml"
    command = [sys.executable, "-m", "pytest", f"--junitxml={results}", f"--rootdir={ROOT}"]
    done = run(
        [*command, "-m", "not slow and not soak", str(ROOT / tests)],
        env={"GUISE_KERNEL": str(older)},
        cwd=ROOT,
        seconds=PATIENCE,
    ).expect()
    (suite,) = xml.etree.ElementTree.parse(results).iter("testsuite")
    assert int(suite.get("tests", 0)) > 5
    if skipped := int(suite.get("skipped", 0)):
        pytest.skip(f"{skipped} of these tests were skipped: {done.text[-1000:]}")
