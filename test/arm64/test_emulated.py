# SPDX-License-Identifier: GPL-2.0-only
"""guise for arm64, cross-built, below qemu-user: the kernel boots, Debian's own programs for arm64
run on it, with pages of 4 and 16 KiB, and where addresses have no more than 39 bits.

What qemu cannot show is the order in which another processor sees stores: this one's order is
stronger than arm64's."""

from __future__ import annotations

import hashlib
import os
import random
import re
import subprocess
from pathlib import Path

import pytest
from topology.cables import both_carry
from topology.emulated import ARM64, SLOW, EmulatedStack, Emulator, debian, packages
from topology.process import run
from topology.side import BUILD, GUISE, program, wait_until_says

KINDS = {"4k": [], "16k": ["-p", "16384"], "39bit": ["-R", "0x8000000000"]}


@pytest.fixture(scope="module")
def root() -> Path:
    return debian(*packages("PACKAGES_ARM64"))


@pytest.fixture(params=KINDS)
def emulator(root: Path, request: pytest.FixtureRequest) -> Emulator:
    return Emulator(root, KINDS[request.param])


def test_two_stacks_boot_and_tcp_runs_between_them(emulator: Emulator) -> None:
    done = run(emulator.words(ARM64 / "test/region/stacks", "pair"), seconds=SLOW).expect()
    assert done.text.splitlines() == ["right 1000000", "back 1000000", "sysctl westwood vegas"]


def test_a_multipath_connection_uses_two_cables(emulator: Emulator) -> None:
    both_carry(run(emulator.words(ARM64 / "test/multipath/cables"), seconds=SLOW).expect())


def test_curl_up_and_down_over_lo(emulator: Emulator, tmp_path: Path) -> None:
    """Both ends are preloaded: their sockets are the stack's, and the checksums are equal."""
    size, content = 2 << 20, tmp_path / "content"
    content.write_bytes(random.Random(2).randbytes(size))
    url = "http://127.0.0.1:8080/"
    curl: list[str | Path] = [
        emulator.root / "usr/bin/curl",
        "-sS",
        "-o",
        tmp_path / "got",
        "--noproxy",
        "*",
    ]
    python = emulator.root / "usr/bin/python3"
    with EmulatedStack(emulator) as stack:
        server = stack.start(python, program("checksums.py"), "127.0.0.1", "8080", str(size))
        with server:
            wait_until_says(server, "listening")
            stack.run(*curl, "-T", content, url).expect()
            sent = hashlib.sha256(content.read_bytes()).hexdigest()
            assert (tmp_path / "got").read_text() == sent
            stack.run(*curl, url).expect()
            assert (tmp_path / "got").read_bytes() == random.Random(1).randbytes(size)
        counted = stack.end()
    assert not counted["lost"]
    assert counted["escaped"] == 0
    assert counted["connections"] == 4  # two, each counted at both ends
    assert counted["members"] == 3


def test_the_command_line_runs(root: Path) -> None:
    """It starts no program here: that would need the host's kernel to know qemu."""
    guise = Emulator(root).words(ARM64 / "guise", "run", "--print-config", "--link", "none")
    host = run([GUISE, "run", "--print-config", "--link", "none", "--", "curl"]).expect()
    emulated = run([*guise, "--", root / "usr/bin/curl"], seconds=SLOW).expect()
    assert emulated.text == host.text


def test_a_bad_pointer_fails_as_on_this_host(emulator: Emulator) -> None:
    """The guarded copies of arm64: the same error, and the same bytes done before it."""
    host = run([BUILD / "test/port/fault", "host"]).expect()
    stack = run(emulator.words(ARM64 / "test/port/fault", "stack"), seconds=SLOW).expect()
    assert stack.text == host.text


def readelf(*arguments: str | Path) -> str:
    return subprocess.run(
        ["readelf", "-W", *arguments], check=True, capture_output=True, text=True
    ).stdout


IMAGES = ["guise-kernel", "libguise.so", "libguise-preload.so", "guise-holder", "guise"]


@pytest.mark.parametrize("name", IMAGES)
def test_segments_fit_the_largest_pages_and_none_is_written_and_executed(name: str) -> None:
    assert "AArch64" in readelf("-h", ARM64 / name)
    loads = re.findall(
        r"^  LOAD +(0x\w+) (0x\w+) 0x\w+ 0x\w+ 0x\w+ (...) (0x\w+)$",
        readelf("-l", ARM64 / name),
        re.MULTILINE,
    )
    assert loads
    for offset, address, flags, align in loads:
        assert not ("W" in flags and "E" in flags)
        assert int(align, 16) >= 1 << 16
        assert (int(offset, 16) - int(address, 16)) % (1 << 16) == 0


def test_the_kernels_code_keeps_clear_of_what_is_not_its_own() -> None:
    """Its contexts move between threads and processes: no vector or floating point register (they
    would have to be saved), no thread pointer, no key of one process (pointer authentication)
    and not x18, which some platforms keep for themselves."""
    code = subprocess.run(
        [
            "aarch64-linux-gnu-objdump",
            "-d",
            "--no-show-raw-insn",
            os.fspath(ARM64 / "guise-kernel"),
        ],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    lines = [line for line in code.splitlines() if re.match(r" +[0-9a-f]+:\t", line)]
    assert len(lines) > 500_000
    foreign = re.compile(
        r"\b(?:[vqdsh](?:[12]?[0-9]|3[01])|[wx]18)\b(?!>)|\btpidr|\t(?:paci|auti|bti|reta)", re.I
    )
    assert not [line for line in lines if foreign.search(line.split("//")[0].split("<")[0])]
