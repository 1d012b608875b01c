# SPDX-License-Identifier: GPL-2.0-only
"""strangers.py: whether this host allows these to trace a process that has named no tracer: another
child of its parent, and its parent."""

import ctypes
import os

PTRACE_SEIZE = 0x4206

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long] * 4
hear, say = os.pipe()
child = os.fork()
if not child:
    os.close(say)
    os.read(hear, 1)
    os._exit(0)


def by(tracer: str) -> None:
    refused = libc.ptrace(PTRACE_SEIZE, child, 0, 0)
    print(tracer, os.strerror(ctypes.get_errno()) if refused else "may", flush=True)


other = os.fork()
if not other:
    by("another child:")
    os._exit(0)
os.waitpid(other, 0)
by("its parent:")
