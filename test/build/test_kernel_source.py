# SPDX-License-Identifier: GPL-2.0-only
"""What KERNEL_SRC may be, and what it may not be is refused with a sentence; the source is unpacked
once, into the cache, and left as it is; what is built again is what changed."""

import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from topology.side import BUILD

ROOT = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "guise"
STACKS = BUILD / "test/region/stacks"


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


def contents(folder: Path) -> set[tuple[str, int, int]]:
    """Each file with its size and time; links as such."""
    found = set()
    for where, _, names in os.walk(folder):
        for name in names:
            status = os.lstat(os.path.join(where, name))
            found.add((os.path.join(where, name), status.st_size, status.st_mtime_ns))
    return found


def test_source_is_unpacked_once_and_never_changed(tmp_path: Path) -> None:
    """One that nothing can be built from: the cache is as it should be, even so."""
    tree = tmp_path / "linux-source-6.12"
    (tree / "arch/x86").mkdir(parents=True)
    (tree / "Makefile").write_text("VERSION = 6\nPATCHLEVEL = 12\n")
    (tree / "arch/x86/Kconfig").write_text("config X86\n")
    tarball = tmp_path / "linux-source-6.12.tar.xz"
    with tarfile.open(tarball, "w:xz") as archive:
        archive.add(tree, tree.name)
    first = build(tmp_path, tarball)
    assert "unpacking" in first.stderr and first.returncode == 1
    (cached,) = (tmp_path / "guise/source").iterdir()
    there = contents(cached)
    assert (cached / "arch/x86/Kconfig").read_text() == "config X86\n"
    again = build(tmp_path, tarball)
    assert "unpacking" not in again.stderr and again.returncode == 1
    assert contents(cached) == there
    assert list((tmp_path / "guise/source").iterdir()) == [cached]


# ---- whole builds ------------------------------------------------------------------------------


class Checkout:
    """A copy of what the kernel is built from, with a cache for images of its own; the source and
    ccache's objects are those of the user's cache."""

    def __init__(self, folder: Path) -> None:
        self.root, self.build, self.cache = folder / "guise", folder / "build", folder / "cache"
        shutil.copytree(ROOT / "linux", self.root / "linux", symlinks=True)
        shutil.copytree(ROOT / "include", self.root / "include")
        shutil.copy(ROOT / "versions.env", self.root)
        (self.cache / "guise").mkdir(parents=True)
        for name in ("source", "source.lock", "ccache"):
            (self.cache / "guise" / name).symlink_to(CACHE / name)

    def make(self, **env: str) -> str:
        """Builds the image; what its build said."""
        done = subprocess.run(
            [self.root / "linux/build.sh", self.build],
            env={**os.environ, "XDG_CACHE_HOME": str(self.cache), **env},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stderr

    def compiled(self) -> list[str]:
        """What the last build that compiled anything compiled."""
        log = (self.build / "linux.log").read_text("utf-8")
        return re.findall(r"^  (?:CC|AS) +(\S+)$", log, re.MULTILINE)


@pytest.fixture
def checkout(tmp_path: Path) -> Iterator[Checkout]:
    if "KERNEL_SRC" in os.environ:
        pytest.skip("KERNEL_SRC is set: these tests are about Debian's source")
    checkout = Checkout(tmp_path)
    yield checkout
    shutil.rmtree(tmp_path)  # hundreds of megabytes


def boots(image: Path) -> bool:
    done = subprocess.run([STACKS, "image", image], capture_output=True, text=True)
    return done.stdout.startswith("create: done")


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_what_changed_in_the_port_is_all_that_is_compiled_again(checkout: Checkout) -> None:
    checkout.make()
    source = checkout.build / "linux/.source"
    cached = Path(source.read_text("utf-8").split()[0])
    there = contents(cached)
    assert cached.parent.resolve() == (CACHE / "source").resolve()
    assert len(checkout.compiled()) > 500
    image = checkout.build / "guise-kernel"
    built = image.stat().st_mtime_ns
    assert not checkout.make(), "a second build has nothing to do"
    assert image.stat().st_mtime_ns == built

    changed = checkout.root / "linux/arch/guise/kernel/syscall.c"
    changed.write_text(changed.read_text("utf-8") + "\nconst int guise_changed = 1;\n", "utf-8")
    checkout.make()
    # The version's banner and the table of symbols are made whenever vmlinux is linked.
    linked = {"init/version-timestamp.o", ".tmp_vmlinux0.kallsyms.o"}
    compiled = {name for name in checkout.compiled() if "kallsyms" not in name}
    assert compiled - linked == {"arch/guise/kernel/syscall.o"}
    assert image.stat().st_mtime_ns != built
    assert boots(image)
    assert contents(cached) == there, "the cached source is as it was"


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_another_tree_builds_and_is_left_as_it_is(checkout: Checkout, tmp_path: Path) -> None:
    """The cached source with another number: a tree of links, and one file of its own."""
    checkout.make()
    cached = Path((checkout.build / "linux/.source").read_text("utf-8").split()[0])
    tree = tmp_path / "tree"
    subprocess.run(["cp", "-as", cached, tree], check=True)
    makefile = (tree / "Makefile").read_text("utf-8")
    (tree / "Makefile").unlink()
    (tree / "Makefile").write_text(
        re.sub(r"^SUBLEVEL = .*$", "SUBLEVEL = 247", makefile, flags=re.M), "utf-8"
    )
    there = contents(tree)
    checkout.make(KERNEL_SRC=str(tree))
    assert contents(tree) == there
    image = checkout.build / "guise-kernel"
    assert b"6.12.247-guise" in image.read_bytes()
    assert boots(image)
