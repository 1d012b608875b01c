# SPDX-License-Identifier: GPL-2.0-only
"""stopper.py PID: stops all threads of a process except the first, as a debugger does. Says
"stopped", and then waits until it is killed."""

from __future__ import annotations

import ctypes
import os
import sys
import time

PTRACE_SEIZE, PTRACE_INTERRUPT = 0x4206, 0x4207
WALL = 0x40000000

libc = ctypes.CDLL(None, use_errno=True)


def ptrace(request: int, tid: int) -> None:
    none = ctypes.c_void_p()
    if libc.ptrace(ctypes.c_long(request), ctypes.c_long(tid), none, none):
        raise OSError(ctypes.get_errno(), f"ptrace of {tid}")


process = int(sys.argv[1])
threads = [int(name) for name in os.listdir(f"/proc/{process}/task") if int(name) != process]
for thread in threads:
    ptrace(PTRACE_SEIZE, thread)
    ptrace(PTRACE_INTERRUPT, thread)
    os.waitpid(thread, WALL)
print("stopped", len(threads), flush=True)
time.sleep(600)
