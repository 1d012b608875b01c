# SPDX-License-Identifier: GPL-2.0-only
"""The port in a kernel that checks itself: locks, slabs, pages, lists, timers, leaks. What the
checks find ends the stack (CONFIG_GUISE_STRICT), so that any test that runs on it finds it, too."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from topology.kernel import PATIENCE, passes
from topology.process import Finished, run
from topology.side import BUILD

CHECKS = BUILD / "test/kernels/checks"
STRICT = BUILD / "guise-kernel-net-debug"
ABORTED = 128 + 6

TESTS = ["test/port", "test/region", "test/sim", "test/fault", "test/twin/test_http.py"]


def checks(*words: str) -> Finished:
    return run([str(CHECKS), *words], env={"GUISE_KERNEL": str(STRICT)}, seconds=600)


@pytest.mark.slow
@pytest.mark.timeout(PATIENCE)
@pytest.mark.parametrize("tests", TESTS)
def test_kernel_with_checks_passes(tests: str, tmp_path: Path) -> None:
    passes(STRICT, tests, tmp_path)


@pytest.mark.slow
def test_kernel_without_bugs_boots_silently() -> None:
    done = checks("boot", "").expect()
    assert (done.text, done.errors) == ("booted\n", "")


FOUND = {
    "inversion": "possible circular locking dependency detected",
    "sleep": "sleeping function called from invalid context",
    "overrun": "kmalloc Redzone overwritten",
    "use-after-free": "Poison overwritten",
    "list": "list_del corruption",
}


@pytest.mark.slow
@pytest.mark.parametrize("bug", FOUND)
def test_planted_bug_ends_the_stack(bug: str) -> None:
    """Otherwise a test that passes on this kernel would show nothing."""
    done = checks("boot", bug).expect(ABORTED)
    assert FOUND[bug] in done.errors
    assert "the stack failed: guise: a check of the kernel found a bug" in done.errors


@pytest.mark.slow
@pytest.mark.timeout(PATIENCE)
@pytest.mark.parametrize("what", ["leaks", "leaks-of-links"])
def test_nothing_that_came_and_went_is_leaked(what: str) -> None:
    """Sockets, connections, namespaces, veth pairs, queues with packets in them; links."""
    rounds, *leaks = checks(what).expect().text.splitlines()
    assert re.fullmatch(r"\d+ rounds", rounds)
    assert not leaks, "\n".join(leaks)


@pytest.mark.slow
@pytest.mark.timeout(PATIENCE)
def test_planted_leak_is_found() -> None:
    report = checks("leaks", "leak").expect().text
    assert report.count("unreferenced object") == 1
    assert "plant_leak" in report
