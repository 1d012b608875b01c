# SPDX-License-Identifier: GPL-2.0-only
"""On a Debian that has only the minimum, the README's two commands lead to a guise that works:
`./bootstrap`, which builds it, and `./bootstrap demo`, which shows it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Mounts end with the namespace they are made in. `ip netns exec` wants / to be one.
IN_ROOT = """
mount --bind "$1" "$1" && mount --rbind /dev "$1/dev" || exit
mount -t proc proc "$1/proc" && mount -t sysfs sysfs "$1/sys" || exit
root=$1
shift
exec chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root "$@"
"""


def run(*command: str | Path) -> str:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout[-4000:]
    return done.stdout


def in_root(root: Path, *command: str) -> str:
    return run("unshare", "--mount", "--pid", "--fork", "sh", "-c", IN_ROOT, "sh", root, *command)


@pytest.fixture
def minimal(tmp_path: Path, suite: str) -> Path:
    """The root of a minimal system, with its security updates."""
    if os.geteuid():
        pytest.skip("needs root, for a system of its own")
    if not shutil.which("debootstrap"):
        pytest.skip("needs debootstrap")
    root = tmp_path / "root"
    run("debootstrap", "--variant=minbase", suite, root)
    sources = root / "etc/apt/sources.list"
    main = sources.read_text()
    security = main.replace(f"/debian {suite} ", f"/debian-security {suite}-security ")
    sources.write_text(main + security)
    # A site's own certificates are as good inside as outside.
    own = Path("/usr/local/share/ca-certificates")
    if own.is_dir():
        shutil.copytree(own, root / own.relative_to("/"), dirs_exist_ok=True)
    shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
    return root


@pytest.mark.slow
@pytest.mark.timeout(5400)
@pytest.mark.parametrize("suite", ["bookworm", "trixie"])
def test_bootstrap_on_a_minimal_system(minimal: Path) -> None:
    run("git", "clone", "-q", ROOT, minimal / "src")
    in_root(minimal, "/src/bootstrap")
    table = in_root(minimal, "/src/bootstrap", "demo")
    assert table.count("iperf3 -R") == 4, table
    in_root(minimal, "/src/build/examples/pair")
