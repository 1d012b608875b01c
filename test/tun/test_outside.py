# SPDX-License-Identifier: GPL-2.0-only
"""Programs that guise cannot be loaded into: `guise run` recognises one that it is given
(cmd/guise/program.go), the preload library one that is started later (preload/process/outside.c),
and the two know the same ones by the same examples."""

from __future__ import annotations

import errno
import os
import shutil
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from topology.namespace import Word
from topology.process import Finished, run
from topology.side import GUISE, PROOF, PYTHON

SAID = "so guise is not loaded into it: it is on the host's stack"

Make = Callable[[Path, Path, Path], Path]


def on_guise(*words: Word) -> Finished:
    """With -v it ends when the holder has, which then has said what it has to say: a program waits
    for that no longer than a moment. Without the proof."""
    done = run([GUISE, "run", "-v", "--link", "none", *words])
    return replace(done, stderr=PROOF.sub("", done.errors).encode())


def script(file: Path, interpreter: object) -> Path:
    file.write_text(f"#! {interpreter} -x\necho\n", "utf-8")
    file.chmod(0o755)
    return file


def of_another_processor(file: Path) -> Path:
    """Where a program names its own."""
    program = bytearray(Path("/bin/true").read_bytes())
    program[18] = other_machine()
    file.write_bytes(program)
    file.chmod(0o755)
    return file


def other_machine() -> int:
    x86_64, arm64 = 62, 183
    return arm64 if os.uname().machine == "x86_64" else x86_64


EXAMPLES: dict[str, tuple[Make, str]] = {
    "static": (lambda _folder, talk, _web: talk, "is statically linked"),
    "go": (lambda _folder, _talk, web: web, "is written in Go"),
    "script of a static": (
        lambda folder, talk, _web: script(folder / "script", talk),
        "is statically linked",
    ),
    "script of a script": (
        lambda folder, talk, _web: script(folder / "two", script(folder / "one", talk)),
        "is statically linked",
    ),
    "another processor": (
        lambda folder, _talk, _web: of_another_processor(folder / "other"),
        "is for ",
    ),
    "script of the shell": (lambda folder, _talk, _web: script(folder / "sh", "/bin/sh"), ""),
    "dynamic": (lambda _folder, _talk, _web: Path("/bin/true"), ""),
    "python": (lambda _folder, _talk, _web: Path(PYTHON), ""),
    "no program": (lambda folder, _talk, _web: script(folder / "none", "/nowhere"), ""),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_both_know_the_same_programs(name: str, tmp_path: Path, talk: Path, web: Path) -> None:
    make, why = EXAMPLES[name]
    program = make(tmp_path, talk, web)
    given = on_guise("--mode", "preload", "--", program, "--help")
    assert ("cannot be preloaded" in given.errors) == bool(why), given
    assert why in given.errors, given
    later = on_guise("--", "sh", "-c", '"$@"; "$@"; exec "$@"', "sh", program, "--help")
    assert later.errors.count(SAID) == bool(why), later
    assert not why or why in later.errors, later


def test_it_is_said_once_in_a_run(tmp_path: Path, talk: Path) -> None:
    """However often, by whomever, and by which call; a copy is another one."""
    copy = tmp_path / "copy"
    shutil.copy(talk, copy)
    by_spawn = f"import os; os.waitpid(os.posix_spawn({str(talk)!r}, ['t'], os.environ), 0)"
    words = f"for i in 1 2 3 4 5 6 7 8 9; do {talk}; done; {copy}; env -i {talk}"
    pieces = [words, f'{PYTHON} -c "{by_spawn}"', f"{PYTHON} -c \"import os; os.system('{talk}')\""]
    done = on_guise("--", "sh", "-c", f"({'; '.join(pieces)}) 2>/dev/null")
    assert done.errors.count(f"{talk} is statically linked, {SAID}") == 1, done
    assert done.errors.count(f"{copy} is statically linked, {SAID}") == 1, done
    assert done.errors.count("\n") == 2, done


def test_who_asks_for_preload_is_not_told(talk: Path) -> None:
    done = on_guise("--mode", "preload", "--", "sh", "-c", f"env -i {talk} 2>/dev/null")
    assert not done.errors, done


def test_a_program_that_joins_by_itself_is_not_meant(talk: Path) -> None:
    done = on_guise("--", "sh", "-c", f"GUISE_PRELOAD=off {talk} 2>/dev/null")
    assert not done.errors, done


@pytest.fixture
def ask() -> Iterator[list[str]]:
    """Asks a server of the host's, which is not on the stack of a run."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        words = (
            f"import socket; print(socket.socket().connect_ex(('127.0.0.1', {port})), flush=True)"
        )
        yield [PYTHON, "-c", words]


def test_what_a_static_program_starts_is_on_the_stack(ask: list[str]) -> None:
    """It hands the ticket and its environment on."""
    static = ["busybox", "sh", "-c", '"$@"; :', "sh"]
    assert run([*static, *ask]).expect().text == "0\n"
    done = on_guise("--", "env", *static, *ask).expect()
    assert done.text == f"{errno.ECONNREFUSED}\n", done
    assert f"busybox is statically linked, {SAID}" in done.errors, done


def test_what_valgrind_runs_is_on_the_hosts_stack(ask: list[str]) -> None:
    """The loader puts the library into it, but its instructions are run by a static program."""
    *python, script = ask
    valgrind = ["valgrind", "--quiet", "--trace-children=yes", *python]
    script += f"; import os; os.fork() and os.wait(); {script}; os.execv('/bin/true', ['true'])"
    assert run([*valgrind, script]).expect().text == "0\n0\n0\n"
    done = on_guise("--", *valgrind, script).expect()
    assert done.text == "0\n0\n0\n", done
    assert done.errors.count(f"is statically linked, {SAID}") == done.errors.count("\n") == 1, done
