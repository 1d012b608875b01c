# SPDX-License-Identifier: GPL-2.0-only
"""What the tests stand on. Each test has namespaces of its own, and each test that ran a program
on guise also shows that nothing of it is left behind."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from topology.content import Content
from topology.leftovers import Leftovers
from topology.namespace import Namespace, join
from topology.side import GuiseSide, HostSide


def pytest_configure() -> None:
    # Whoever ends the tests wants the namespaces gone, too: as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)


@pytest.fixture
def far() -> Iterator[Namespace]:
    """The namespace that holds the other end, and guise's tap."""
    if os.geteuid():
        pytest.skip("needs root, to make network namespaces")
    with Namespace("far") as far:
        yield far


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    """Where guise is to keep its journals."""
    return tmp_path / "run"


@pytest.fixture
def leftovers(far: Namespace, run_dir: Path) -> Iterator[Leftovers]:
    """What there is before the test must be all there is after it."""
    leftovers = Leftovers(far, run_dir)
    yield leftovers
    leftovers.wait_until_none()


@pytest.fixture
def host(far: Namespace) -> Iterator[HostSide]:
    """The host's own stack, in a namespace beside far."""
    with Namespace("near") as near:
        join(far, near, "10.77.1", "fd77:0:0:1")
        yield HostSide(near, far)


@pytest.fixture
def guise(far: Namespace, run_dir: Path, leftovers: Leftovers) -> GuiseSide:
    """A stack of guise, on a tap in far."""
    del leftovers  # looks after the test
    return GuiseSide(far, run_dir)


@pytest.fixture
def content(far: Namespace) -> Iterator[Content]:
    """An HTTP server in far."""
    with Content(far) as content:
        yield content
