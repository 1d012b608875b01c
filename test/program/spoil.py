# SPDX-License-Identifier: GPL-2.0-only
"""spoil.py unmap | header | memory: a program that spoils the memory of the stack it is on, and
then calls it."""

import ctypes
import socket
import sys


def regions():
    """Where its shared parts lie: the header with the slots, and the kernel's memory."""
    with open("/proc/self/maps", encoding="ascii") as maps:
        found = [line.split() for line in maps if "/memfd:guise" in line]
    parts = [([int(end, 16) for end in line[0].split("-")], int(line[2], 16)) for line in found]
    memory, offset = max(parts, key=lambda part: part[1])
    # The header is mapped elsewhere, too.
    header = next(where for where, at in parts if memory[0] - where[0] == offset - at)
    return header, memory


server = socket.create_server(("127.0.0.1", 0))
header, memory = regions()
print("ready", flush=True)
sys.stdin.readline()
libc = ctypes.CDLL(None)
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
if sys.argv[1] == "unmap":
    libc.munmap(header[0], memory[1] - header[0])
else:
    start, end = header if sys.argv[1] == "header" else memory
    ctypes.memset(start, 0xFF, min(end - start, 1 << 20))
try:
    socket.create_connection(server.getsockname(), timeout=30)
    print("went on")
except OSError as error:
    print(error.strerror)
