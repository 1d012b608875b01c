# SPDX-License-Identifier: GPL-2.0-only
"""Whole programs built with the address and undefined-behaviour sanitizers: the preload library,
the holder with its relays and libguise pass the suites, and the sanitizers have nothing to report.

Every process writes what AddressSanitizer reports into files of one folder. GCC's other runtime,
for undefined behaviour, only ever uses standard error; it ends the program, which the suite sees.
A leak counts when guise's own code is in the stack of the allocation: other programs leak as they
like. The runtime of the sanitizer is loaded behind the preload library, so that what programs
allocate is watched, and the bad pointers that they pass on purpose come to guise first.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from topology.side import BUILD

ROOT = Path(__file__).resolve().parents[2]
TREE = BUILD / "asan"
SANITIZE = "address,undefined"
pytestmark = [pytest.mark.slow, pytest.mark.timeout(3000)]


@dataclass
class Suite:
    """Where its tests are, how many of them pass at least, and which are not for this build."""

    where: str
    least: int  # some nine tenths of what there is
    without: str = ""
    leaks: bool = True


TWINS = [
    "dns",
    "mosquitto",
    "mptcp",
    "nc",
    "node",
    "openssl",
    "ping",
    "python",
    "redis",
    "socat",
    "tools",
]
SUITES = {
    # One closes all descriptors. A thread that may be cancelled anywhere may be so in the runtime.
    # One looks at a handler that is the runtime's. Locks of the runtime, which it takes to make a
    # thread, are not free in each child of a process with several.
    "preload": Suite(
        "test/preload",
        140,
        "system_forms or cancel_asynchronous or raw_vfork or child_of_asynchronous_reads",
    ),
    # Two give up their user, and with that the right to look for leaks. What a handler that jumps
    # out of splice() leaves is not freed, and a process that may look for its own leaks is not
    # traced, so that a stop does not end its waits (docs/limitations.md).
    "call": Suite(
        "test/call",
        130,
        "no_numbers or cancel_while_waiting or setgid_reaches or port_of_a_user"
        " or handler_jumps_out or timed_waits_end_by_a_stop",
    ),
    # One has a curl.
    "names": Suite("test/names", 33, "can_be_switched_off"),
    # Programs that join by libguise stay traced, and some may not trace: neither can look for
    # leaks. One takes all addresses for itself, of which the sanitizer has some.
    "region": Suite("test/region", 25, "address_that_is_taken or ticket_that_is_none", leaks=False),
    "fault": Suite("test/fault/test_endings.py", 19),
    # Those of programs that neither hang in setlocale(), nor give up the system calls that the
    # sanitizer makes, nor are too slow with it.
    "twin": Suite(" ".join(f"test/twin/test_{name}.py" for name in TWINS), 57),
}
# Debian's curl hangs in setlocale() as soon as the sanitizer's runtime is preloaded, without guise
# as well. That runtime cannot report at the end of a program that has no descriptor left (limits,
# no_numbers). GCC's takes frames that a cancelled thread has left behind for live ones, when a
# cleanup of that thread goes on to the next (in its own sigaltstack()). It wants to be the first
# library, before the one that notes the calls of a twin, and guise's calls of libc's functions pass
# by any other library (preload/originals.c).
NOT_HERE = "curl or limits or has_a_twin or stands_before_libc"
# A descriptor that is none costs libc's own vdprintf() a buffer.
LIBCS = "__vdprintf_internal"
OURS = re.compile(r"\b(?:preload|lib|holder|relay)/[\w/]+\.[ch]:\d+")


@pytest.fixture(scope="session")
def tree() -> Path:
    """build/asan, with the kernel of build/."""
    sources = [source for source in ROOT.glob("test/*/*.c") if source.parent.name != "isa"]
    programs = [str(TREE / source.relative_to(ROOT).with_suffix("")) for source in sources]
    programs += [str(TREE / "test" / name) for name in ("redis-server", "unpacked")]
    ours = {"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "GUISE_BUILD"}
    done = subprocess.run(
        ["make", "-j2", f"BUILD={TREE}", f"SANITIZE={SANITIZE}", "all", *programs],
        cwd=ROOT,
        env={key: value for key, value in os.environ.items() if key not in ours},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return TREE


def environment(reports: Path, leaks: bool = True) -> dict[str, str]:
    """In which reports become files, and an error ends the program with SIGABRT."""
    reports.mkdir()
    reports.chmod(0o1777)
    how = f"abort_on_error=1:exitcode=0:log_exe_name=1:log_path={reports}/address"
    return {
        **os.environ,
        "GUISE_BUILD": str(TREE),
        "ASAN_OPTIONS": f"{how}:detect_leaks={leaks:d}:fast_unwind_on_malloc=0",
        "UBSAN_OPTIONS": "abort_on_error=1:print_stacktrace=1",
    }


def complaints(reports: Path) -> list[str]:
    """What the sanitizers found wrong with guise."""
    found = []
    for file in sorted(reports.iterdir()):
        text = file.read_text("utf-8", errors="replace")
        if "ERROR: AddressSanitizer" in text:
            found.append(f"{file.name}:\n{text}")
        for leak in re.findall(r"^Direct leak of .*(?:\n +#.*)+", text, re.MULTILINE):
            if OURS.search(leak) and LIBCS not in leak:
                found.append(f"{file.name}:\n{leak}")
    return found


@pytest.mark.parametrize("suite", SUITES)
def test_nothing_is_reported_while_a_suite_passes(tree: Path, tmp_path: Path, suite: str) -> None:
    reports = tmp_path / "reports"
    without = " or ".join(filter(None, [NOT_HERE, SUITES[suite].without]))
    chosen = ["-m", "not slow and not soak", "-k", f"not ({without})"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *chosen, *SUITES[suite].where.split()],
        cwd=ROOT,
        env=environment(reports, SUITES[suite].leaks),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    found = complaints(reports)
    assert not found, "\n".join(found)
    assert done.returncode == 0, done.stdout[-8000:]
    passed = re.search(r"\b(\d+) passed", done.stdout)
    assert passed and int(passed[1]) >= SUITES[suite].least, done.stdout


# ---- that it can fail ----------------------------------------------------------------------------


def run_wrong(tmp_path: Path, tree: Path, mistake: str) -> tuple[int, list[str]]:
    """A program whose own mistake shows in guise's code, without a sanitizer of its own; its
    status, and what is reported."""
    reports = tmp_path / "reports"
    done = subprocess.run(
        [tree / "guise", "run", "--link", "none", "--", tree / "test/build/wrong", mistake],
        env=environment(reports),
        capture_output=True,
        text=True,
    )
    return done.returncode, complaints(reports) + [text for text in [done.stderr] if text]


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        (
            "overflow",
            r"ERROR: AddressSanitizer: heap-buffer-overflow(?:.*\n)+?.* preload/wait/poll.c:",
        ),
        ("misaligned", r"preload/wait/poll.c:\d+:\d+: runtime error: .* misaligned address"),
    ],
)
def test_an_error_is_found(tree: Path, tmp_path: Path, mistake: str, words: str) -> None:
    status, found = run_wrong(tmp_path, tree, mistake)
    assert status == -signal.SIGABRT
    assert re.search(words, "\n".join(found))


def test_a_leak_is_found(tree: Path, tmp_path: Path) -> None:
    status, found = run_wrong(tmp_path, tree, "leak")
    assert status == 0
    assert len(found) == 1 and "preload/names/getaddrinfo.c:" in found[0]


def test_no_mistake_is_no_report(tree: Path, tmp_path: Path) -> None:
    assert run_wrong(tmp_path, tree, "none") == (0, [])
