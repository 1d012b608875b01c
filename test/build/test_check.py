# SPDX-License-Identifier: GPL-2.0-only
"""`make check` counts no test as passed that was left out, or that ended half way."""

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
        ("ok 1 - a\nok 2 - b", 0, (2, 1, 0)),  # it ended too early
        ("ok 1 - a\n1..2", 0, (1, 1, 0)),
        ("ok 1 - a\n1..1", 1, (1, 1, 0)),  # a sanitizer reports after the last line
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


def test_lines_of_c_that_clang_format_leaves_alone(check: ModuleType, tmp_path: Path) -> None:
    """Comments and assembler; a message may be longer, so that it stays in one piece."""
    source = tmp_path / "source.c"
    good = f'/* {"x" * 94} */\n\tint x; /* {"x" * 78} */\n\tsay("{"x" * 100}");\n'
    source.write_text(good)
    assert check.lines_of_c([str(source)]) == (True, "")
    for line, finding in (
        (f"/* {'x' * 95} */", "101 columns, 100 at most"),
        (f"\tint x; /* {'x' * 80} */", "101 columns, 100 at most"),
        ("int x; ", "blanks at the end of the line"),
        ("int x; \t/* why */", "a blank before a tab"),
    ):
        source.write_text(good + line + "\n")
        assert check.lines_of_c([str(source)]) == (False, f"{source}:4: {finding}\n")


def test_the_port_and_every_folder_of_the_host_side_are_linted(
    check: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new folder needs no entry, and the kernel's side has none of its own."""
    seen: dict[str, set[str]] = {}

    def execute(command: list[str]) -> tuple[bool, str]:
        folders = {word.rpartition("/")[0] for word in command if word.endswith((".c", ".h"))}
        seen.setdefault(command[0], set()).update(folders)
        return True, ""

    monkeypatch.setattr(check, "execute", execute)
    monkeypatch.setattr(check, "gofmt", lambda: "gofmt")
    monkeypatch.setattr(check, "clang_tidy", lambda files: execute(["clang-tidy", *files]))
    check.lint()
    here = {f.rpartition("/")[0] for f in check.sources() if f.endswith(".c")}
    assert here <= seen["clang-format"]
    kernels = ("linux/", "extensions/", "test/")
    assert {f for f in here if not f.startswith(kernels)} <= seen["clang-tidy"]
    assert "linux/arch/guise/kernel" not in seen["clang-tidy"]
