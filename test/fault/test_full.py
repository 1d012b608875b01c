# SPDX-License-Identifier: GPL-2.0-only
"""Where nothing can be written any more: what guise needs a file for is refused with a sentence,
nothing on the host is changed by that, and what needs none works."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from topology.namespace import Namespace, Word
from topology.process import Finished, Process
from topology.side import GUISE, wait_until_says

# A mount namespace in which the folder given is a file system of its own. FREE: pages of 4 KiB
# that are left in it, one for each file that is not empty.
PRIVATE = """
set -e
mount --make-rprivate /
mount -t tmpfs -o "$2" full "$1"
mkdir -m 700 "$1/run"
: > "$1/fill"
[ -z "$3" ] || dd if=/dev/zero of="$1/fill" bs=4096 count="$3" 2> "$1/fill.said" || :
echo made
exec sleep infinity
"""
PAGES = 16


class Full:
    """Commands run where its folder is full."""

    def __init__(self, far: Namespace, folder: Path, options: str, fill: str) -> None:
        self.run_dir = folder / "run"
        self.far = far
        words = ["unshare", "--mount", "sh", "-c", PRIVATE, "sh", str(folder), options, fill]
        self._keeper = far.start(*words)
        wait_until_says(self._keeper, "made")

    def run(self, *words: Word) -> Finished:
        inside = ["nsenter", f"--target={self._keeper.pid}", "--mount", "--net"]
        with Process([*inside, *words], env={"GUISE_RUNDIR": str(self.run_dir)}) as process:
            return process.finish()

    def close(self) -> None:
        self._keeper.stop()


@pytest.fixture
def full(far: Namespace, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Full]:
    """By its parameter: no page is left, one is, or no file can be made."""
    options, fill = {
        "no page": (f"size={PAGES * 4}k", str(PAGES)),
        "one page": (f"size={PAGES * 4}k", str(PAGES - 1)),
        "no file": ("nr_inodes=3", ""),
    }[request.param]
    full = Full(far, tmp_path, options, fill)
    yield full
    full.close()


@pytest.mark.parametrize("full", ["no page", "one page", "no file"], indirect=True)
def test_what_cannot_be_noted_is_not_done(full: Full, far: Namespace) -> None:
    """One page: for the journal as it begins, and no more."""
    before = far.interfaces(), far.tables(), far.sysctls()
    done = full.run(GUISE, "run", "--link", "tap", "--", "echo", "never")
    assert (done.status, done.stdout) == (125, b""), done
    for word in (str(full.run_dir), "no space left on device", "$GUISE_RUNDIR"):
        assert word in done.errors, done
    assert (far.interfaces(), far.tables(), far.sysctls()) == before
    assert full.run("ls", full.run_dir).text == ""


@pytest.mark.parametrize("full", ["no file"], indirect=True)
def test_a_stack_without_a_socket_runs_and_one_with_a_name_is_refused(full: Full) -> None:
    done = full.run(GUISE, "run", "-v", "--link", "none", "--", "echo", "ran").expect()
    assert done.text == "ran\n"
    assert "guise ls does not list this stack" in done.errors and "$GUISE_RUNDIR" in done.errors
    config = "name = 'full'\n[[link]]\nkind = 'none'\n"
    up = full.run("sh", "-c", f'printf "{config}" | {GUISE} up -')
    assert up.status == 125 and "$GUISE_RUNDIR" in up.errors, up


@pytest.mark.parametrize("full", ["no page"], indirect=True)
def test_a_stack_takes_nothing_of_dev_shm(full: Full) -> None:
    """Its memory is a file without a name, in memory."""
    full.run("mount", "--bind", full.run_dir.parent, "/dev/shm").expect()
    done = full.run(GUISE, "run", "--link", "none", "--", "echo", "ran").expect()
    assert done.text == "ran\n" and not done.errors, done
