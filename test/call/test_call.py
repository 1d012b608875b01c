# SPDX-License-Identifier: GPL-2.0-only
"""A program cannot tell by its calls that the stack under its sockets is not the host's.

The programs beside this file consist of cases. A case makes calls, in every state and with every
argument that one can think of, and prints what each returned: results, errors, lengths, bytes,
events, and whether it waited. Each case runs on the host and on guise, and what it prints must be
equal, except for what differences.toml names. errors.toml says which errors the manual names for
each call.
"""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from topology.transcript import cases, differences, differing, on_host, unexplained

HERE = Path(__file__).resolve().parent
CALLS = HERE.parents[1] / "preload" / "calls.h"
STACK_VERSION = (6, 12)
MOST_DIFFERENCES = 15


@pytest.fixture(scope="session", autouse=True)
def namespaces() -> None:
    done = subprocess.run(["unshare", "--net", "true"], capture_output=True, text=True)
    if done.returncode and os.geteuid():
        done = subprocess.run(
            ["unshare", "--net", "--map-root-user", "true"], capture_output=True, text=True
        )
    if done.returncode:
        pytest.skip(f"the host's side needs a network namespace of its own: {done.stderr.strip()}")


@pytest.mark.parametrize("case", cases())
def test_call(case: str) -> None:
    assert on_host(case)[-1] == "ended with 0", on_host(case)[-5:]
    found = unexplained(case)
    text = "\n".join(f"host   {host}\nguise  {guise}" for host, guise in found[:40])
    assert not found, f"{len(found)} lines differ:\n{text}"


# ---- differences.toml --------------------------------------------------------------------------


def test_there_are_few_differences() -> None:
    assert len(differences()) <= MOST_DIFFERENCES
    assert all(d.what and d.reason and d.cases and d.lines for d in differences())


def host_version() -> tuple[int, int]:
    major, minor = re.findall(r"\d+", os.uname().release)[:2]
    return int(major), int(minor)


@pytest.mark.parametrize("number", range(len(differences())), ids=lambda n: differences()[n].what)
def test_difference_still_occurs(number: int) -> None:
    difference = differences()[number]
    if difference.newer_host and host_version() <= STACK_VERSION:
        pytest.skip("the host's kernel is not newer than the stack's")
    known = {case.split(".")[1]: case for case in cases()}
    pairs = [pair for case in difference.cases for pair in differing(known[case])]
    idle = [lines for lines in difference.lines if not any(lines.allows(*pair) for pair in pairs)]
    assert not idle
    for case in difference.cases:
        found = differing(known[case])
        assert any(lines.allows(*pair) for lines in difference.lines for pair in found), case


# ---- every error -------------------------------------------------------------------------------


def listed() -> set[str]:
    """The calls of preload/calls.h."""
    return set(re.findall(r"^CALL\((\w+),", CALLS.read_text("utf-8"), re.MULTILINE))


def shown(call: str, lines: list[str]) -> set[str]:
    """The errors of a call in transcripts."""
    return set(re.findall(rf"^{call}\(.* = -1 (E\w+)$", "\n".join(lines), re.MULTILINE))


def test_every_error_of_the_manual_is_shown() -> None:
    with open(HERE / "errors.toml", "rb") as file:
        errors = tomllib.load(file)
    manual = {call: set(names.split()) for call, names in errors["manual"].items()}
    assert set(manual) <= listed()
    excused: dict[str, set[str]] = {call: set() for call in manual}
    for entry in errors["not_shown"]:
        assert entry["reason"]
        for call in entry.get("calls", " ".join(manual)).split():
            excused[call] |= set(entry["errors"].split()) & manual[call]
    lines = [line for case in cases() for line in on_host(case)]
    missing = []
    for call, names in manual.items():
        seen = shown(call, lines)
        missing += [f"{call}: {name} is not shown" for name in names - excused[call] - seen]
        missing += [f"{call}: {name} is shown after all" for name in excused[call] & seen]
    assert not missing, "\n".join(sorted(missing))


def test_every_case_prints_something() -> None:
    """A case that prints nothing compares nothing."""
    assert [case for case in cases() if len(on_host(case)) < 3] == []
