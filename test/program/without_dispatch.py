#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Runs its arguments where the kernel has no syscall user dispatch, as before Linux 5.11."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
PR_SET_SYSCALL_USER_DISPATCH = 59
SYS_PRCTL = 157  # x86-64
RET_ALLOW, RET_ERRNO = 0x7FFF0000, 0x00050000
LOAD_WORD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
NUMBER, FIRST_ARGUMENT = 0, 16  # in struct seccomp_data

FILTER = [
    (LOAD_WORD, 0, 0, NUMBER),
    (JUMP_IF_EQUAL, 0, 3, SYS_PRCTL),
    (LOAD_WORD, 0, 0, FIRST_ARGUMENT),
    (JUMP_IF_EQUAL, 0, 1, PR_SET_SYSCALL_USER_DISPATCH),
    (RETURN, 0, 0, RET_ERRNO | errno.EINVAL),
    (RETURN, 0, 0, RET_ALLOW),
]


def main() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    code = b"".join(struct.pack("HBBI", *instruction) for instruction in FILTER)
    memory = ctypes.create_string_buffer(code)
    program = struct.pack("HxxxxxxP", len(FILTER), ctypes.addressof(memory))
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0):
        sys.exit(os.strerror(ctypes.get_errno()))
    os.execvp(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
