# SPDX-License-Identifier: GPL-2.0-only
"""What `make check` calls passed: nothing that was left out, or that ended half way."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def check(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """make/check.py; what its main() changes is changed back."""
    spec = importlib.util.spec_from_file_location("check", ROOT / "make/check.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "check", module)
    spec.loader.exec_module(module)
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    return module


@pytest.mark.parametrize(
    ("passed", "skipped", "status"),
    [(1100, 30, 0), (1100, 122, 0), (1100, 123, 1), (100, 1000, 1), (100, 0, 1), (0, 0, 1)],
)
def test_a_part_of_which_most_is_skipped_or_not_there_has_failed(
    check: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    passed: int,
    skipped: int,
    status: int,
) -> None:
    monkeypatch.setitem(check.FLOORS, "pytest", check.Floor(1000, 0.9))
    monkeypatch.setitem(check.PARTS, "pytest", lambda: check.Tally(passed, 0, skipped))
    assert check.main(["pytest"]) == status
    *before, last = capsys.readouterr().out.splitlines()
    assert last == f"{passed} passed, {status} failed, {skipped} skipped"
    assert [line.split()[0] for line in before] == ["FAILED"] * status
    if status:
        assert f"{passed} of {passed + skipped} tests were executed" in before[0]


def test_parts_that_did_much_do_not_make_up_for_one_that_did_nothing(
    check: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(check.PARTS, "pytest", lambda: check.Tally(100_000, 0, 0))
    monkeypatch.setitem(check.PARTS, "unit", lambda: check.Tally())
    assert check.main(["unit", "pytest"]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "100000 passed, 1 failed, 0 skipped"


def test_every_part_with_tests_has_a_floor(check: ModuleType) -> None:
    assert check.FLOORS.keys() == check.PARTS.keys() - {"format"}
    assert all(floor.least > 0 and floor.share >= 0.9 for floor in check.FLOORS.values())


@pytest.mark.parametrize(
    ("says", "status", "outcome"),
    [
        ("ok 1 - a\nok 2 - b\n1..2", 0, (2, 0, 0)),
        ("ok 1 - a\nok 2 - b # skip why\n1..2", 0, (1, 0, 1)),
        ("ok 1 - a\nnot ok 2 - b\n1..2", 1, (1, 1, 0)),
        ("ok 1 - a\nok 2 - b", 0, (2, 1, 0)),  # it ended before its end
        ("ok 1 - a\n1..2", 0, (1, 1, 0)),
        ("ok 1 - a\n1..1", 1, (1, 1, 0)),  # a sanitizer reports when all is said
        ("no TAP", 0, (1, 0, 0)),
        ("no TAP", 77, (0, 0, 1)),
        ("", 139, (0, 1, 0)),
    ],
)
def test_a_unit_test_has_passed_when_it_came_to_its_end(
    check: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    says: str,
    status: int,
    outcome: tuple[int, int, int],
) -> None:
    program = tmp_path / "unit_test"
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{says}\nEND\nexit {status}\n")
    program.chmod(0o755)
    monkeypatch.setenv("UNIT_TESTS", str(program))
    assert check.unit() == check.Tally(*outcome)
