# SPDX-License-Identifier: GPL-2.0-only
"""What the port has in assembler, taken out of the kernel and tried against plain C: all sizes and
positions, overlaps, faults at every byte, and the switch between two stacks."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest
from topology.emulated import PROJECT, SLOW, Emulator, debian, packages
from topology.process import run

HERE = Path(__file__).resolve().parent
TOOLS = {"x86_64": "", "arm64": "aarch64-linux-gnu-"}
SELF = {"x86_64": "x86_64", "aarch64": "arm64"}[platform.machine()]


@pytest.mark.parametrize("isa", TOOLS)
def test_assembler_does_what_c_does(isa: str, tmp_path: Path) -> None:
    if isa == "x86_64" and isa != SELF:
        pytest.skip("x86-64's assembler needs a compiler for x86-64")
    source = PROJECT / f"linux/arch/guise/kernel/isa_{isa}.S"
    tools = "" if isa == SELF else TOOLS[isa]
    made, program = tmp_path / "isa.o", tmp_path / "exercise"
    run([f"{tools}gcc", "-I", HERE, "-c", "-o", made, source]).expect()
    run([f"{tools}objcopy", "--prefix-symbols=isa_", made]).expect()
    warnings = ["-Wall", "-Wextra", "-Werror", "-fno-builtin"]
    run(
        [
            f"{tools}gcc",
            "-std=gnu11",
            "-D_GNU_SOURCE=",
            "-O2",
            *warnings,
            "-o",
            program,
            HERE / "exercise.c",
            made,
        ]
    ).expect()
    words: list[str] = [str(program)]
    if isa != SELF:
        words = Emulator(debian(*packages("PACKAGES_ARM64"))).words(program)
    done = run(words, seconds=SLOW).expect()
    assert done.text.splitlines() == [
        "memcpy memset",
        "memmove",
        "copy zero",
        "switch",
        "enter leave",
        "host call",
    ]
