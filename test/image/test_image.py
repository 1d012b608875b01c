# SPDX-License-Identifier: GPL-2.0-only
"""What is built may be shared between processes and loaded into any program: its pages are
either written or executed, its code is never patched, and it brings only its own names. The C of
the host side is compiled and linked with what makes bugs harder to use."""

import re
import subprocess
from pathlib import Path

import pytest
from topology.side import BUILD

ROOT = Path(__file__).resolve().parents[2]
KERNEL = BUILD / "guise-kernel"
LIBRARY = BUILD / "libguise.so"
PRELOAD = BUILD / "libguise-preload.so"
HOLDER = BUILD / "guise-holder"

CAPTURE = BUILD / "guise-capture"
BENCH = BUILD / "guise-bench"

every_program = pytest.mark.parametrize(
    "image", [LIBRARY, PRELOAD, HOLDER, CAPTURE, BENCH], ids=lambda path: path.name
)
every_image = pytest.mark.parametrize(
    "image", [KERNEL, LIBRARY, PRELOAD, HOLDER], ids=lambda path: path.name
)


def readelf(*arguments: str | Path) -> str:
    return subprocess.run(
        ["readelf", "-W", *arguments], check=True, capture_output=True, text=True
    ).stdout


def segments(image: Path) -> list[tuple[str, int, int, str]]:
    """Type, address, size in memory and flags ("R E") of each program header."""
    pattern = re.compile(
        r"^  ([A-Z_]+) +0x\w+ (0x\w+) 0x\w+ 0x\w+ (0x\w+) ([R ][W ][E ]) ", re.MULTILINE
    )
    found = pattern.findall(readelf("-l", image))
    assert found, f"{image} has no program headers"
    return [(kind, int(at, 16), int(size, 16), flags) for kind, at, size, flags in found]


def exported(image: Path) -> set[str]:
    listing = subprocess.run(
        ["nm", "-D", "--defined-only", image], check=True, capture_output=True, text=True
    ).stdout
    return {line.split()[-1].split("@")[0] for line in listing.splitlines()}


def needed(image: Path) -> set[str]:
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", readelf("-d", image)))


@every_image
def test_no_segment_is_both_writable_and_executable(image: Path) -> None:
    both = [s for s in segments(image) if "W" in s[3] and "E" in s[3]]
    assert not both


@every_image
def test_no_relocation_changes_text(image: Path) -> None:
    assert "TEXTREL" not in readelf("-d", image)
    text = [(at, at + size) for kind, at, size, flags in segments(image) if "E" in flags]
    offsets = [int(o, 16) for o in re.findall(r"^([0-9a-f]{16})  ", readelf("-r", image), re.M)]
    assert offsets, "a position-independent image has relocations"
    patched = [hex(o) for o in offsets if any(low <= o < high for low, high in text)]
    assert not patched


def test_kernel_exports_nothing_and_needs_nothing() -> None:
    assert not exported(KERNEL)
    assert not needed(KERNEL)
    kinds = {kind for kind, *_ in segments(KERNEL)}
    assert not kinds & {"INTERP", "TLS"}, "contexts move between threads that have other TLS"


def test_kernel_names_its_release() -> None:
    assert re.search(rb"6\.(12|1)\.\d+-guise\b", KERNEL.read_bytes())


def test_library_exports_its_interface_and_nothing_else() -> None:
    header = (ROOT / "include/guise/guise.h").read_text(encoding="utf-8")
    declared = set(re.findall(r"^GUISE_API [^(;]*?\*?(guise_\w+)\(", header, re.MULTILINE))
    assert declared
    assert exported(LIBRARY) == declared


def test_preload_exports_its_list_of_calls_and_nothing_else() -> None:
    listed = re.findall(r"^ *(\w+);$", (BUILD / "preload.map").read_text(encoding="utf-8"), re.M)
    assert exported(PRELOAD) == set(listed)


@pytest.mark.parametrize("image", [LIBRARY, PRELOAD], ids=lambda path: path.name)
def test_libraries_need_libc_only(image: Path) -> None:
    assert {re.sub(r"\.so.*", "", name) for name in needed(image)} <= {"libc", "ld-linux-x86-64"}


def imported(image: Path) -> set[str]:
    listing = subprocess.run(
        ["nm", "-D", "--undefined-only", image], check=True, capture_output=True, text=True
    ).stdout
    return {line.split()[-1].split("@")[0] for line in listing.splitlines()}


def code_of(image: Path, *symbols: str) -> str:
    """Instructions; of these functions, or all."""
    words = [f"--disassemble={symbol}" for symbol in symbols] or ["-d"]
    return "".join(
        subprocess.run(
            ["objdump", "--no-show-raw-insn", word, image],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for word in words
    )


@every_program
def test_a_program_is_loaded_anywhere_and_its_tables_are_read_only_then(image: Path) -> None:
    assert re.search(r"Type: +DYN ", readelf("-h", image))
    kinds = {kind: flags for kind, _, _, flags in segments(image)}
    assert "E" not in kinds["GNU_STACK"]
    assert "GNU_RELRO" in kinds, "what the loader relocates is read-only then"
    assert re.search(r"FLAGS\) +BIND_NOW", readelf("-d", image)), "the table of functions, too"


@every_program
def test_a_program_notices_that_a_stack_was_overrun(image: Path) -> None:
    # Of the preload library a hook, because c-ares, which it has in it, has such functions anyway.
    assert "__stack_chk_fail" in code_of(image, *(["epoll_wait"] if image == PRELOAD else []))
    # A frame of several pages is touched page by page (-fstack-clash-protection).
    assert re.search(r"\sorq +\$0x0,(0x[0-9a-f]+)?\(%rsp\)", code_of(image))


FORTIFIED = {"__memcpy_chk", "__snprintf_chk", "__strcpy_chk"}


@pytest.mark.parametrize("image", [LIBRARY, HOLDER, CAPTURE, BENCH], ids=lambda path: path.name)
def test_copies_and_texts_are_checked_against_the_size_of_their_buffers(image: Path) -> None:
    """Not the preload library: it defines the functions that would be put in place."""
    assert imported(image) >= FORTIFIED


@every_program
def test_functions_begin_with_a_mark_that_jumps_must_hit(image: Path) -> None:
    """The processor is asked to look (IBT) by no object: the image has no such marks. None says
    that it bears a shadow stack either: a call of the stack switches to another stack."""
    names = {LIBRARY: "guise_create", PRELOAD: "recvfrom"}
    code = code_of(image, names.get(image, "main"))
    assert re.search(r">:\n +[0-9a-f]+:\s+endbr64", code), code[:500]
    assert not re.search(r"SHSTK|IBT", readelf("-n", image))
