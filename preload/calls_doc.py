#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Writes docs/calls.md from the list of calls, preload/calls.h, and from what the twin tests
hold to be true: test/call/errors.toml and test/call/differences.toml.

preload/calls_doc.py          writes it
preload/calls_doc.py --check  fails if it is not what would be written

The C preprocessor reads the list; Call and Class are what it holds.
"""

from __future__ import annotations

import ast
import os
import re
import shlex
import subprocess
import sys
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
TWINS = HERE.parent / "test" / "call"
DOCUMENT = HERE.parent / "docs" / "calls.md"

INTRODUCTION = """\
# The calls that the preload library answers

<!-- Written by preload/calls_doc.py from preload/calls.h, test/call/errors.toml and
test/call/differences.toml: change those, not this. -->

`libguise-preload.so` stands before these calls of libc. What concerns a descriptor of the host
only goes to libc's own function.

Each call has a twin: a case that runs on the host and on guise and must print the same on both. The
fourth column names it, a case of test/preload. The cases of test/call make each call in every state
and with every argument; the last column has the errors that the manual names and these show, on
both. What the manual names and they do not show stands in test/call/errors.toml, with the reason.
What differs is [at the end](#what-differs).

System calls that a program makes by number go the same ways, through libc's `syscall()` or, where
the host's kernel can tell (x86-64, Linux 5.11), by an instruction of its own. The second column has
the names of the numbers; calls without one are made of others in libc. Calls that libc makes inside
itself are not among them.
"""


@dataclass
class Call:
    name: str
    test: str
    note: str
    aliases: list[str] = field(default_factory=list)
    numbers: list[str] = field(default_factory=list)


@dataclass
class Class:
    name: str
    meaning: str
    calls: list[Call] = field(default_factory=list)


def read_list() -> list[Class]:
    """The list, in its order."""
    program = "\n".join(
        [
            "#define CLASS(class, meaning) @CLASS(#class, meaning)",
            "#define CALL(name, class, test, note) @CALL(#name, #class, #test, note)",
            "#define ALIAS(name, call) @ALIAS(#name, #call)",
            "#define NUMBER(number, call, arguments) @NUMBER(#number, #call)",
            "#define DECODED(number, call) @DECODED(#number, #call)",
            "#define EVERY_NUMBER",
            '#include "preload/calls.h"',
        ]
    )
    text = subprocess.run(
        [*shlex.split(os.environ.get("CC", "cc")), "-E", "-P", "-x", "c", f"-I{HERE.parent}", "-"],
        input=program,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    classes: dict[str, Class] = {}
    calls: dict[str, Call] = {}
    for word, arguments in re.findall(r"@(\w+)(\(.*?\))(?=\s*(?:@|$))", text, re.DOTALL):
        values = ast.literal_eval(arguments)
        if word == "CLASS":
            classes[values[0]] = Class(*values)
        elif word == "CALL":
            calls[values[0]] = Call(values[0], values[2], values[3])
            classes[values[1]].calls.append(calls[values[0]])
        elif word == "ALIAS":
            calls[values[1]].aliases.append(values[0])
        else:
            calls[values[1]].numbers.append(values[0])
    return list(classes.values())


def shown_errors() -> dict[str, list[str]]:
    """Of each call: the manual's, without those that no twin shows."""
    content = tomllib.loads((TWINS / "errors.toml").read_text("utf-8"))
    shown = {call: names.split() for call, names in content["manual"].items()}
    for entry in content["not_shown"]:
        for call in entry.get("calls", " ".join(shown)).split():
            shown[call] = [name for name in shown[call] if name not in entry["errors"].split()]
    return shown


def differences() -> str:
    """The section of what differs."""
    content = tomllib.loads((TWINS / "differences.toml").read_text("utf-8"))
    parts = ["\n## What differs\n\n| what | why it stays |\n|---|---|\n"]
    for entry in content["difference"]:
        what = entry["what"][0].upper() + entry["what"][1:]
        parts.append(f"| {what} | {entry['reason']} |\n")
    return "".join(parts)


def document(classes: list[Class]) -> str:
    parts = [INTRODUCTION]
    errors = shown_errors()
    for group in classes:
        parts.append(f"\n## {group.name}\n\n{group.meaning}\n\n")
        parts.append("| call | by number | beyond that | test | errors, as on the host |\n")
        parts.append("|---|---|---|---|---|\n")
        for call in group.calls:
            names = ", ".join(f"`{name}`" for name in [call.name, *call.aliases])
            shown = " ".join(errors.get(call.name, []))
            numbers = ", ".join(f"`{number}`" for number in call.numbers)
            parts.append(f"| {names} | {numbers} | {call.note} | {call.test} | {shown} |\n")
    parts.append(differences())
    return "".join(parts)


def main() -> int:
    text = document(read_list())
    if sys.argv[1:] == ["--check"]:
        if DOCUMENT.is_file() and DOCUMENT.read_text("utf-8") == text:
            return 0
        print("docs/calls.md is not what preload/calls_doc.py writes: run it", file=sys.stderr)
        return 1
    if sys.argv[1:]:
        print(__doc__, file=sys.stderr)
        return 2
    DOCUMENT.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
