# SPDX-License-Identifier: GPL-2.0-only
"""CPython's own suites end on guise, case by case, as they end on the host.

Each runs twice at the same time: on the host's stack in a namespace with lo up, and on a stack of
guise whose namespace has not even lo, so that no call that guise does not see can succeed. The same
cases must be there, and each must pass, fail or be skipped for the same reason on both.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from topology.leftovers import Leftovers
from topology.namespace import Namespace, Word
from topology.process import Process, eventually
from topology.side import GUISE, PROOF, PYTHON
from topology.user import User

HERE = Path(__file__).resolve().parent
QUICK = ["test_select", "test_poll", "test_epoll", "test_selectors", "test_socket", "test_httplib"]
QUICK += ["test_urllib2_localnet"]
LONG = ["test_socketserver", "test_ssl", "test_asyncio"]
# What makes processes: its children are on the stack, and have its sockets.
TREES = ["test_subprocess", "test_multiprocessing_fork", "test_multiprocessing_spawn"]
TREES += ["test_multiprocessing_forkserver", "test_concurrent_futures", "test_signal", "test_posix"]

# How the programs are on their stack; test_suite is quick only for those that call it directly.
DIRECT: tuple[str, ...] = ()
SERVED: tuple[str, ...] = ("--served",)
BOTH = [pytest.param(DIRECT, id="direct"), pytest.param(SERVED, id="served")]
QUICKLY = [pytest.param(DIRECT, id="direct")]
QUICKLY += [pytest.param(SERVED, id="served", marks=pytest.mark.slow)]

# A case that has been silent for so many seconds hangs; no case waits for so long by itself.
SILENCE = 240.0

Outcomes = dict[str, tuple[str, str]]


def outcomes(report: str) -> tuple[Outcomes, str | None]:
    """How each case ended, and which one had not when the report was cut off."""
    found: Outcomes = {}
    open_case = None
    for line in report.splitlines(keepends=True):
        if not line.endswith("\n"):
            break
        word, case, *reason = json.loads(line)
        if word == "begins":
            open_case = case
        else:
            open_case = None if case == open_case else open_case
            found[case] = (word, *reason)
    return found, open_case


def without_hangs(
    start: Sequence[Word], where: Namespace, listed: Path, env: Mapping[str, str], cwd: Path | None
) -> Outcomes:
    """All cases of a suite. After a hang or a crash the others go on in a new process."""
    done: Outcomes = {}
    while True:
        listed.write_text("".join(f"{case}\n" for case in done), encoding="utf-8")
        with where.start(*start, "--without", listed, env=env, cwd=cwd) as process:
            hung = not ends(process)
            said = process.stop()
        found, open_case = outcomes(said.text)
        done |= found
        if said.status == 0 and not open_case:
            escaped = [line["escaped"] for line in PROOF.finditer(said.errors)]
            assert escaped == ["0"] * ("-v" in start), said
            return done
        assert open_case, f"it ended outside of any case: {said}"
        how = f"silent for {SILENCE:g} s" if hung else f"status {said.status}"
        done[open_case] = ("hung" if hung else "crashed", f"{how}: {said.errors[-2000:]}")


def ends(process: Process) -> bool:
    """Waits for the end of a process, for as long as it goes on saying something."""
    length = -1
    while process.running():
        before, length = length, len(process.said().stdout)
        if before == length:
            return False

        def news(seen: int = length) -> bool:
            return not process.running() or len(process.said().stdout) > seen

        try:
            eventually(news, "another case ends", SILENCE, pause=0.2)
        except AssertionError:
            return False
    return True


def settled(reason: str) -> str:
    """The reason of a skip, without what differs from process to process."""
    return re.sub(r"\d{4,}|0x[0-9a-f]+", "N", reason)


def compare(on_host: Outcomes, on_guise: Outcomes) -> list[str]:
    """What must not be, one sentence each."""
    wrong = []
    for case in sorted(on_host.keys() | on_guise.keys()):
        theirs = on_host.get(case, ("absent", ""))
        ours = on_guise.get(case, ("absent", ""))
        if ours[0] != theirs[0]:
            reason = ours[1] or theirs[1]
            wrong.append(f"{case} {theirs[0]} on the host, {ours[0]} on guise: {reason}")
        elif ours[0] == "skipped" and settled(ours[1]) != settled(theirs[1]):
            wrong.append(f"{case} is skipped on the host: {theirs[1]}; on guise: {ours[1]}")
    return wrong


def summary(found: Outcomes) -> str:
    words = [word for word, *_ in found.values()]
    return ", ".join(f"{words.count(word)} {word}" for word in sorted(set(words)))


def run_beside_the_host(
    suite: str,
    far: Namespace,
    run_dir: Path,
    tmp_path: Path,
    options: Sequence[str] = DIRECT,
    user: User | None = None,
) -> None:
    command: list[Word] = [PYTHON, str(HERE / "cases.py"), suite]
    guise: list[Word] = [GUISE, "run", "-v", "--link", "none", *options, "--", *command]
    home = user.home if user else None
    if user:
        command, guise = user.command(*command), user.command(*guise)
    with Namespace("silent") as silent, ThreadPoolExecutor(2) as both:
        silent.ip("link", "set", "lo", "down")
        host_run = both.submit(without_hangs, command, far, tmp_path / "host", {}, home)
        env = {"GUISE_RUNDIR": str(run_dir)}
        guise_run = both.submit(without_hangs, guise, silent, tmp_path / "guise", env, home)
        on_guise = guise_run.result()
        on_host = host_run.result()
    print(f"{suite} on the host: {summary(on_host)}; on guise: {summary(on_guise)}")
    assert sum(word == "passed" for word, *_ in on_host.values()) > 4, on_host
    wrong = compare(on_host, on_guise)
    assert not wrong, "\n".join(wrong)


def suites_are_there() -> None:
    words = [PYTHON, "-c", "import sysconfig; print(sysconfig.get_path('stdlib'))"]
    with Process(words) as process:
        folder = Path(process.finish().expect().text.strip())
    if not (folder / "test/test_socket.py").exists():
        pytest.skip(f"{folder}/test is not installed: it comes with libpython3.N-testsuite")


@pytest.mark.timeout(900)
@pytest.mark.parametrize("options", QUICKLY)
@pytest.mark.parametrize("suite", QUICK)
def test_suite(
    suite: str,
    options: Sequence[str],
    far: Namespace,
    run_dir: Path,
    leftovers: Leftovers,
    tmp_path: Path,
) -> None:
    del leftovers  # looks after the test
    suites_are_there()
    run_beside_the_host(suite, far, run_dir, tmp_path, options)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("options", BOTH)
@pytest.mark.parametrize("suite", LONG + TREES)
def test_long_suite(
    suite: str,
    options: Sequence[str],
    far: Namespace,
    run_dir: Path,
    leftovers: Leftovers,
    tmp_path: Path,
) -> None:
    del leftovers  # looks after the test
    suites_are_there()
    run_beside_the_host(suite, far, run_dir, tmp_path, options)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("suite", QUICK + LONG)
def test_suite_without_root(
    suite: str, far: Namespace, run_dir: Path, leftovers: Leftovers, tmp_path: Path
) -> None:
    """By a user with a fresh home directory, on the host and on guise."""
    del leftovers  # looks after the test
    suites_are_there()
    user = User(tmp_path / "home")
    with user.shares(tmp_path):
        run_beside_the_host(suite, far, run_dir, tmp_path, user=user)


def test_comparison_finds_every_difference() -> None:
    """Of the comparison itself: a difference of each kind is named."""
    host = {"a": ("passed", ""), "b": ("skipped", "port 1234 is taken"), "c": ("failed", "x")}
    assert compare(host, dict(host)) == []
    assert compare(host, host | {"b": ("skipped", "port 9876 is taken")}) == []
    for other in (
        host | {"a": ("failed", "")},
        host | {"a": ("hung", "")},
        host | {"a": ("skipped", "")},
        host | {"b": ("skipped", "another reason")},
        host | {"b": ("passed", "")},
        host | {"c": ("passed", "")},
        host | {"d": ("passed", "")},
        {"a": ("passed", ""), "c": ("failed", "")},
    ):
        assert len(compare(host, other)) == 1, other
