# SPDX-License-Identifier: GPL-2.0-only
"""On a Debian that has only the minimum, the README's two commands lead to a guise that works:
`./bootstrap`, which builds it, and `./bootstrap demo`, which shows it."""

import contextlib
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from topology.process import Process, eventually
from topology.side import wait_until_says

ROOT = Path(__file__).resolve().parents[2]
BUILD_SECONDS = 5400.0

# What is mounted, and what is started, ends with the namespaces; these end with the process that
# made them, which ends with this one. debootstrap mounts, too.
DIES_WITH_US = ["setpriv", "--pdeathsig", "KILL"]
APART = [*DIES_WITH_US, "unshare", "--mount", "--pid", "--fork", "--kill-child"]

# `ip netns exec` wants / to be a mount.
IN_ROOT = """
mount --bind "$1" "$1" && mount --rbind /dev "$1/dev" || exit
mount -t proc proc "$1/proc" && mount --rbind /sys "$1/sys" || exit
root=$1
shift
exec chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root "$@"
"""


def apart(*command: str | Path) -> str:
    with Process([*APART, *command]) as process:
        return process.finish(BUILD_SECONDS).expect().text


def command_in_root(root: Path, *command: str) -> list[str | Path]:
    return ["sh", "-c", IN_ROOT, "sh", root, *command]


def in_root(root: Path, *command: str) -> str:
    return apart(*command_in_root(root, *command))


def links_of_processes(name: str) -> set[str]:
    """What that link in /proc/PID says, of all that run."""
    found = set()
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            found.add(os.readlink(entry / name))
    return found


def mounts(*points: str) -> list[str]:
    listing = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    return [line for line in listing if line.split()[4].startswith(points)]


@pytest.fixture
def needs_root() -> None:
    if os.geteuid():
        pytest.skip("needs root, for a system of its own")


@pytest.fixture
def minimal(needs_root: None, tmp_path: Path, suite: str) -> Iterator[Path]:
    """The root of a minimal system, with its security updates."""
    if not shutil.which("debootstrap"):
        pytest.skip("needs debootstrap")
    root = tmp_path / "root"
    apart("debootstrap", "--variant=minbase", suite, root)
    sources = root / "etc/apt/sources.list"
    main = sources.read_text()
    security = main.replace(f"/debian {suite} ", f"/debian-security {suite}-security ")
    sources.write_text(main + security)
    # A site's own certificates are as good inside as outside.
    own = Path("/usr/local/share/ca-certificates")
    if own.is_dir():
        shutil.copytree(own, root / own.relative_to("/"), dirs_exist_ok=True)
    shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
    yield root
    inside = str(tmp_path)
    eventually(
        lambda: not any(at.startswith(inside) for at in links_of_processes("root")),
        "nothing runs in the root any more",
    )
    assert not mounts(inside)


@pytest.mark.slow
@pytest.mark.timeout(3 * BUILD_SECONDS)
@pytest.mark.parametrize("suite", ["bookworm", "trixie"])
def test_bootstrap_on_a_minimal_system(minimal: Path) -> None:
    apart("git", "clone", "-q", ROOT, minimal / "src")
    in_root(minimal, "/src/bootstrap")
    table = in_root(minimal, "/src/bootstrap", "demo")
    assert table.count("iperf3 -R") == 4, table
    in_root(minimal, "/src/build/examples/pair")


# As the test above: it starts something in a root, one part of which leaves its session.
STARTER = """
import sys
sys.path[:0] = sys.argv[1:3]
from pathlib import Path
from test_fresh_debian import APART, command_in_root
from topology.process import Process
from topology.side import wait_until_says
command = "readlink /proc/self/ns/pid; setsid sleep 1000 & sleep 1000"
with Process([*APART, *command_in_root(Path("/"), "sh", "-c", command)]) as process:
    wait_until_says(process, "]")
    print(process.said().text, flush=True)
    process.finish(1000)
"""


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_what_runs_in_a_root_ends_with_the_tests(needs_root: None, end: signal.Signals) -> None:
    here = Path(__file__).parent
    before = mounts("/dev", "/proc", "/sys")
    with Process([sys.executable, "-c", STARTER, here, here.parent]) as starter:
        wait_until_says(starter, "pid:[")
        inside = starter.said().text.strip()
        assert inside in links_of_processes("ns/pid")
        starter.signal(end)
        eventually(lambda: inside not in links_of_processes("ns/pid"), "all of it has ended")
    assert mounts("/dev", "/proc", "/sys") == before
