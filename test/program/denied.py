#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""denied.py RULE... -- COMMAND...: runs a program where the kernel refuses calls, as an older one
or a container's filter does. A rule is NUMBER=ERRNO, or NUMBER:ARGUMENT:VALUE=ERRNO for a call with
that value in that argument (from 0)."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
RET_ALLOW, RET_ERRNO = 0x7FFF0000, 0x00050000
LOAD_WORD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
NUMBER, FIRST_ARGUMENT = 0, 16  # in struct seccomp_data

Instruction = tuple[int, int, int, int]


def instructions(rule: str) -> list[Instruction]:
    what, name = rule.split("=")
    number, *condition = (int(word) for word in what.split(":"))
    refuse = (RETURN, 0, 0, RET_ERRNO | getattr(errno, name))
    if not condition:
        return [(LOAD_WORD, 0, 0, NUMBER), (JUMP_IF_EQUAL, 0, 1, number), refuse]
    argument, value = condition
    return [
        (LOAD_WORD, 0, 0, NUMBER),
        (JUMP_IF_EQUAL, 0, 3, number),
        (LOAD_WORD, 0, 0, FIRST_ARGUMENT + 8 * argument),
        (JUMP_IF_EQUAL, 0, 1, value),
        refuse,
    ]


def main() -> None:
    end = sys.argv.index("--")
    code = [one for rule in sys.argv[1:end] for one in instructions(rule)]
    code.append((RETURN, 0, 0, RET_ALLOW))
    libc = ctypes.CDLL(None, use_errno=True)
    memory = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in code))
    program = struct.pack("HxxxxxxP", len(code), ctypes.addressof(memory))
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0):
        sys.exit(os.strerror(ctypes.get_errno()))
    os.execvp(sys.argv[end + 1], sys.argv[end + 1 :])


if __name__ == "__main__":
    main()
