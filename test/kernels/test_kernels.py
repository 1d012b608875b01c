# SPDX-License-Identifier: GPL-2.0-only
"""The port on Linux 6.1: what its own tests show on the kernel that is shipped, they show there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from topology.kernel import PATIENCE, passes
from topology.process import run
from topology.side import BUILD, GUISE

RELEASE = BUILD / "test/kernels/release"
OLDER = BUILD / "guise-kernel-6.1"


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
    words = [str(GUISE), "run", "--link", "none", "--", "env", "GUISE_PRELOAD=off", str(RELEASE)]
    assert re.fullmatch(release, run(words, env=env).expect().text)


TESTS = ["test/port", "test/region", "test/sim", "test/twin/test_http.py"]
TESTS += ["test/twin/test_congestion_control.py"]


@pytest.mark.slow
@pytest.mark.timeout(PATIENCE)
@pytest.mark.parametrize("tests", TESTS)
def test_linux_6_1_passes(older: Path, tests: str, tmp_path: Path) -> None:
    passes(older, tests, tmp_path)
