# SPDX-License-Identifier: GPL-2.0-only
"""The memory of a running stack, as /proc shows it: no page is written and executed, and nobody
can cut the memory that processes share, or make it executable. What the image has against bugs."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import mmap
import os
import re
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from topology.holders import comm_of
from topology.namespace import Word
from topology.process import Process, eventually
from topology.side import BUILD, GUISE, PYTHON

HOLDER = BUILD / "guise-holder"
# An image that $GUISE_KERNEL names is mapped from its file, and not from a copy in memory
# (lib/region/image.c).
NAMED = os.environ.get("GUISE_KERNEL")
IMAGE = Path(NAMED) if NAMED else BUILD / "guise-kernel"
MEMORY = {"guise", "guise-monitor", "guise-stream"} | (set() if NAMED else {"guise-kernel"})
F_GET_SEALS, F_SEAL_EXEC = 1034, 0x20
HEADER = 0x10000  # GUISE_OFF_HEADER
SHARED = {"SEAL": 1, "SHRINK": 2, "GROW": 4}
COPY_OF_THE_IMAGE = {**SHARED, "FUTURE_WRITE": 16}

MEMBER = """
import socket, sys

listener = socket.create_server(("127.0.0.1", 0))
near = socket.create_connection(listener.getsockname())
far, _ = listener.accept()
near.sendall(b"x")
far.recv(1)
print("ready", flush=True)
sys.stdin.read()
"""


@dataclass
class Mapping:
    first: int
    end: int
    rights: str
    offset: int
    name: str


def mappings(pid: int) -> list[Mapping]:
    found = []
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        words = line.split(maxsplit=5)
        name = words[5] if len(words) > 5 else ""
        first, end = (int(address, 16) for address in words[0].split("-"))
        found.append(Mapping(first, end, words[1], int(words[2], 16), name))
    return found


def written_and_executed(pid: int) -> list[Mapping]:
    return [m for m in mappings(pid) if "w" in m.rights and "x" in m.rights]


def memory_files(pid: int) -> dict[str, Path]:
    """guise's, by name: a path that opens each."""
    found = {}
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            if name := re.fullmatch(r"/memfd:(guise[\w-]*) \(deleted\)", os.readlink(fd)):
                found[name[1]] = fd
    return found


def holders(run_dir: Path) -> list[int]:
    """Those of the stacks with that folder."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if (
                entry.name.isdigit()
                and os.readlink(entry / "exe") == str(HOLDER.resolve())
                and f"GUISE_RUNDIR={run_dir}\0".encode() in (entry / "environ").read_bytes()
            ):
                found.append(int(entry.name))
    return found


@dataclass
class Stack:
    program: int
    holders: list[int]


def carriers(stack: Stack) -> list[int]:
    """Of its holders those that map the region."""
    return [pid for pid in stack.holders if comm_of(pid) == "guise-carrier"]


@contextlib.contextmanager
def running(run_dir: Path, *words: str) -> Iterator[Stack]:
    """A stack with one program, and a link whose buffers are shared, too."""
    ours, its = socket.socketpair()
    with ours, its:
        link = ["--link", f"stream:fd={its.fileno()}", "--ip", "192.0.2.2/24"]
        command: list[Word] = [GUISE, "run", *link, *words, "--", PYTHON, "-c", MEMBER]
        source, sink = os.pipe()
        with (
            open(source, "rb") as stdin,
            open(sink, "wb"),
            Process(
                command,
                stdin=stdin,
                env={"GUISE_RUNDIR": str(run_dir)},
                inherit=[its.fileno()],
            ) as process,
        ):
            eventually(lambda: "ready" in process.said().text, "the program is ready")
            yield Stack(process.pid, holders(run_dir))


@pytest.mark.parametrize("mode", [(), ("--mode", "tun")], ids=["member", "guest"])
def test_no_memory_of_a_process_is_written_and_executed(
    mode: tuple[str, ...], tmp_path: Path
) -> None:
    with running(tmp_path, *mode) as stack:
        assert stack.holders
        for pid in (stack.program, *stack.holders):
            assert any("x" in m.rights for m in mappings(pid))
            assert not written_and_executed(pid)
        inside = memory_files(stack.program)
        assert bool(inside) == (not mode), "a guest has nothing of the region"


def test_such_memory_would_be_seen() -> None:
    """A condition of the test before it."""
    with mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC):
        assert len(written_and_executed(os.getpid())) == 1


def host_seals_against_exec() -> bool:
    fd = None
    try:
        fd = os.memfd_create("probe", os.MFD_CLOEXEC | 0x8)
    except OSError as error:
        # An older host does not know the flag, and a sandbox may refuse what it does not know.
        assert error.errno in (errno.EINVAL, errno.EPERM, errno.ENOSYS)
        return False
    finally:
        if fd is not None:
            os.close(fd)
    return True


def test_nobody_cuts_shared_memory_or_makes_it_executable(tmp_path: Path) -> None:
    """A member tries: another one would end by SIGBUS, or run what was written there."""
    with running(tmp_path) as stack:
        # Members have that of the monitor's records mapped, and its descriptor closed.
        files = {
            name: path
            for pid in (*carriers(stack), stack.program)
            for name, path in memory_files(pid).items()
        }
        assert files.keys() == MEMORY
        for name, path in files.items():
            seals = COPY_OF_THE_IMAGE if name == "guise-kernel" else SHARED
            with open(path, "rb+", buffering=0) as file:
                has = fcntl.fcntl(file, F_GET_SEALS)
                size = os.fstat(file.fileno()).st_size
                assert has & ~F_SEAL_EXEC == sum(seals.values()), (name, has)
                for other in (size - mmap.PAGESIZE, size + mmap.PAGESIZE):
                    with pytest.raises(PermissionError):
                        file.truncate(other)
                assert os.fstat(file.fileno()).st_size == size
                if host_seals_against_exec():
                    assert not os.fstat(file.fileno()).st_mode & 0o111, name
                    with pytest.raises(PermissionError):
                        os.chmod(file.fileno(), 0o777)


def test_memory_that_is_shared_is_not_executed_and_code_is_not_written(tmp_path: Path) -> None:
    """Of the region only the image is executed, and nobody writes to that."""
    with running(tmp_path) as stack:
        assert carriers(stack)
        for pid in (stack.program, *carriers(stack)):
            rights: dict[str, set[str]] = {}
            for m in mappings(pid):
                if NAMED and m.name == os.path.realpath(NAMED):
                    rights.setdefault("guise-kernel", set()).add(m.rights)
                elif name := re.match(r"/memfd:(guise[\w-]*)", m.name):
                    rights.setdefault(name[1], set()).add(m.rights)
            assert rights.keys() == MEMORY | {"guise-kernel"}
            assert rights["guise-stream"] == rights["guise-monitor"] == {"rw-s"}
            assert rights["guise-kernel"] == {"r-xp", "r--p"}
            assert not any("x" in r for r in rights["guise"]), rights


def symbols() -> dict[str, int]:
    """Of the image, and where they lie from the base on."""
    command: list[Word] = ["nm", f"{IMAGE}.debug"]
    listing = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {words[2]: int(words[0], 16) for words in map(str.split, listing.splitlines())}


def base_of(pid: int) -> int:
    # The library has the header a second time, above.
    header, *_ = (
        m for m in mappings(pid) if m.name.startswith("/memfd:guise ") and m.offset == HEADER
    )
    return header.first - HEADER


def test_what_the_kernel_has_as_constant_is_only_read_once_it_has_booted(tmp_path: Path) -> None:
    """In each process that has the region. Variables are not among it."""
    constant = ("inet_stream_ops", "__stack_chk_guard")  # it has pointers; it was set by the boot
    variable = ("tcp_prot", "jiffies_64")
    with running(tmp_path) as stack:
        assert carriers(stack)
        for pid in (stack.program, *carriers(stack)):
            for name, rights in [(c, "r--s") for c in constant] + [(v, "rw-s") for v in variable]:
                at = base_of(pid) + symbols()[name]
                [its] = [m for m in mappings(pid) if m.first <= at < m.end]
                assert its.rights == rights, (name, its)


def protecting_value(pid: int) -> int:
    """What the kernel of its stack puts between the variables and the return address of a function,
    and looks at before it returns."""
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        memory.seek(base_of(pid) + symbols()["__stack_chk_guard"])
        return int.from_bytes(memory.read(8), "little")


def test_the_kernel_protects_its_stacks_by_another_value_in_each_region(tmp_path: Path) -> None:
    with running(tmp_path / "one") as one, running(tmp_path / "other") as other:
        values = [protecting_value(stack.program) for stack in (one, other)]
        [carrier] = carriers(one)
        assert protecting_value(carrier) == values[0], "it is in the region"
    # A text that is too long ends at its lowest byte.
    assert all(value and not value & 0xFF for value in values)
    assert values[0] != values[1]


def test_the_kernel_has_what_makes_its_bugs_harder_to_use() -> None:
    """Copies to and from programs stay within their object; pieces of memory come in no order."""
    assert symbols().keys() >= {
        "__stack_chk_fail",
        "__check_object_size",
        "cache_random_seq_create",
    }
