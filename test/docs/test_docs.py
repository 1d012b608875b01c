# SPDX-License-Identifier: GPL-2.0-only
"""What the documents name is there: files, headings, tests, flags."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from topology.side import BUILD

ROOT = Path(__file__).resolve().parents[2]
MANUAL = ROOT / "docs/guise.1"
ARCHITECTURE = ROOT / "docs/architecture.md"
SPECIFICATION = ROOT / "SPECIFICATION.md"
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])

every_document = pytest.mark.parametrize(
    "document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT))
)

# `path` or `path::name`: a word in backticks with a slash in it.
NAMED = re.compile(r"`([\w.-]+(?:/[\w.-]+)+/?)(?:::(\w+))?`")
# A test of Python, of Go, and a case of test/preload.
DEFINED = re.compile(r"^def (test_\w+)|^func (Test\w+)|^CASE\((\w+)\)", re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")
# What pytest, go test and make check run, and programs of cases.
RUN = re.compile(r"test_\w+\.py|\w+_test\.(?:c|go)|\w+_fuzz\.c")
CASES = re.compile(r"test/(?:call|preload)/\w+\.c")


def prose(document: Path) -> str:
    """The text without its code blocks, which may have any words."""
    return re.sub(r"^```.*?^```$", "", document.read_text("utf-8"), flags=re.M | re.S)


def tracked() -> list[str]:
    """The files of the source."""
    listing = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return listing.stdout.splitlines()


def top_folders() -> set[str]:
    """Folders of the source; what is built or planned is not among them."""
    folders = {path.name for path in ROOT.iterdir() if path.is_dir()}
    return {name for name in folders if not name.startswith((".", "build"))}


def named_paths(text: str) -> list[tuple[str, str]]:
    tops = top_folders()
    return [(path, name) for path, name in NAMED.findall(text) if path.split("/")[0] in tops]


def anchors(document: Path) -> set[str]:
    """As GitHub makes them of headings."""
    headings = re.findall(r"^#+ (.*)$", prose(document), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


def is_run(path: str) -> bool:
    """Whether it is a file of tests, or a folder that has some."""
    whole = ROOT / path
    return bool(RUN.fullmatch(whole.name)) or any(whole.glob("test_*.py"))


def defines_tests(path: str) -> bool:
    """Whether what looks like a test in that file is run."""
    return is_run(path) or bool(CASES.fullmatch(path))


def names_in(source: Path) -> set[str]:
    """The tests that a file defines."""
    if not source.is_file() or not defines_tests(str(source.relative_to(ROOT))):
        return set()
    found = DEFINED.findall(source.read_text("utf-8"))
    return {name for names in found for name in names if name}


@every_document
def test_paths_exist(document: Path) -> None:
    missing = [path for path, _ in named_paths(prose(document)) if not (ROOT / path).exists()]
    assert not missing


@every_document
def test_links_lead_somewhere(document: Path) -> None:
    broken = []
    for target in LINK.findall(prose(document)):
        if target.startswith(("http://", "https://", "mailto:")):
            continue
        path, _, anchor = target.partition("#")
        there = document if not path else (document.parent / path).resolve()
        if not there.exists() or (anchor and anchor not in anchors(there)):
            broken.append(target)
    assert not broken


@every_document
def test_named_tests_exist(document: Path) -> None:
    missing = [
        f"{path}::{name}"
        for path, name in named_paths(prose(document))
        if name and name not in names_in(ROOT / path)
    ]
    assert not missing


def is_held(cell: str) -> bool:
    """Whether what stands behind a promise names a test, or says that there is none."""
    named = any(name or is_run(path) for path, name in named_paths(cell))
    return named or "**pending**" in cell or re.search(r"\bno test\b", cell) is not None


def test_each_promise_has_a_test_or_says_pending() -> None:
    rows = re.findall(r"^\| (.*) \| (.*) \|$", SPECIFICATION.read_text("utf-8"), re.MULTILINE)
    promises = [(promise, test) for promise, test in rows if promise != "promise"]
    assert promises
    assert [promise for promise, test in promises if not is_held(test)] == []


@pytest.mark.parametrize(
    "cell",
    [
        "",
        "`docs/plan.md`",
        "[limitations](docs/limitations.md)",
        "`lib/link/spec.c`",
        "`test/topology/side.py`",
        "`test/topology`",
        "bits of `irq_pending`",
    ],
)
def test_what_is_no_test_holds_no_promise(cell: str) -> None:
    assert not is_held(cell)


@pytest.mark.parametrize(
    ("path", "tests"),
    [
        ("test/fault/test_yama.py", True),
        ("test/call/poll.c", True),
        ("cmd/guise/run_test.go", True),
        ("test/topology/side.py", False),
        ("test/fault/killed.c", False),
        ("cmd/guise/run.go", False),
    ],
)
def test_functions_are_tests_where_somebody_runs_them(path: str, tests: bool) -> None:
    assert (ROOT / path).is_file()
    assert defines_tests(path) == tests


def is_slow(path: str, name: str) -> bool:
    """Whether `make check` leaves it out."""
    if not path.endswith(".py"):
        return False
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    return any(
        re.search(r"\bmark\.(slow|soak)\b", ast.unparse(decorator))
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name == name
        for decorator in node.decorator_list
    )


def test_what_make_check_leaves_out_is_said_to_be_slow() -> None:
    unsaid = [
        f"{path}::{name}"
        for row in re.findall(r"^\| .* \|$", SPECIFICATION.read_text("utf-8"), re.MULTILINE)
        for path, name in named_paths(row)
        if is_slow(path, name) and not re.search(r"\bslow\b|make (check-all|soak)", row)
    ]
    assert not unsaid


def test_every_folder_is_a_layer_or_part_of_one() -> None:
    section = re.search(r"^## Layers$(.*?)^## ", ARCHITECTURE.read_text("utf-8"), re.M | re.S)
    assert section
    listed = set(re.findall(r"^(\w+)/", section[1], re.MULTILINE))
    assert listed == {path.split("/")[0] for path in tracked() if re.match(r"\w+/", path)}
    parts = {path.split("/")[1] for path in tracked() if re.match(r"(lib|internal)/\w+/", path)}
    assert [part for part in parts if not re.search(rf"\b{part}\b", section[1])] == []


def flags_in_help(command: str) -> set[str]:
    text = subprocess.run(
        [BUILD / "guise", command, "--help"], check=True, capture_output=True, text=True
    ).stdout
    return set(re.findall(r"^ +(?:-\w, )?--([a-z-]+)", text, re.MULTILINE)) - {"help"}


def flags_in_manual(command: str) -> set[str]:
    text = MANUAL.read_text("utf-8").replace("\\-", "-")
    section = re.search(rf"^\.SS guise {command}$(.*?)^\.S[SH] ", text, re.M | re.S)
    assert section, f"{MANUAL} has no section guise {command}"
    return set(re.findall(r"--([a-z]+(?:-[a-z]+)*)", section.group(1)))


@pytest.mark.parametrize("command", ["run", "path", "check-mptcp"])
def test_manual_and_help_have_the_same_flags(command: str) -> None:
    assert flags_in_manual(command) == flags_in_help(command)


def test_list_of_calls_is_what_the_preload_library_has() -> None:
    """docs/calls.md is generated from preload/calls.h, and neither was changed without the
    other."""
    script = ROOT / "preload/calls_doc.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_records_of_the_monitor_are_described_as_the_header_has_them() -> None:
    script = ROOT / "make/monitor_doc.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


KINDS = "lib/link/kinds.py"
HAVE_KINDS = [  # in prose
    "docs/guise.1",
    "docs/networking.md",
    "docs/architecture.md",
    "include/guise/guise.h",
]


def test_kinds_of_links_are_the_same_in_c_in_go_and_in_the_documents() -> None:
    """What lib/link/kinds.py writes is written, and the documents have each kind and form."""
    done = subprocess.run([sys.executable, ROOT / KINDS, "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_kind_of_link_that_is_in_c_alone_is_missed_elsewhere(tmp_path: Path) -> None:
    generated = ["internal/plan/kinds.go", "internal/hostnet/openers.go"]
    for path in [KINDS, "lib/link/kinds.h", *generated, *HAVE_KINDS]:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, tmp_path / path)
    row = 'KIND(lan, IP, 1500, "lan:LIB", openLAN, "lan:IFNAME or lan:fd=N", "a LAN")'
    kinds = tmp_path / "lib/link/kinds.h"
    kinds.write_text(kinds.read_text("utf-8").replace("#undef KIND", f"{row}\n#undef KIND"))

    script = [sys.executable, str(tmp_path / KINDS)]
    done = subprocess.run([*script, "--check"], capture_output=True, text=True)
    assert done.returncode == 1
    missed = {line.split()[0] for line in done.stderr.splitlines()}
    assert missed == {*generated, *HAVE_KINDS}, done.stderr
    for form in ("lan:LIB", "lan:IFNAME", "lan:fd=N"):
        assert f'says nothing of "{form}"' in done.stderr

    subprocess.run(script, check=True)
    assert re.search(r"plan\.Lan: +openLAN,", (tmp_path / generated[1]).read_text("utf-8"))
    done = subprocess.run([*script, "--check"], capture_output=True, text=True)
    missed = {line.split()[0] for line in done.stderr.splitlines()}
    assert done.returncode == 1 and missed == set(HAVE_KINDS), done.stderr
