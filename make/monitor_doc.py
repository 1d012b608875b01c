#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Writes the tables of docs/monitor.md from include/guise/monitor.h, which has the kinds of events
and the fields of a record. --check: says whether they are the same, and changes nothing."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADER = ROOT / "include/guise/monitor.h"
DOCUMENT = ROOT / "docs/monitor.md"
STRING = r'"((?:[^"\\]|\\.)*)"'


def define(name: str) -> str:
    """What stands behind a macro's name."""
    found = re.search(
        rf"^#define {name}\([^)]*\)(.*?[^\\])\n", HEADER.read_text("utf-8"), re.M | re.S
    )
    assert found, f"{HEADER} has no {name}"
    return found[1].replace("\\\n", " ")


def number(name: str) -> str:
    found = re.search(rf"^#define {name} +(\d+)$", HEADER.read_text("utf-8"), re.M)
    return found[1] if found else name


def entries(macro: str) -> list[list[str]]:
    """The arguments of each of its entries; strings are put together."""
    found = re.finditer(rf"\b[XA]\(((?:[^()\"]|{STRING})*)\)", define(macro))
    return [[text(word) for word in split(entry[1])] for entry in found]


def split(entry: str) -> list[str]:
    """At the commas that are in no string."""
    return [m[0] for m in re.finditer(rf"(?:{STRING}|[^,\"])+", entry)]


def text(word: str) -> str:
    strings = re.findall(STRING, word)
    return "".join(strings) if strings or '"' in word else word.strip()


def kinds() -> list[str]:
    rows = [f"| `{name}` | {says} |" for _, name, says in entries("GUISE_EVENTS")]
    return ["| kind | when, and what these fields are |", "|---|---|", *rows]


def fields() -> list[str]:
    rows = ["| field | type | unit | source |", "|---|---|---|---|"]
    for kind, name, *size, unit, source in entries("GUISE_RECORD_FIELDS"):
        array = f"[{number(size[0])}]" if size else ""
        rows.append(f"| `{name}` | {kind}{array} | {unit} | {source} |")
    return rows


def replaced(document: str, table: list[str]) -> str:
    """With this table in place of that which has the same first line."""
    lines = document.splitlines()
    start = lines.index(table[0])
    end = start
    while end < len(lines) and lines[end].startswith("|"):
        end += 1
    return "\n".join([*lines[:start], *table, *lines[end:]]) + "\n"


def main() -> int:
    before = DOCUMENT.read_text("utf-8")
    after = replaced(replaced(before, kinds()), fields())
    if "--check" in sys.argv[1:]:
        if before != after:
            print(f"{DOCUMENT} is not what {HEADER} says; run make/monitor_doc.py", file=sys.stderr)
        return int(before != after)
    DOCUMENT.write_text(after, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
