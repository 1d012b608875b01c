# SPDX-License-Identifier: GPL-2.0-only
"""A user who tries to get onto root's stack, and to have root's next command act for that user.

    attacker.py try COUNT SEED HOLDER MEMBER   says "gained WHAT" for each attempt that succeeds,
                                               and at the end how often each kind was tried
    attacker.py lie FOLDER                     is the holder of a stack, in its own folder, and
                                               says what it is asked

It runs as that user; test_root_among_users.py starts it, and is root."""

from __future__ import annotations

import array
import collections
import contextlib
import ctypes
import fcntl
import itertools
import json
import os
import random
import shutil
import signal
import socket
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

ROOTS = Path("/run/guise")
FALLBACK = Path("/tmp/guise-0")  # where root's guise looks when it may not write in /run
OWN = Path(f"/run/user/{os.getuid()}/guise")
NETNS_COOKIE, PIDFD_OPEN, PIDFD_GETFD, PTRACE_SEIZE = 71, 434, 438, 0x4206
ESCAPES = "\x1b[2J\x1b]0;owned\x07\u009b2J\u202e"
VICTIM = "/run/victim"

libc = ctypes.CDLL(None, use_errno=True)


def called(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return result


class Attacker:
    def __init__(self, seed: int, holder: int, member: int) -> None:
        self.random = random.Random(seed)
        self.pids = [holder, member]
        self.numbers = itertools.count(1)

    # Each attempt returns what it gained, or "" or an error. The kinds of `try`:

    # -- to join ----------------------------------------------------------------

    def join_by_the_socket(self) -> str:
        """By its path, also through the folders of root's processes, and by names from the list of
        all sockets."""
        paths = [str(path) for path in ROOTS.glob("*")] or [f"{ROOTS}/{self.pids[1]}.sock"]
        listed = Path("/proc/net/unix").read_text().split()
        paths += [word for word in listed if "guise" in word and word.endswith(".sock")]
        paths += [f"/proc/{pid}/root{ROOTS}/{self.pids[1]}.sock" for pid in self.pids]
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
            client.settimeout(10)
            client.connect(self.random.choice(paths))
            client.send(self.random.choice([b"ticket", b"status", b"alive", b"guests", b"down 0"]))
            answer = client.recv(1 << 16)
        return "" if answer.startswith(b"error ") else repr(answer)

    def join_by_a_descriptor(self) -> str:
        """A ticket, the region or a channel is a descriptor of some process."""
        pid, fd = self.random.choice(self.pids), self.random.randrange(4096)
        if self.random.random() < 0.5:
            with open(f"/proc/{pid}/fd/{fd}", "rb+", buffering=0):
                return f"descriptor {fd} of {pid}"
        pidfd = called(libc.syscall(PIDFD_OPEN, pid, 0))
        try:
            return f"descriptor {called(libc.syscall(PIDFD_GETFD, pidfd, fd, 0))} of {pid}"
        finally:
            os.close(pidfd)

    def join_by_memory(self) -> str:
        pid = self.random.choice(self.pids)
        kind = self.random.randrange(3)
        if kind == 0:
            called(libc.ptrace(PTRACE_SEIZE, pid, None, None))
            return f"traces {pid}"
        name = "mem" if kind == 1 else "map_files/" + "7e9000000000-7e9000001000"
        with open(f"/proc/{pid}/{name}", "rb+", buffering=0):
            return f"memory of {pid}"

    def end_it(self) -> str:
        os.kill(self.random.choice(self.pids), self.random.choice([signal.SIGKILL, signal.SIGSTOP]))
        return "a signal"

    # -- to squat names and folders -----------------------------------------------

    def squat_in_roots_folder(self) -> str:
        path = ROOTS / f"{self.random.randrange(100000)}{self.random.choice(['.sock', '.json'])}"
        existing = self.random.choice([*ROOTS.glob("*"), ROOTS / f"{self.pids[1]}.sock"])
        attempts: list[Callable[[], object]] = [
            path.touch,
            path.mkdir,
            lambda: path.symlink_to("/etc/passwd"),
            lambda: os.mkfifo(path),
            lambda: os.link(existing, OWN.parent / f"link{next(self.numbers)}"),
            existing.unlink,
            lambda: existing.rename(path),
            lambda: ROOTS.rename("/run/other"),
            lambda: ROOTS.chmod(0o777),
            lambda: os.chown(existing, os.getuid(), -1),
            lambda: os.listdir(ROOTS),
            lambda: fcntl.flock(os.open(ROOTS, os.O_RDONLY), fcntl.LOCK_EX),
        ]
        self.random.choice(attempts)()
        return "root's folder"

    def squat_a_folder(self) -> str:
        """Where root's guise will look next; what lies there was made by this user, too."""
        for folder in (FALLBACK, OWN):
            clear(folder)
            kind = self.random.randrange(6)
            if kind == 0:
                folder.symlink_to(self.random.choice(["/run/guise", "/etc", "/run", str(OWN)]))
            elif kind == 1:
                folder.write_text("{}")
            elif kind == 2:
                os.mkfifo(folder)
            else:
                folder.mkdir()
                folder.chmod(self.random.choice([0o700, 0o755, 0o777, 0o1777, 0o770]))
        return ""

    def squat_a_name(self) -> str:
        """Names that are obeyed by a terminal or a shell, or lead elsewhere."""
        folder = self.squatted()
        name = self.random.choice(
            [
                "web",
                "$(touch /run/victim)",
                f"a{ESCAPES}",
                "b\nguise: forged",
                "-rf",
                "c d",
                "9" * 200,
            ]
        )
        target = self.random.choice(
            ["7.sock", "../../run/guise", "/run/udev/control", f"{ROOTS}/{self.pids[1]}.sock", "."]
        )
        with contextlib.suppress(FileExistsError):
            (folder / f"{name}.stack").symlink_to(target)
        with contextlib.suppress(FileExistsError):
            (folder / f"{self.random.randrange(9)}.sock").symlink_to(target)
        return ""

    def squat_a_socket(self) -> str:
        """On which no process listens: guise removes those."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(str(self.squatted() / f"{self.random.randrange(99)}.sock"))
        return ""

    def hold_the_lock(self) -> str:
        """For ever: the descriptor stays open."""
        if next(self.numbers) < 50:
            fcntl.flock(os.open(self.squatted(), os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)
        return ""

    # -- to plant journals -----------------------------------------------------------

    def steps(self) -> list[dict[str, object]]:
        all_steps: list[dict[str, object]] = [
            {"kind": "sysctl", "key": f"../..{VICTIM}", "set": "kept", "old": "owned"},
            {"kind": "sysctl", "key": "net/ipv4/conf/cable/forwarding", "set": "0", "old": "1"},
            {"kind": "sysctl", "key": "net/ipv4/conf/cable/rp_filter", "set": "0", "old": "1"},
            {"kind": "table", "family": "ip", "name": "victim"},
            *({"kind": "device", "name": "victim0", "index": i} for i in range(2, 12)),
        ]
        return all_steps[self.random.randrange(len(all_steps)) :]

    def journal(self) -> str:
        with socket.socket() as s:
            cookie = struct.unpack("Q", s.getsockopt(socket.SOL_SOCKET, NETNS_COOKIE, 8))[0]
        return json.dumps(
            {
                "version": 1,
                "owner": {"pid": 1 << 22, "start": 1},
                "boot": Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
                "pid_namespace": os.stat("/proc/self/ns/pid").st_ino,
                "network_namespace": {
                    "inode": os.stat("/proc/thread-self/ns/net").st_ino,
                    "cookie": cookie,
                },
                "steps": self.steps(),
            }
        )

    def plant_a_journal(self) -> str:
        name = f"x{self.random.randrange(20)}.json"
        path = self.squatted() / name
        with contextlib.suppress(OSError):
            path.unlink()
        path.write_text(self.journal())
        path.chmod(self.random.choice([0o600, 0o644, 0o666]))
        return ""

    def plant_a_journal_at_roots(self) -> str:
        (ROOTS / f"x{self.random.randrange(20)}.json").write_text(self.journal())
        return "a journal"

    # ------------------------------------------------------------------------------

    def squatted(self) -> Path:
        folder = self.random.choice([FALLBACK, OWN])
        if folder.is_symlink() or not folder.is_dir():
            clear(folder)
            folder.mkdir()
        return folder

    def kinds(self) -> list[Callable[[], str]]:
        return [
            self.join_by_the_socket,
            self.join_by_a_descriptor,
            self.join_by_memory,
            self.end_it,
            self.squat_in_roots_folder,
            self.squat_a_folder,
            self.squat_a_name,
            self.squat_a_socket,
            self.hold_the_lock,
            self.plant_a_journal,
            self.plant_a_journal_at_roots,
        ]

    def attack(self, count: int) -> None:
        tried: collections.Counter[str] = collections.Counter()
        for attempt in itertools.islice(itertools.cycle(self.kinds()), count):
            tried[attempt.__name__] += 1
            try:
                gained = attempt()
            except OSError:
                continue
            if gained:
                print("gained", attempt.__name__, gained)
        # Last, what root's next command is most likely to follow; or whatever was squatted last.
        for folder in (OWN, FALLBACK)[: self.random.randrange(1, 3)]:
            clear(folder)
            folder.mkdir(mode=0o700)
            (folder / "x.json").write_text(self.journal())
            (folder / "web.stack").symlink_to("7.sock")
        print(json.dumps({"tried": tried}))


def clear(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        path.chmod(0o700)
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def requests(client: socket.socket) -> Iterator[bytes]:
    with contextlib.suppress(OSError):
        while request := client.recv(1 << 16):
            yield request


def lie(folder: Path) -> None:
    """To be joined is what it is after: its answers are those of a holder, with more in them."""
    status = {
        "name": f"web{ESCAPES}",
        "version": sys.argv[3],
        "holder": os.getpid(),
        "pids": [1],
        "members": 1,
        "links": [{"name": f"eth0{ESCAPES}", "kind": "\n\t"}],
        "told": {
            "file": f"{folder}/evil.toml",
            "env.LD_PRELOAD": f"{folder}/evil.so",
            "env.PATH": str(folder),
        },
        "sockets": 0,
    }
    (folder / "evil.toml").write_text('name = "web"\n[[link]]\nkind = "none"\n')
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(f"{folder}/7.sock")
    listener.listen(64)
    with contextlib.suppress(FileExistsError):
        (folder / "web.stack").symlink_to("7.sock")
    print("ready", flush=True)
    while True:
        client, _ = listener.accept()
        for request in requests(client):
            word = request.split()[0].decode(errors="replace")
            print("asked", word, flush=True)
            if word == "status":
                client.send(json.dumps(status).encode())
            elif word in ("ticket", "alive", "guests"):
                ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                rights = array.array("i", [theirs.fileno()]).tobytes()
                client.sendmsg([b"ok"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
                theirs.close()
                ours.settimeout(1)
                with contextlib.suppress(OSError):
                    print("joined by", len(ours.recv(1 << 16)), flush=True)
            else:
                client.send(f"error no{ESCAPES}\nguise: forged".encode())
        client.close()


if __name__ == "__main__":
    if sys.argv[1] == "lie":
        lie(Path(sys.argv[2]))
    else:
        count, seed, holder, member = map(int, sys.argv[2:])
        Attacker(seed, holder, member).attack(count)
