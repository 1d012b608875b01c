# SPDX-License-Identifier: GPL-2.0-only
"""A user without root: a user id that nothing else has, no capabilities, a fresh home directory.
What this user runs on guise goes out through passt, which opens sockets of the namespace far."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Unpack

import pytest
from topology.namespace import Namespace, Word
from topology.process import Finished, How, Process, run
from topology.side import GUISE, GuiseSide, proof

NUMBER = 4  # of the subnet


def skip_unless_readable(uid: int) -> None:
    """The user must be able to load guise's library, and the tests' own programs."""
    for needed in (GUISE, Path(__file__)):
        words = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "test", "-r"]
        if run([*words, needed]).status:
            pytest.skip(f"{needed} lies where only root may go")


class User:
    """A user id that no user of the machine has."""

    def __init__(self, home: Path) -> None:
        if not shutil.which("setpriv"):
            pytest.skip("setpriv is not installed")
        self.id = 100_000 + os.getpid() % 100_000
        self.home = home
        home.mkdir()
        os.chown(home, self.id, self.id)
        # pytest's folders are root's own.
        for parent in home.parents:
            if not parent.stat().st_mode & 0o001:
                parent.chmod(parent.stat().st_mode | 0o011)
        skip_unless_readable(self.id)

    def command(self, *command: Word) -> list[Word]:
        drop = [f"--reuid={self.id}", f"--regid={self.id}", "--clear-groups", "--inh-caps=-all"]
        home = [f"HOME={self.home}", f"USER=user{self.id}", f"LOGNAME=user{self.id}"]
        path = "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"  # not root's
        return ["setpriv", *drop, "--bounding-set=-all", "env", *home, path, *command]

    @contextlib.contextmanager
    def shares(self, folder: Path) -> Iterator[None]:
        """What the test makes in the folder meanwhile, the user may write."""
        folder.chmod(0o777)
        before = os.umask(0)
        try:
            yield
        finally:
            os.umask(before)


def make_way_out(far: Namespace) -> None:
    """A default route, without which passt does not go anywhere, and the peer's addresses. It
    lasts as long as the namespace."""
    subnet, subnet6 = f"10.77.{NUMBER}", f"fd77:0:0:{NUMBER}"
    far.ip("link", "add", "way0", "type", "veth", "peer", "name", "way1")
    far.ip("address", "add", f"{subnet}.1/24", "dev", "way0")
    far.ip("address", "add", f"{subnet6}::1/64", "dev", "way0", "nodad")
    far.ip("link", "set", "way1", "up")
    far.ip("link", "set", "way0", "up")
    far.ip("route", "add", "default", "via", f"{subnet}.254")
    far.ip("-6", "route", "add", "default", "via", f"{subnet6}::ffff")


class UserSide(GuiseSide):
    """A stack of that user; of its link it is told only the addresses."""

    def __init__(self, far: Namespace, run_dir: Path, user: User) -> None:
        super().__init__(far, run_dir, number=NUMBER, paths=0)
        self.user = user
        for address in (self.address + "/24", self.address6 + "/64"):
            self.options += ["--ip", address]

    def words(self, *command: Word, options: Sequence[str] = ()) -> list[Word]:
        return self.user.command(*super().words(*command, options=options))

    def command(self, *words: Word) -> list[Word]:
        return self.user.command(*super().command(*words))

    def start(self, *command: Word, options: Sequence[str] = (), **how: Unpack[How]) -> Process:
        how["cwd"] = how.get("cwd") or self.user.home
        return super().start(*command, options=options, **how)


def through_passt(finished: Finished) -> bool:
    return proof(finished)["reach"] == "as far as passt"
