# SPDX-License-Identifier: GPL-2.0-only
"""intruder.py CARRIER WARDEN MEMBER SECRET: has a thread of the carrier make system calls, by
ptrace, and says what each gave: its name, and a number or an error. x86-64."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import signal
import socket
import struct
import sys
from pathlib import Path

SEIZE, INTERRUPT, DETACH, GETREGS, SETREGS, SINGLESTEP = 0x4206, 0x4207, 17, 12, 13, 9
WALL = 0x40000000
REGISTERS = [
    "r15",
    "r14",
    "r13",
    "r12",
    "rbp",
    "rbx",
    "r11",
    "r10",
    "r9",
    "r8",
    "rax",
    "rcx",
    "rdx",
    "rsi",
    "rdi",
    "orig_rax",
    "rip",
    "cs",
    "eflags",
    "rsp",
    "ss",
    "fs_base",
    "gs_base",
    "ds",
    "es",
    "fs",
    "gs",
]

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def ptrace(request: int, tid: int, data: object = None) -> None:
    if libc.ptrace(request, tid, None, data) < 0:
        raise OSError(ctypes.get_errno(), f"ptrace {request} of {tid}")


def wait(tid: int) -> None:
    os.waitpid(tid, WALL)


def syscall_instruction(pid: int) -> int:
    """An address of its libc where one lies."""
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        words = line.split()
        if "x" not in words[1] or "libc" not in words[-1]:
            continue
        first, end = (int(x, 16) for x in words[0].split("-"))
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
            memory.seek(first)
            at = memory.read(end - first).find(b"\x0f\x05")
        if at >= 0:
            return first + at
    raise SystemExit("no system call in its libc")


class Thread:
    """One of it, stopped; what it did goes on afterwards."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        ptrace(SEIZE, pid)
        ptrace(INTERRUPT, pid)
        wait(pid)
        self.saved = (ctypes.c_ulonglong * len(REGISTERS))()
        ptrace(GETREGS, pid, self.saved)
        self.at = syscall_instruction(pid)
        self.room = (self.saved[REGISTERS.index("rsp")] - 8192) & ~0xFFF

    def put(self, data: bytes, offset: int = 0) -> int:
        with open(f"/proc/{self.pid}/mem", "r+b", buffering=0) as memory:
            memory.seek(self.room + offset)
            memory.write(data)
        return self.room + offset

    def call(self, number: int, *arguments: int) -> int:
        registers = (ctypes.c_ulonglong * len(REGISTERS))(*self.saved)
        for name, value in zip(("rdi", "rsi", "rdx", "r10", "r8", "r9"), arguments, strict=False):
            registers[REGISTERS.index(name)] = value & (2**64 - 1)
        registers[REGISTERS.index("rax")] = number
        registers[REGISTERS.index("orig_rax")] = 2**64 - 1  # no call is restarted
        registers[REGISTERS.index("rip")] = self.at
        ptrace(SETREGS, self.pid, registers)
        ptrace(SINGLESTEP, self.pid)
        wait(self.pid)
        ptrace(GETREGS, self.pid, registers)
        return ctypes.c_longlong(registers[REGISTERS.index("rax")]).value

    def release(self) -> None:
        ptrace(SETREGS, self.pid, self.saved)
        ptrace(DETACH, self.pid)


def say(name: str, result: int) -> None:
    print(name, errno.errorcode[-result] if -4096 < result < 0 else result)


def main() -> None:
    carrier, warden, member = map(int, sys.argv[1:4])
    t = Thread(carrier)
    try:
        path = t.put(os.fsencode(sys.argv[4]) + b"\0")
        shell = t.put(b"/bin/sh\0", 512)
        room = t.put(bytes(256), 1024)
        vector = t.put(struct.pack("QQ", room, 64), 2048)
        at = -100
        say("getpid", t.call(39))
        say("open", t.call(2, path, 0))
        say("openat", t.call(257, at, path, 0))
        say("openat2", t.call(437, at, path, room, 24))
        say("creat", t.call(85, shell, 0o600))
        say("mkdir", t.call(83, shell, 0o700))
        say("mknod", t.call(133, shell, 0o600, 0))
        say("unlink", t.call(87, path))
        say("stat", t.call(4, path, room))
        say("execve", t.call(59, shell, 0, 0))
        say("execveat", t.call(322, at, shell, 0, 0, 0))
        say("fork", t.call(57))
        say("clone", t.call(56, signal.SIGCHLD, 0, 0, 0, 0))
        say("clone3", t.call(435, room, 64))
        say("ptrace", t.call(101, SEIZE, member, 0, 0))
        say("kill", t.call(62, member, signal.SIGKILL))
        say("kill-warden", t.call(62, warden, signal.SIGKILL))
        say("tgkill", t.call(234, member, member, signal.SIGKILL))
        say("read-memory", t.call(310, member, vector, 1, vector, 1, 0))
        say("write-memory", t.call(311, member, vector, 1, vector, 1, 0))
        say("limits", t.call(302, member, 7, 0, room))
        say("setuid", t.call(105, 0))
        say("setgroups", t.call(116, 0, 0))
        say("capset", t.call(126, room, room))
        say("prctl", t.call(157, 4, 1, 0, 0, 0))
        say("unshare", t.call(272, 0x10000000))
        say("setns", t.call(308, 0, 0))
        say("mount", t.call(165, shell, shell, shell, 0, 0))
        say("chroot", t.call(161, shell))
        say("unix", t.call(41, socket.AF_UNIX, socket.SOCK_STREAM, 0))
        say("pair", t.call(53, socket.AF_UNIX, socket.SOCK_DGRAM, 0, room))
        channel = socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC
        say("pair-tipc", t.call(53, socket.AF_TIPC, channel, 0, room))
        say("packet", t.call(41, socket.AF_PACKET, socket.SOCK_RAW, 0))
        say("netlink", t.call(41, socket.AF_NETLINK, socket.SOCK_RAW, 0))
        say("executable", t.call(9, 0, 4096, mmap.PROT_READ | mmap.PROT_EXEC, 0x22, -1, 0))
        say("made-executable", t.call(10, t.room, 4096, mmap.PROT_READ | mmap.PROT_EXEC))
        say("io_uring", t.call(425, 1, room))
        say("bpf", t.call(321, 0, room, 64))
        say("perf", t.call(298, room, 0, -1, -1, 0))
        say("userfault", t.call(323, 0))
        say("pidfd_getfd", t.call(438, 0, 0, 0))
        say("pidfd_signal", t.call(424, 0, signal.SIGKILL, 0, 0))
        say("keys", t.call(250, 0, 0, 0))
        say("reboot", t.call(169, 0, 0, 0, 0))
    finally:
        t.release()


main()
