# SPDX-License-Identifier: GPL-2.0-only
"""Regions that a process makes for itself: several at once, what they leave, what cannot be."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import pytest
from topology.namespace import Word
from topology.process import run
from topology.side import BUILD, GUISE

STACKS = BUILD / "test" / "region" / "stacks"
OCCUPIED = BUILD / "test" / "region" / "occupied"
NOT_PRELOADED = ("env", "GUISE_PRELOAD=off")


def stacks(*words: str | Path) -> list[str]:
    return run([STACKS, *words]).expect().text.splitlines()


def test_two_stacks_of_a_process_talk_and_have_sysctls_of_their_own() -> None:
    assert stacks("pair") == ["right 1000000", "back 1000000", "sysctl westwood vegas"]


def test_leaving_leaves_no_descriptor_mapping_or_thread() -> None:
    assert stacks("traceless") == [
        "while there: descriptors 1 mappings 1",
        "left: descriptors 0 mappings 0 threads 0",
    ]


def test_places_of_ended_threads_are_free_again() -> None:
    assert stacks("threads") == ["more while they run 200, when they have ended 0"] * 3


ERRORS = {
    "link": ("EINVAL", "carrier-pigeon", "tap"),
    "tap": ("EBADF", "fd=999"),
    "unlink": ("ENODEV", "eth7"),
    "address": ("EINVAL", "300.1.2.3/24", "192.0.2.2/24"),
    "device": ("ENODEV", "eth7", "lo"),
    "route": ("ENETUNREACH", "10.99.99.1"),
    "qdisc": ("EINVAL", "teabag", "fq_codel"),
    "word": ("EINVAL", "ten", "100mbit"),
    "sysctl": ("ENOENT", "net.ipv4.no_such_thing"),
    "value": ("ENOENT", "pigeon", "westwood"),
    "get": ("ENOENT", "net.ipv4.no_such_thing"),
    "file": ("ENOENT", "/proc/net/no_such_file"),
    "endpoint": ("EINVAL", "upside-down", "subflow"),
    "socket": ("EAFNOSUPPORT", "socket"),
    "close": ("EBADF", "close"),
    "memory": ("EINVAL", "1048576", "32"),
    "image": ("ENOENT", "/nowhere/guise-kernel", "GUISE_KERNEL"),
    "ticket": ("ENOENT", "GUISE_STACK"),
}


def test_errors_name_the_thing_and_what_would_be_valid() -> None:
    said = dict(line.split(": ", 1) for line in stacks("errors"))
    assert said.keys() == ERRORS.keys()
    for what, (error, *words) in ERRORS.items():
        assert said[what].startswith(error + ": "), said[what]
        assert all(word in said[what].split(": ", 1)[1] for word in words), said[what]


# The places of release and region_size in struct guise_image, from its magic number on.
MAGIC = struct.pack("<Q", 0x4753495545535447)
RELEASE, REGION_SIZE = 128, 192


def test_image_of_another_build_is_refused(tmp_path: Path) -> None:
    image = bytearray((BUILD / "guise-kernel").read_bytes())
    at = image.find(MAGIC)
    while image[at + RELEASE : at + RELEASE + 2] != b"6.":
        at = image.index(MAGIC, at + 1)
    image[at + REGION_SIZE] ^= 1
    foreign = tmp_path / "guise-kernel"
    foreign.write_bytes(image)
    assert stacks("image", BUILD / "guise-kernel")[0].startswith("create: done")
    assert stacks("image", foreign) == [
        "create: EPROTO: the kernel image does not belong to this library: "
        "build both anew, or remove the older one",
        "left: descriptors 0 mappings 0",
    ]


def test_image_that_is_cut_short_is_refused(tmp_path: Path) -> None:
    whole = (BUILD / "guise-kernel").read_bytes()
    for size in (0, 40, 200, len(whole) // 2):
        short = tmp_path / "guise-kernel"
        short.write_bytes(whole[:size])
        said, left = stacks("image", short)
        assert said.startswith("create: ENOEXEC: the kernel image "), (size, said)
        assert left == "left: descriptors 0 mappings 0"


SPOILS = """
import os, socket, subprocess, sys

before = socket.create_server(("127.0.0.1", 0))
with open(sys.argv[1], "r+b") as image:
    if sys.argv[2] == "cut":
        image.truncate(0)
    else:
        image.write(bytes(os.path.getsize(sys.argv[1])))
# Code of the stack that has not run yet, and another program that maps it.
socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).sendto(b"x", ("::1", 9))
near = socket.create_connection(before.getsockname())
print(subprocess.run(["cat", "/proc/net/sockstat"], stdout=subprocess.PIPE).stdout.split()[0])
"""


@pytest.mark.parametrize("how", ["cut", "overwritten"])
def test_an_image_that_is_spoilt_while_it_is_used_is_used_on(how: str, tmp_path: Path) -> None:
    """As by a newer guise that is copied over the one that runs: the stack has a copy."""
    for part in ("guise", "guise-holder", "libguise-preload.so", "guise-kernel"):
        shutil.copy2(BUILD / part, tmp_path / part)
    spoil: list[Word] = ["/usr/bin/python3", "-c", SPOILS, tmp_path / "guise-kernel", how]
    done = run([tmp_path / "guise", "run", "--link", "none", "--", *spoil]).expect()
    assert (done.text, done.errors) == ("b'sockets:'\n", ""), done


WINDOW = 4 << 30
RANGES = {first: range(first, first + 64 * WINDOW) for first in (0x7E9000000000, 0x1000000000)}


def test_where_a_stack_lies_is_not_to_be_guessed() -> None:
    """At least 12 bits of its address differ from stack to stack; with an index it is known."""
    lines = [line.split() for line in stacks("bases", "24")]
    *found, low, high = [int(base, 16) for _, base in lines]
    assert [index for index, _ in lines] == ["-1"] * 24 + ["0", "63"]
    assert low in RANGES and high == low + 63 * WINDOW
    assert all(base in RANGES[low] and base % (2 << 20) == 0 for base in found)
    differ = 0
    for base in found:
        differ |= base ^ found[0]
    assert differ.bit_count() >= 12, [hex(base) for base in found]


SENTENCE = "EADDRINUSE: this process already uses the addresses 0x"


def test_address_that_is_taken_where_a_stack_is_made() -> None:
    assert run([OCCUPIED, "create"]).expect().text.startswith(SENTENCE)


def test_address_that_is_taken_in_a_joining_process() -> None:
    program = (*NOT_PRELOADED, OCCUPIED, "join")
    assert run([GUISE, "run", "--link", "none", "--", *program]).expect().text.startswith(SENTENCE)


@pytest.mark.parametrize("descriptor", ["0", "999"])
def test_ticket_that_is_none_is_named(descriptor: str) -> None:
    done = run([OCCUPIED, "join"], env={"GUISE_STACK": descriptor}).expect()
    assert f"descriptor {descriptor} is not a ticket" in done.text
