# SPDX-License-Identifier: GPL-2.0-only
"""Calls libc by a handle of it, as Python programs do: by ctypes, in three ways, and by what cffi
is made of. It prints nothing that differs between two machines."""

from __future__ import annotations

import ctypes
import socket
import sys
from collections.abc import Callable, Iterator

import _cffi_backend as cffi  # type: ignore[import-untyped]


class Address(ctypes.Structure):
    """struct ifaddrs, as far as Twisted looks (twisted/internet/test/_posixifaces.py)."""


Address._fields_ = [
    ("next", ctypes.POINTER(Address)),
    ("name", ctypes.c_char_p),
    ("flags", ctypes.c_uint),
    ("address", ctypes.c_void_p),
]


def interfaces(libc: ctypes.CDLL) -> Iterator[str]:
    first = ctypes.POINTER(Address)()
    assert libc.getifaddrs(ctypes.byref(first)) == 0
    at = first
    while at:
        yield at[0].name.decode()
        at = at[0].next
    libc.freeifaddrs(first)


def conversation(make: Callable[[int, int, int], int]) -> None:
    """Between a socket that this makes and one of Python's own."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.socket(fileno=make(socket.AF_INET, socket.SOCK_STREAM, 0)) as client,
    ):
        client.connect(listener.getsockname())
        server, address = listener.accept()
        with server:
            print(address == client.getsockname(), client.send(b"x"), server.recv(2))


def main() -> None:
    ways = {
        "the program": ctypes.CDLL(None, use_errno=True),
        "libc.so.6": ctypes.CDLL("libc.so.6", use_errno=True),
        "the same, by Python": ctypes.PyDLL("libc.so.6", use_errno=True),
    }
    for way, libc in ways.items():
        print(way, set(interfaces(libc)) == {name for _, name in socket.if_nameindex()})
        conversation(libc.socket)
        print(libc.close(-1), ctypes.get_errno())
    integer = cffi.new_primitive_type("int")
    kind = cffi.new_function_type((integer, integer, integer), integer)
    print("cffi")
    conversation(cffi.load_library("libc.so.6", 0).load_function(kind, "socket"))
    conversation(cffi.load_library(None, 0).load_function(kind, "socket"))
    sys.stdout.flush()


main()
