# SPDX-License-Identifier: GPL-2.0-only
"""Functions of libc that a program looks up by name are the stack's, and what stands before them
by the loader's rules stays there."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from topology.side import GUISE, PYTHON, program

HERE = Path(__file__).resolve().parent


def output(*command: str | Path, preloaded: Path | None = None) -> str:
    env = {**os.environ, **({"LD_PRELOAD": str(preloaded)} if preloaded else {})}
    done = subprocess.run(
        [str(word) for word in command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        env=env,
    )
    return f"{done.stdout}ended with {done.returncode}\n"


def test_libc_by_a_handle_is_the_stacks() -> None:
    words = (PYTHON, program("by_handle.py"))
    expected = output(*words)
    assert expected.count("True") == 8, expected
    assert output(GUISE, "run", "--link", "none", "--", *words) == expected


@pytest.mark.parametrize("how", ["by RTLD_NEXT", "by a handle"])
@pytest.mark.parametrize("where", ["linked", "before guise", "behind guise"])
def test_a_library_that_stands_before_libc_is_called_once(
    tmp_path: Path, how: str, where: str
) -> None:
    """Its connect() counts, and calls the next one, which it finds in either way."""
    library, caller = tmp_path / "libbefore.so", tmp_path / "caller"
    option = ["-DBY_HANDLE"] if how == "by a handle" else []
    before = HERE / "lookup" / "before.c"
    subprocess.run(["cc", *option, "-shared", "-fPIC", "-o", library, before], check=True)
    linked: list[str | Path] = ["-Wl,--no-as-needed", library] if where == "linked" else []
    subprocess.run(["cc", "-o", caller, HERE / "lookup" / "caller.c", *linked], check=True)
    words = ["env", f"LD_LIBRARY_PATH={tmp_path}", str(caller)]
    if where == "linked":
        expected = output(*words)
        found = output(GUISE, "run", "--link", "none", "--", *words)
    else:
        expected = output(*words, preloaded=library)
        script = f'LD_PRELOAD="{library} $LD_PRELOAD" exec "$@"'
        if where == "behind guise":
            script = f'LD_PRELOAD="$LD_PRELOAD {library}" exec "$@"'
        found = output(GUISE, "run", "--link", "none", "--", "sh", "-c", script, "sh", *words)
    assert expected == "connected, counted 1\nended with 0\n"
    assert found == expected
