# SPDX-License-Identifier: GPL-2.0-only
"""Runs the checks of `make check` and adds up what they say.

make/check.py PART...   (of: lint unit go pytest pytest-all soak format)

Every linter, every C unit test (or every line of one that speaks TAP), every Go
test and every pytest test counts as one. All parts run, whatever fails; the last
line is the sum, and the exit status says whether all of it is well. A part of which
too much was skipped, or was never found, has failed (FLOORS): else a machine that
cannot run the tests would be the one on which all of them pass. The Makefile
hands over C_DIALECT, the compiler's flags that matter for reading the C files, and
UNIT_TESTS, the unit tests that it has built.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "guise"
GO = "make/go"
UNIT_TEST_SECONDS = 300
SKIPPED = 77  # exit status of a unit test that cannot run here
COLUMNS = 100  # of a line of C or assembler, with tabs of eight
NEEDS_LICENSE = {".c", ".h", ".S", ".go", ".py", ".sh", ".mk", ".env"}


@dataclass
class Tally:
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def add(self, outcome: str) -> None:
        setattr(self, outcome, getattr(self, outcome) + 1)

    def __iadd__(self, other: Tally) -> Tally:
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        return self

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def say(text: str) -> None:
    print(text, flush=True)


@dataclass(frozen=True)
class Floor:
    """How much of a part must have been executed: passed or failed, not skipped."""

    least: int  # tests; some nine tenths of what there are: raised when many come, lowered never
    share: float  # of those that there are

    def lacking(self, tally: Tally) -> str:
        """What is wrong with it in a sentence, or nothing."""
        executed = tally.passed + tally.failed
        there = executed + tally.skipped
        if executed >= self.least and executed >= self.share * there:
            return ""
        return (
            f"{executed} of {there} tests were executed; at least {self.least} are expected, "
            f"and {self.share:.0%} of all. What was skipped is named above with the reason"
        )


def report(outcome: str, name: str, began: float, output: str = "") -> None:
    word = {"passed": "ok", "failed": "FAILED", "skipped": "skipped"}[outcome]
    say(f"{word:8}{name} ({time.monotonic() - began:.1f} s)")
    if outcome != "passed" and output.strip():
        say("\n".join("    " + line for line in output.rstrip().splitlines()))


# ---- linters ---------------------------------------------------------------------------------


def sources() -> list[str]:
    """The files of the checkout that git knows or would add, without links."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    files = [name for name in listing.split("\0") if name]
    return sorted(f for f in set(files) if Path(f).is_file() and not Path(f).is_symlink())


def with_suffix(files: Iterable[str], *suffixes: str) -> list[str]:
    return [f for f in files if f.endswith(suffixes)]


def host_c(files: Iterable[str]) -> list[str]:
    """What linux/ and extensions/ have is compiled with the kernel's own headers."""
    return [f for f in with_suffix(files, ".c") if not f.startswith(("linux/", "extensions/"))]


def is_script(name: str, interpreter: bytes) -> bool:
    with open(name, "rb") as file:
        line = rb"#!(/usr)?/bin/(env )?" + interpreter + rb"\b"
        return re.match(line, file.readline()) is not None


def is_shell(name: str) -> bool:
    return is_script(name, rb"(ba|da)?sh")


def python_sources(files: Iterable[str]) -> list[str]:
    return [f for f in files if f.endswith(".py") or is_script(f, rb"python3")]


def execute(command: list[str]) -> tuple[bool, str]:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode == 0, done.stdout


def silent(command: list[str]) -> tuple[bool, str]:
    """For a linter whose output is its finding, whatever its exit status."""
    good, output = execute(command)
    return good and not output.strip(), output


def tidied(dialect: list[str], rules: bytes, file: str) -> tuple[bool, str]:
    """clang-tidy of one file; it takes seconds, so what it found good is remembered: the file with
    all that it includes, comments too (some are for clang-tidy), the rules and the tool."""
    whole = subprocess.run(["cc", "-E", "-CC", *dialect, file], capture_output=True).stdout
    known = CACHE / "clang-tidy" / hashlib.sha256(rules + b"\0" + whole).hexdigest()
    if whole and known.exists():
        known.touch()
        return True, ""
    good, output = execute(["clang-tidy", "--quiet", file, "--", *dialect])
    if good and whole:
        known.parent.mkdir(parents=True, exist_ok=True)
        known.touch()
    return good, output


def clang_tidy(files: list[str]) -> tuple[bool, str]:
    dialect = shlex.split(os.environ["C_DIALECT"])
    version = subprocess.run(["clang-tidy", "--version"], check=True, capture_output=True).stdout
    rules = Path(".clang-tidy").read_bytes() + version + " ".join(dialect).encode()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda f: tidied(dialect, rules, f), files))
    long_ago = time.time() - 30 * 24 * 3600
    for known in (CACHE / "clang-tidy").glob("*"):
        with contextlib.suppress(FileNotFoundError):  # another checkout's lint was faster
            if known.stat().st_mtime < long_ago:
                known.unlink()
    # A finding in a header comes from every file that includes it.
    findings: dict[str, None] = {}
    for good, output in results:
        if not good:
            findings.update(dict.fromkeys(re.split(r"\n(?=\S+:\d+:\d+: \w+: )", output.strip())))
    return all(good for good, _ in results), "\n".join(findings)


def license_lines(files: list[str]) -> tuple[bool, str]:
    bad = []
    for name in files:
        if Path(name).suffix in NEEDS_LICENSE or is_shell(name):
            with open(name, encoding="utf-8") as file:
                head = [file.readline() for _ in range(3)]
            if not any("SPDX-License-Identifier: GPL-2.0-only" in line for line in head):
                bad.append(f"{name}: no SPDX-License-Identifier in its first three lines\n")
    return not bad, "".join(bad)


def lines_of_c(files: list[str]) -> tuple[bool, str]:
    """What clang-format leaves as it is: comments, and assembler. A message stays in one piece, so
    that it is found by a search: its line may be longer."""
    bad = []
    for name in files:
        for number, line in enumerate(Path(name).read_text(encoding="utf-8").split("\n"), 1):
            width = len(line.expandtabs(8))
            if width > COLUMNS and '"' not in line:
                bad.append(f"{name}:{number}: {width} columns, {COLUMNS} at most\n")
            if line != line.rstrip():
                bad.append(f"{name}:{number}: blanks at the end of the line\n")
            if " \t" in line:
                bad.append(f"{name}:{number}: a blank before a tab\n")
    return not bad, "".join(bad)


def pinned(name: str) -> str:
    pins = Path("versions.env").read_text(encoding="utf-8")
    version = re.search(rf"^{name}=(\S+)$", pins, re.MULTILINE)
    assert version, f"versions.env pins no {name}"
    return version.group(1)


def pinned_go() -> list[str]:
    """Linters need, and say, what they do with the Go they were pinned with."""
    return ["env", f"GO_AT_LEAST={pinned('GO_VERSION')}", GO]


def gofmt() -> str:
    goroot = subprocess.run(
        [*pinned_go(), "env", "GOROOT"], check=True, capture_output=True, text=True
    ).stdout.strip()
    return f"{goroot}/bin/gofmt"


def lint() -> Tally:
    go_tool = pinned_go()
    staticcheck = f"honnef.co/go/tools/cmd/staticcheck@{pinned('STATICCHECK_VERSION')}"
    files = sources()
    python = python_sources(files)
    go = with_suffix(files, ".go")
    c = host_c(files)
    formatted, in_lines = with_suffix(files, ".c", ".h"), with_suffix(files, ".c", ".h", ".S")
    # Tests do on purpose what clang-tidy looks for.
    product = [f for f in c if not f.startswith("test/") and not f.endswith("_test.c")]
    linters: dict[str, tuple[list[str], Callable[[], tuple[bool, str]]]] = {
        "license lines": (files, lambda: license_lines(files)),
        "clang-format": (
            formatted,
            lambda: execute(["clang-format", "--dry-run", "-Werror", *formatted]),
        ),
        "lines of C": (in_lines, lambda: lines_of_c(in_lines)),
        "clang-tidy": (product, lambda: clang_tidy(product)),
        "gofmt": (go, lambda: silent([gofmt(), "-l", *go])),
        "go vet": (go, lambda: execute([*go_tool, "vet", "./..."])),
        "staticcheck": (go, lambda: execute([*go_tool, "run", staticcheck, "./..."])),
        "ruff": (python, lambda: execute(["ruff", "check", "--quiet", *python])),
        "ruff format": (python, lambda: silent(["ruff", "format", "--check", "--quiet", *python])),
        "mypy": (python, lambda: execute(["mypy", "--no-error-summary", *python])),
        "shellcheck": (
            files,
            lambda: execute(["shellcheck", "-x", *(f for f in files if is_shell(f))]),
        ),
    }
    tally = Tally()
    for name, (subject, run) in linters.items():
        if not subject:
            continue
        began = time.monotonic()
        good, output = run()
        outcome = "passed" if good else "failed"
        report(outcome, f"lint: {name}", began, output)
        tally.add(outcome)
    return tally


def format_sources() -> Tally:
    files = sources()
    for command, subject in (
        (["clang-format", "-i"], with_suffix(files, ".c", ".h")),
        ([gofmt(), "-w"], with_suffix(files, ".go")),
        (["ruff", "format", "--quiet"], python_sources(files)),
    ):
        if subject:
            subprocess.run([*command, *subject], check=True)
    return Tally()


# ---- tests -----------------------------------------------------------------------------------


def tap(output: str) -> Tally:
    """Counts the lines of a test that speaks TAP; an empty tally for any other."""
    tally = Tally()
    for line in output.splitlines():
        result = re.match(r"(not )?ok\b(.*)", line)
        if result:
            skip = re.search(r"#\s*skip", result.group(2), re.IGNORECASE)
            tally.add("failed" if result.group(1) else "skipped" if skip else "passed")
    return tally


def cut_short(output: str) -> bool:
    """Whether a test that speaks TAP ended before its end, where the plan stands: "1..N"."""
    said = tap(output)
    plan = re.search(r"^1\.\.(\d+)$", output, re.MULTILINE)
    return said != Tally() and (
        not plan or int(plan[1]) != said.passed + said.failed + said.skipped
    )


def unit() -> Tally:
    total = Tally()
    for program in shlex.split(os.environ.get("UNIT_TESTS", "")):
        began = time.monotonic()
        try:
            done = subprocess.run(
                [program],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=UNIT_TEST_SECONDS,
            )
            status, output = done.returncode, done.stdout
        except subprocess.TimeoutExpired as late:
            text = late.stdout or b""
            output = text.decode(errors="replace") if isinstance(text, bytes) else text
            output += f"\nnot done after {UNIT_TEST_SECONDS} s"
            status = -1
        tally = tap(output)
        if status == SKIPPED and not tally.failed:
            outcome = "skipped"
        elif status or tally.failed or cut_short(output):
            outcome = "failed"
        else:
            outcome = "passed"
        report(outcome, f"unit: {program}", began, output)
        if outcome == "passed" and tally.skipped:
            say("\n".join(re.findall(r"^ok\b.*#\s*skip.*", output, re.IGNORECASE | re.MULTILINE)))
        # A crash after its last "ok" is a failure, too.
        if tally == Tally() or (outcome == "failed" and not tally.failed):
            tally.add(outcome)
        total += tally
    return total


def go_tests() -> Tally:
    tally = Tally()
    if not any(f.endswith(".go") for f in sources()):
        return tally
    words = {"pass": "passed", "fail": "failed", "skip": "skipped"}
    output: dict[tuple[str, str], list[str]] = {}
    failed_in: set[str] = set()
    # Without cgo, as guise itself is built.
    process = subprocess.Popen(
        [GO, "test", "-json", "./..."],
        env={**os.environ, "CGO_ENABLED": "0"},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    for line in process.stdout:
        event = json.loads(line)
        package = event.get("Package", event.get("ImportPath", ""))
        key = (package, event.get("Test", ""))
        action = event["Action"]
        if action in ("output", "build-output"):
            output.setdefault(key, []).append(event["Output"])
        elif action in words and key[1]:
            tally.add(words[action])
            if action == "fail":
                failed_in.add(package)
            if action != "pass":
                word = "FAILED" if action == "fail" else "skipped"
                say(f"{word:8}go: {package} {key[1]}\n" + "".join(output.get(key, [])).rstrip())
        elif action in words:
            # A package that failed without a test: it does not build, or it crashed.
            if action == "fail" and package not in failed_in:
                tally.add("failed")
                text = "".join(t for (p, _), o in output.items() if package in p for t in o)
                say(f"FAILED  go: {package}\n{text.rstrip()}")
            elif action == "pass":
                say(f"ok      go: {package}")
    if process.wait() and not tally.failed:
        tally.add("failed")
        say("FAILED  go test")
    return tally


def pytest(*arguments: str) -> Tally:
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.xml"
        status = subprocess.run(
            [sys.executable, "-m", "pytest", f"--junitxml={results}", *arguments]
        ).returncode
        tally = Tally()
        if results.exists():
            for suite in xml.etree.ElementTree.parse(results).iter("testsuite"):
                tests, skipped = int(suite.get("tests", 0)), int(suite.get("skipped", 0))
                failed = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
                tally += Tally(tests - failed - skipped, failed, skipped)
    if status and not tally.failed:
        tally.add("failed")
        say(f"FAILED  pytest: exit status {status}")
    return tally


PARTS: dict[str, Callable[[], Tally]] = {
    "lint": lint,
    "unit": unit,
    "go": go_tests,
    "pytest": lambda: pytest("-m", "not slow and not soak"),
    "pytest-all": lambda: pytest("-m", "not soak"),
    "soak": lambda: pytest("-m", "soak"),
    "format": format_sources,
}


FLOORS = {
    "lint": Floor(10, 1.0),
    "unit": Floor(530, 0.9),
    "go": Floor(115, 0.9),
    "pytest": Floor(1000, 0.9),
    "pytest-all": Floor(1180, 0.9),
    "soak": Floor(14, 0.9),
}


def main(parts: list[str]) -> int:
    unknown = [p for p in parts if p not in PARTS]
    if unknown or not parts:
        print(f"check.py: {' '.join(unknown)}: one or more of: {' '.join(PARTS)}", file=sys.stderr)
        return 2
    os.chdir(ROOT)
    # The pinned tools lie beside the Python that runs this.
    os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    # What runs in the background of a script, or by nohup, begins with these ignored, and passes
    # that on to the programs whose answer to them is looked at.
    for number in signal.SIGHUP, signal.SIGINT, signal.SIGQUIT:
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    total = Tally()
    for part in parts:
        tally = PARTS[part]()
        if part in FLOORS and (lacking := FLOORS[part].lacking(tally)):
            tally.add("failed")
            say(f"FAILED  {part}: {lacking}")
        total += tally
    if parts == ["format"]:
        return 0
    say(str(total))
    return 1 if total.failed or not total.passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
