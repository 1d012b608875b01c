# SPDX-License-Identifier: GPL-2.0-only
"""bench/servers/run measures servers on one stack with their clients, and on the host. What figures
come is the machine's to say."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest
from topology.process import Process, eventually, run
from topology.side import BUILD
from topology.unpacked import server

RUN = Path(__file__).resolve().parents[2] / "bench/servers/run"
ROW = re.compile(r"^(\S+) +(\S+/s) +(\d+) +(\d+) +(\d+\.\d\d)$", re.MULTILINE)


def rows(text: str) -> dict[str, tuple[int, int]]:
    """The figures of each name: guise's, the host's. The ratio is theirs, as far as they are not
    rounded."""
    found = {}
    for name, _, guise, host, ratio in ROW.findall(text):
        found[name] = (int(guise), int(host))
        assert float(ratio) == pytest.approx(int(guise) / int(host), abs=0.02, rel=0.02)
    return found


def descendants(pid: int) -> list[tuple[int, str]]:
    """Each with what it executes."""
    found = []
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for child in children:
            words = Path(f"/proc/{child}/cmdline").read_text().replace("\0", " ")
            found += [(int(child), words), *descendants(int(child))]
    except (FileNotFoundError, ProcessLookupError):
        pass
    return found


def test_a_server_is_measured_on_a_stack_and_on_the_host(tmp_path: Path) -> None:
    server("usr/lib/postgresql/*/bin/postgres")
    env = {"GUISE_RUNDIR": str(tmp_path)}
    done = run([RUN, "--runs", "1", "--seconds", "1", "postgresql-1", "postgresql-4"], env=env)
    found = rows(done.expect().text)
    assert list(found) == ["postgresql-1", "postgresql-4"], done
    assert all(guise > 0 and host > 0 for guise, host in found.values()), done


@pytest.fixture
def build(tmp_path: Path) -> Path:
    """What was built, without the pool."""
    build = tmp_path / "build"
    build.mkdir()
    for made in BUILD.iterdir():
        if made.name != "bench":
            (build / made.name).symlink_to(made)
    return build


def test_a_server_that_does_not_start_fails_with_what_it_said(build: Path, tmp_path: Path) -> None:
    programs = {
        build / "bench/servers/pool": "echo no such port >&2; exit 3",
        tmp_path / "wrk": ":",
    }
    for program, script in programs.items():
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f"#!/bin/sh\n{script}\n", encoding="ascii")
        program.chmod(0o755)
    env = {"GUISE_BUILD": str(build), "GUISE_RUNDIR": str(tmp_path / "run")}
    env["PATH"] = f"{os.environ['PATH']}:{tmp_path}"
    done = run([RUN, "--runs", "1", "thread-pool-1"], env=env).expect(1)
    assert rows(done.text) == {}
    assert (
        "thread-pool FAILED, on guise: status 1: it ended with status 3\nno such port"
        in done.errors
    )


def test_a_server_that_is_not_on_the_stack_is_found_out(build: Path) -> None:
    server("usr/lib/postgresql/*/bin/postgres")
    (build / "guise").unlink()
    (build / "guise").write_text('#!/bin/sh\nshift 5\nexec "$@"\n', encoding="ascii")
    (build / "guise").chmod(0o755)
    words = ["--runs", "1", "--seconds", "1", "postgresql-1"]
    done = run([RUN, *words], env={"GUISE_BUILD": str(build)}).expect(1)
    assert rows(done.text) == {}
    assert "postgresql FAILED, on guise: the server is not on the stack: its port" in done.errors


def test_what_is_missing_is_named_and_the_others_are_measured(build: Path, tmp_path: Path) -> None:
    server("usr/lib/postgresql/*/bin/postgres")
    env = {"GUISE_BUILD": str(build), "GUISE_RUNDIR": str(tmp_path / "run")}
    words = ["--runs", "1", "--seconds", "1", "postgresql-1", "thread-pool-1"]
    done = run([RUN, *words], env=env).expect()
    assert list(rows(done.text)) == ["postgresql-1"], done
    assert "thread-pool is not measured: " in done.errors
    assert f"{build}/bench/servers/pool (make bench-servers builds it)" in done.errors
    assert "./bootstrap bench-servers" in done.errors


def test_an_unknown_name_is_said() -> None:
    done = run([RUN, "postgresql-1", "no-such-server"]).expect(1)
    assert "there is no no-such-server; --list says what there is" in done.errors


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_nothing_of_it_is_left_when_it_is_interrupted(number: signal.Signals) -> None:
    server("usr/lib/postgresql/*/bin/postgres")
    with Process([RUN, "--seconds", "30", "postgresql-4"]) as driver:

        def loaded() -> list[int]:
            found = descendants(driver.pid)
            busy = any("pgbench -n -S" in " ".join(words.split()) for _, words in found)
            return [pid for pid, _ in found] if busy else []

        pids = eventually(loaded, "the server is loaded")
        driver.signal(number)
        assert driver.finish().status == 130
    assert len(pids) >= 5
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_server_is_measured(tmp_path: Path) -> None:
    names = run([RUN, "--list"]).expect().text.split()
    env = {"GUISE_RUNDIR": str(tmp_path)}
    done = run([RUN, "--runs", "1", "--seconds", "1"], env=env, seconds=800)
    if "is not measured" in done.errors:
        pytest.skip(done.errors.strip())
    assert list(rows(done.expect().text)) == names, done
