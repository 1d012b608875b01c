# SPDX-License-Identifier: GPL-2.0-only
"""Fixtures. Each test has namespaces of its own, and each test that ran a program on guise also
checks that nothing of it is left behind."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from topology.content import Content
from topology.leftovers import Leftovers
from topology.namespace import Namespace, join
from topology.side import GuiseSide, HostSide
from topology.user import User, UserSide, make_way_out


def pytest_configure() -> None:
    # A signal that ends the tests must remove the namespaces, too: as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # In the background of a script these are ignored, and programs would inherit that.
    for number in signal.SIGHUP, signal.SIGINT, signal.SIGQUIT:
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder that other users can be let into. Below pytest's own they cannot: each session that
    begins closes the folder of all sessions again."""
    with tempfile.TemporaryDirectory(prefix="guise-test-", ignore_cleanup_errors=True) as folder:
        os.chmod(folder, 0o711)
        yield Path(folder)


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
    """After the test there must be no more than before it."""
    leftovers = Leftovers(far, run_dir)
    yield leftovers
    leftovers.wait_until_none()


@pytest.fixture
def host(far: Namespace) -> Iterator[HostSide]:
    """The host's own stack, in a namespace beside far."""
    with Namespace("near") as near:
        join(far, near, "10.77.1", "fd77:0:0:1")
        yield HostSide(near, far)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """How the programs of a test are on their stack: directly, as root's; the same as those of a
    user without root, where the test is marked so; and served, in all of test/twin, which has whole
    programs. What is not run directly is in `make check-all`, as it takes as long once more; some
    tests of served programs are quick, and marked so."""
    if "guise" not in metafunc.fixturenames:
        return
    definition = metafunc.definition
    ways: list[object] = ["direct"]
    if definition.get_closest_marker("also_without_root"):
        ways.append(pytest.param("user", marks=pytest.mark.slow))
    if definition.get_closest_marker("also_served"):
        ways.append("served")
    elif definition.path.parent.name == "twin":
        ways.append(pytest.param("served", marks=pytest.mark.slow))
    if len(ways) > 1:
        metafunc.parametrize("guise", ways, indirect=True)


@pytest.fixture
def guise(
    request: pytest.FixtureRequest,
    far: Namespace,
    run_dir: Path,
    tmp_path: Path,
    leftovers: Leftovers,
) -> Iterator[GuiseSide]:
    """A stack of guise, on a tap in far; or that of a user without root, through passt."""
    way = getattr(request, "param", "direct")
    if way != "user":
        yield GuiseSide(far, run_dir, *(["--served"] if way == "served" else []))
        return
    user = User(tmp_path / "home")
    make_way_out(far)
    leftovers.look()
    with user.shares(tmp_path):
        yield UserSide(far, run_dir, user)


@pytest.fixture
def content(far: Namespace) -> Iterator[Content]:
    """An HTTP server in far."""
    with Content(far) as content:
        yield content
