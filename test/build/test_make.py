# SPDX-License-Identifier: GPL-2.0-only
"""make says what it can do, does nothing twice, and replaces libraries whole."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from topology.side import BUILD

ROOT = Path(__file__).resolve().parents[2]


def make(*words: str | Path, **env: str) -> str:
    """As its user calls it, not the make that runs the tests."""
    ours = {"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "GUISE_BUILD"}
    done = subprocess.run(
        ["make", *words],
        cwd=ROOT,
        env={key: value for key, value in os.environ.items() if key not in ours} | env,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_help_has_every_target() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    phony = {
        name for line in re.findall(r"^\.PHONY:(.*)$", makefile, re.M) for name in line.split()
    }
    told = dict(line.split(None, 1) for line in make("help").splitlines())
    assert told.keys() == phony - {"FORCE"}


def test_second_make_does_nothing(tmp_path: Path) -> None:
    """A build of its own; the kernel's part is in test_kernel_source.py."""
    build = tmp_path / "build"
    build.mkdir()
    for name in ("guise-kernel", "guise-kernel.debug", ".kernel"):
        if (BUILD / name).exists():
            shutil.copy2(BUILD / name, build)
    assert "  CC " in make("-j2", f"BUILD={build}")
    times = {path: path.stat().st_mtime_ns for path in build.rglob("*") if path.is_file()}
    assert not re.search(r"^  [A-Z]+ ", make(f"BUILD={build}"), re.MULTILINE)
    now = {path: path.stat().st_mtime_ns for path in build.rglob("*") if path.is_file()}
    assert {path.name for path in now if now[path] != times.get(path)} <= {".kernel.lock"}


def test_extensions_are_of_an_image_of_their_own(tmp_path: Path) -> None:
    """guise-kernel stays as it is."""
    for name in ("guise-kernel", "guise-kernel.debug", ".kernel"):
        shutil.copy2(BUILD / name, tmp_path)
    make(f"BUILD={tmp_path}", "EXTENSIONS=pigeon", tmp_path / "guise-kernel")
    make(f"BUILD={tmp_path}", tmp_path / "guise-kernel", EXTENSIONS="pigeon")


def test_libraries_are_replaced_not_written_over(tmp_path: Path) -> None:
    """A program that has the old one mapped keeps it."""
    build = tmp_path / "build"
    shutil.copytree(BUILD, build, ignore=shutil.ignore_patterns("linux*", "unit", "test"))
    for name in ("libguise.so", "libguise-preload.so"):
        library, mapped = build / name, tmp_path / name
        mapped.hardlink_to(library)
        os.utime(library, ns=(0, 0))  # older than what it is made of
        content = mapped.read_bytes()
        make(f"BUILD={build}", str(library))
        assert not library.samefile(mapped)
        assert mapped.read_bytes() == content


def test_uninstall_removes_what_install_put_there_and_nothing_else(tmp_path: Path) -> None:
    def files() -> set[str]:
        return {str(f.relative_to(tmp_path)) for f in tmp_path.rglob("*") if not f.is_dir()}

    where = [f"DESTDIR={tmp_path}", "PREFIX=/usr"]
    for name in ("usr/bin/other", "usr/share/man/man1/other.1", "usr/share/doc/other"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    before = files()
    make("install", f"BUILD={BUILD}", *where)
    put = files() - before
    assert {"usr/bin/guise", "usr/lib/guise/guise-kernel", "usr/include/guise/guise.h"} <= put
    # Images with extensions, but none that is for tests.
    for_tests = {"guise-kernel-planted", "guise-kernel-net-debug", "guise-kernel-6.1"}
    images = {path.name for path in BUILD.glob("guise-kernel*") if path.suffix != ".debug"}
    assert {f"usr/lib/guise/{name}" for name in images - for_tests} == {
        name for name in put if "guise-kernel" in name
    }
    guise = tmp_path / "usr/bin/guise"
    asked: list[str | Path] = [guise, "run", "--link", "none", "--", "true"]
    env = {**os.environ, "GUISE_RUNDIR": str(tmp_path / "run")}
    subprocess.run(asked, check=True, env=env)
    found = subprocess.run([guise, "doctor"], env=env, capture_output=True, text=True).stdout
    assert found.startswith("ok   parts: "), found
    # A header that an older guise had is gone, too.
    (tmp_path / "usr/include/guise/old.h").touch()
    make("uninstall", *where)
    assert {name for name in files() if not name.startswith("run/")} == before
    assert not (tmp_path / "usr/lib/guise").exists()
