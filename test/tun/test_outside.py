# SPDX-License-Identifier: GPL-2.0-only
"""Programs that guise cannot be loaded into: `guise run` recognises one that it is given
(cmd/guise/program.go), the preload library one that is started later
(preload/process/outside.c), and the two know the same ones by the same examples."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from topology.namespace import Word
from topology.process import Finished, run
from topology.side import BUILD, GUISE, PYTHON

SAID = "so guise is not loaded into it: it is on the host's stack"
PROOF = re.compile(r"^guise: \w+ within the stack \(no link\), .*\n", re.MULTILINE)

Make = Callable[[Path, Path, Path], Path]


def on_guise(*words: Word) -> Finished:
    """With -v it ends when the holder has, which then has said what it has to say: a program waits
    for that no longer than a moment. Without the proof."""
    done = run([GUISE, "run", "-v", "--link", "none", *words])
    return replace(done, stderr=PROOF.sub("", done.errors).encode())


def counted(*words: Word) -> dict[str, Any]:
    """What is counted at the end, which is the same for machines and for people."""
    said = run([GUISE, "run", "--json", "--link", "none", *words]).expect().errors
    counts: dict[str, Any] = json.loads(said.splitlines()[-1])
    proof = run([GUISE, "run", "-v", "--link", "none", *words]).errors.splitlines()[-1]
    outside = sum(p["times"] for p in counts["outside"]) + counts["unnamed"]
    on = re.search(r", (\d+) programs?, ", proof)
    off = re.search(r"; (\d+) programs? on the host's stack: ", proof)
    assert on and int(on[1]) == counts["programs"], (proof, counts)
    assert (int(off[1]) if off else 0) == outside, (proof, counts)
    assert bool(outside) != ("0 sockets escaped" in proof), proof
    return counts


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


LOADER = "ld-linux-x86-64.so.2" if os.uname().machine == "x86_64" else "ld-linux-aarch64.so.1"


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
    "loader": (lambda _folder, _talk, _web: Path(f"/lib64/{LOADER}"), ""),
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
    """However often, whichever process starts it, and by whichever call; a copy counts as another
    one."""
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


def test_programs_are_counted_where_they_ran(tmp_path: Path, talk: Path) -> None:
    """Each start counts, by whichever call; one that fails does not."""
    assert counted("--", "true")["programs"] == 1
    by_spawn = f"import os; os.waitpid(os.posix_spawn({str(talk)!r}, ['t'], os.environ), 0)"
    other = of_another_processor(tmp_path / "other")
    none = tmp_path / "none"
    none.write_bytes(b"\x7fELF and no more")
    none.chmod(0o755)
    script = f'{talk}; {talk}; /bin/true; {PYTHON} -c "{by_spawn}"; {other}; {none}; /bin/true'
    counts = counted("--", "sh", "-c", f"({script}) 2>/dev/null; :")
    assert counts["programs"] == 4, counts
    assert counts["outside"] == [{"program": str(talk), "why": "static", "times": 3}], counts


def test_more_than_have_room_are_counted(tmp_path: Path, talk: Path) -> None:
    copies = [tmp_path / f"copy{i}" for i in range(20)]
    for copy in copies:
        copy.symlink_to(talk)
    words = "; ".join(f"{copy} 2>/dev/null; {copy} 2>/dev/null" for copy in copies)
    counts = counted("--", "sh", "-c", f"{words}; :")
    assert len(counts["outside"]) == 16 and counts["unnamed"] == 8, counts


def test_asked_for_it_is_counted(talk: Path) -> None:
    counts = counted("--mode", "preload", "--", "sh", "-c", f"{talk} 2>/dev/null; :")
    assert counts["outside"] == [{"program": str(talk), "why": "static", "times": 1}], counts


def test_one_that_joins_by_itself_is_on_the_stack() -> None:
    """And one that only says so is not."""
    counts = counted("--", "env", "GUISE_PRELOAD=off", BUILD / "test/region/member", "threads")
    assert counts["programs"] >= 2 and not counts["outside"], counts
    counts = counted("--", "env", "GUISE_PRELOAD=off", "/bin/true")
    assert counts["outside"] == [{"program": "/bin/true", "why": "off", "times": 1}], counts


@pytest.fixture
def closed(tmp_path: Path) -> Path:
    """guise, where its user alone gets to it."""
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o700)
    for part in ("guise", "guise-holder", "libguise-preload.so", "guise-kernel"):
        (folder / part).symlink_to(BUILD / part)
    return folder


@pytest.mark.skipif(os.geteuid() != 0, reason="takes another user")
def test_where_the_library_cannot_be_read_it_is_said(closed: Path) -> None:
    """The loader says so, too, and goes on without."""
    change = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    env = {**os.environ, "GUISE_LIBDIR": str(closed)}
    words: list[Word] = [GUISE, "run", "--json", "--link", "none", "--", *change, "/bin/true"]
    lines = run(words, env=env).expect().errors.splitlines()
    assert any("/bin/true cannot read guise's library from where it is" in x for x in lines), lines
    counts = json.loads(lines[-1])
    assert counts["outside"] == [{"program": "/bin/true", "why": "unreadable", "times": 1}], counts
