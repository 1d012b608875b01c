# SPDX-License-Identifier: GPL-2.0-only
"""Members that the holder cannot trace: the line of proof counts them and says why, and refers to
`guise doctor` for what that knows."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from topology.namespace import Word
from topology.process import Finished, run
from topology.side import DENY, GUISE, PYTHON

NOBODY: tuple[Word, ...] = (
    *("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"),
    *("--bounding-set=-all", "--inh-caps=-all"),
)
# A child that joins when it makes its first socket.
CHILD = "import os, socket; os.fork() or os._exit(bool(socket.socket().close())); os.wait()"
# PR_SET_DUMPABLE. The child is a member from its beginning on; one that joins would be served.
UNDUMPABLE = (
    f"import ctypes, socket; s = socket.socket(); ctypes.CDLL(None).prctl(4, 0, 0, 0, 0); {CHILD}"
)
# Execution fails, after the program was let go of for a setuid program.
TOO_LONG = """import os
try:
    os.execv("/usr/bin/su", ["su", "x" * 3000000])
except OSError:
    pass
"""

root = pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")


def untraced(
    run_dir: Path, *command: Word, before: Sequence[Word] = ()
) -> tuple[int, list[str], str]:
    """How many, why, and the same in the line for people."""
    env = {**os.environ, "GUISE_RUNDIR": str(run_dir)}

    def said(flag: str) -> Finished:
        words = [*before, GUISE, "run", flag, "--link", "none", "--", *command]
        return run(words, env=env).expect()

    counts = json.loads(said("--json").errors.splitlines()[-1])
    return counts["untraced"], counts["untraced_why"], said("-v").errors.splitlines()[-1]


def test_all_are_traced(run_dir: Path) -> None:
    number, why, line = untraced(run_dir, PYTHON, "-c", CHILD)
    assert (number, why) == (0, []) and "traced" not in line, line


def test_one_that_a_debugger_has(run_dir: Path) -> None:
    number, why, line = untraced(run_dir, "strace", "-f", "-o", "/dev/null", PYTHON, "-c", CHILD)
    assert (number, why) == (2, ["occupied"]), line
    assert "2 processes could not be traced (another program traced it, as strace" in line, line
    assert "doctor" not in line, line


@root
def test_one_that_forbids_it(tmp_path: Path) -> None:
    os.chown(tmp_path, 65534, 65534)
    run_dir = tmp_path / "run"
    number, why, line = untraced(run_dir, PYTHON, "-c", UNDUMPABLE, before=NOBODY)
    assert (number, why) == (1, ["undumpable"]) and "doctor" not in line, line


@root
def test_one_that_is_another_users_need_not_be(run_dir: Path) -> None:
    """It is served. root without the privilege to trace all processes."""
    change = "import os; os.setgroups([]); os.setresgid(*[65534] * 3); os.setresuid(*[65534] * 3)"
    words: list[Word] = [PYTHON, "-c", f"{change}; {CHILD}"]
    before = ["setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace"]
    number, why, line = untraced(run_dir, *words, before=before)
    assert (number, why) == (0, []) and "served" in line, line


def test_what_the_host_refuses_doctor_knows(run_dir: Path) -> None:
    before: list[Word] = [DENY, "ptrace=EPERM", "--"]
    number, why, line = untraced(run_dir, "true", before=before)
    assert (number, why) == (1, ["refused"]) and "guise doctor says why" in line, line
    said = run([*before, GUISE, "doctor"]).text
    assert "note tracing: the host refuses ptrace (operation not permitted)" in said, said


def test_doctor_says_that_it_is_traced_itself() -> None:
    said = run(["strace", "-f", "-o", "/dev/null", GUISE, "doctor"]).text
    assert "traces guise doctor and what it starts, as strace -f does" in said, said
    assert "ok   tracing: " in run([GUISE, "doctor"]).text


def test_one_that_was_let_go_and_is_traced_again_is_traced(run_dir: Path) -> None:
    number, why, line = untraced(run_dir, PYTHON, "-c", TOO_LONG)
    assert (number, why) == (0, []) and "traced" not in line, line
