# SPDX-License-Identifier: GPL-2.0-only
"""A host that lets programs be traced only by their ancestors and by a process that they name
(Yama's ptrace_scope 1): all members of a stack are traced by the holder, as they name it. yama.c
refuses what such a host would, here; test/arm64/test_machine.py is on a kernel that has Yama."""

from __future__ import annotations

from topology.namespace import Word
from topology.process import run
from topology.side import BUILD, GUISE, PYTHON, program

YAMA = BUILD / "test" / "fault" / "yama"
LINEAGE = (PYTHON, program("lineage.py"))
ON_GUISE: tuple[Word, ...] = (GUISE, "run", "-v", "--link", "none", "--")


def test_what_stands_for_yama_refuses_a_stranger() -> None:
    done = run([YAMA, PYTHON, program("strangers.py")]).expect()
    assert done.text == "another child: Operation not permitted\nits parent: may\n", done


def test_all_of_a_tree_is_traced() -> None:
    done = run([YAMA, *ON_GUISE, *LINEAGE]).expect()
    lines = done.text.splitlines()
    assert len(lines) == 11, done
    assert all(line.endswith(": guise-holder") for line in lines), done
    assert "could not be traced" not in done.errors, done
