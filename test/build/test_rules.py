# SPDX-License-Identifier: GPL-2.0-only
"""The rules for locks, forks and memory (lib/host/locks.c, lib/host/memory.c) hold in each file of
what runs inside programs: the objects of lib/ and preload/ call what waits for other threads, sees
forks or takes memory of the heap only where a reason stands here.

And the rule for the tree's symbolic links: they are relative, and lead to what is in the tree."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from topology.side import BUILD

ROOT = Path(__file__).resolve().parents[2]
OBJECTS = BUILD / "obj"

WAITING = {
    *(f"pthread_{kind}" for kind in ("mutex", "rwlock", "cond", "spin", "barrier", "once")),
    *("mtx_", "cnd_", "call_once", "sem_", "flockfile", "pthread_atfork"),
}
HEAP = {
    *("malloc", "calloc", "realloc", "reallocarray", "free", "strdup", "strndup", "asprintf"),
    *("vasprintf", "__asprintf_chk", "__vasprintf_chk", "aligned_alloc", "posix_memalign"),
    *("memalign", "getline", "getdelim", "open_memstream", "fopencookie", "strerror", "qsort"),
}

# Files that wait, or see forks, and why the rule holds all the same.
MAY_WAIT = {
    "lib/region/slot.o": "calls pthread_atfork for the locks' own handlers",
    "preload/start.o": "calls pthread_atfork, as what forks inside libc is seen by it alone",
    "preload/wait/completion.o": "waits for a semaphore, as libc does for its requests, unlocked",
}

# Files that use the heap: for calls that no handler of a signal may make (signal-safety(7)).
MAY_USE_THE_HEAP = {
    "lib/api/error.o": "the API, of programs that call libguise themselves",
    "lib/api/files.o": "the API",
    "lib/link/link.o": "adding a link",
    "lib/link/packet.o": "adding a link",
    "lib/link/tap.o": "adding a link",
    "lib/region/ask.o": "the holder's side",
    "lib/region/bell.o": "creating a stack",
    "lib/region/create.o": "creating a stack",
    "lib/region/image.o": "creating a stack",
    "lib/region/image_find.o": "creating a stack",
    "lib/region/pump.o": "creating a stack",
    "lib/region/serve.o": "the holder's side",
    "lib/setup/linkset.o": "setting up",
    "lib/setup/netns.o": "setting up",
    "lib/setup/nl.o": "setting up",
    "lib/setup/nl_dump.o": "setting up, and lists for the holder",
    "lib/setup/offload.o": "setting up",
    "lib/setup/sysctl.o": "setting up",
    "preload/files/files.o": "a constructor",
    "preload/files/listing.o": "opendir",
    "preload/files/stdio.o": "streams, and a constructor",
    "preload/names/asynchronous.o": "getaddrinfo_a",
    "preload/names/getaddrinfo.o": "getaddrinfo",
    "preload/names/hostent.o": "gethostbyname",
    "preload/names/interfaces.o": "getifaddrs",
    "preload/names/service.o": "getaddrinfo",
    "preload/process/environment.o": "a constructor",
    "preload/process/shell.o": "popen",
    "preload/process/thread.o": "pthread_create",
    "preload/start.o": "a constructor",
    "preload/wait/aio.o": "aio_read and aio_write",
    "preload/wait/completion.o": "aio_read and aio_write",
}


def undefined(file: Path) -> set[str]:
    """What an object takes from elsewhere."""
    command = ["nm", "--undefined-only", "--format=posix", str(file)]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {line.split()[0] for line in listed.splitlines()}


@pytest.fixture(scope="module")
def objects() -> dict[str, set[str]]:
    """What each object of the two libraries takes from elsewhere."""
    found = {}
    for source in [*ROOT.glob("lib/*/*.c"), *ROOT.glob("preload/**/*.c")]:
        file = source.relative_to(ROOT).with_suffix(".o")
        if not source.stem.endswith("_test"):
            found[str(file)] = undefined(OBJECTS / file)
    assert "malloc" in found["preload/wait/aio.o"]
    return found


def users(objects: dict[str, set[str]], names: set[str]) -> dict[str, list[str]]:
    """Objects that use a symbol which is one of the names, or begins with one and an underscore."""

    def is_named(symbol: str) -> bool:
        return any(symbol == name or symbol.startswith(name.rstrip("_") + "_") for name in names)

    used = {name: sorted(filter(is_named, symbols)) for name, symbols in objects.items()}
    return {name: symbols for name, symbols in used.items() if symbols}


def test_all_locks_are_guises_own(objects: dict[str, set[str]]) -> None:
    assert {n: s for n, s in users(objects, WAITING).items() if n not in MAY_WAIT} == {}


def test_what_a_handler_may_call_leaves_the_heap_alone(objects: dict[str, set[str]]) -> None:
    assert {n: s for n, s in users(objects, HEAP).items() if n not in MAY_USE_THE_HEAP} == {}


def test_the_environment_means_nothing_to_a_program_with_more_rights(
    objects: dict[str, set[str]],
) -> None:
    """It is asked by secure_getenv(3), which has no answer where AT_SECURE is set."""
    assert users(objects, {"getenv"}) == {}


def test_no_reason_is_left_behind(objects: dict[str, set[str]]) -> None:
    assert set(MAY_WAIT) <= set(users(objects, WAITING))
    assert set(MAY_USE_THE_HEAP) <= set(users(objects, HEAP))


def test_links_of_the_tree_stay_in_the_tree() -> None:
    """A clone elsewhere has what they lead to."""
    listed = subprocess.run(
        ["git", "ls-files", "--stage"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.splitlines()
    links = [ROOT / line.split("\t")[1] for line in listed if line.startswith("120000 ")]
    assert links
    for link in links:
        assert not link.readlink().is_absolute(), link
        assert link.resolve().is_relative_to(ROOT), link
