# SPDX-License-Identifier: GPL-2.0-only
"""The two sides that run the same program: the host's stack, and guise.

        near ──cable── far ──tap── a stack of guise
        10.77.1.2     .1   .1      10.77.2.2
        fd77:0:0:1::2  ::1  ::1    fd77:0:0:2::2

The other end of every conversation is in the namespace far. There guise makes the tap, and there
the tap must be gone afterwards. A side's own addresses are `address` and `address6`; far has
`peer` and `peer6` for it.
"""

from __future__ import annotations

import json
import os
import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Unpack

from topology.namespace import Namespace, Word
from topology.process import DEADLINE, Finished, How, Process, eventually

BUILD = Path(os.environ.get("GUISE_BUILD", Path(__file__).resolve().parents[2] / "build"))
GUISE = BUILD / "guise"
DENY = BUILD / "test" / "host" / "deny"  # runs a program where the kernel refuses calls
PYTHON = "/usr/bin/python3"  # Debian's


def program(name: str) -> str:
    """The path of one of the tests' own programs."""
    return str(Path(__file__).resolve().parents[1] / "program" / name)


class Side:
    """Where a program runs."""

    def __init__(self, name: str, far: Namespace, number: int) -> None:
        self.name = name
        self.far = far
        self.subnet = f"10.77.{number}"
        self.subnet6 = f"fd77:0:0:{number}"

    @property
    def address(self) -> str:
        return f"{self.subnet}.2"

    @property
    def address6(self) -> str:
        return f"{self.subnet6}::2"

    @property
    def peer(self) -> str:
        return f"{self.subnet}.1"

    @property
    def peer6(self) -> str:
        return f"{self.subnet6}::1"

    def of_family(self, family: socket.AddressFamily) -> tuple[str, str]:
        """Its own address and the peer's."""
        if family == socket.AF_INET:
            return self.address, self.peer
        return self.address6, self.peer6

    def start(self, *command: Word, **how: Unpack[How]) -> Process:
        raise NotImplementedError

    def run(self, *command: Word, seconds: float = DEADLINE, **how: Unpack[How]) -> Finished:
        raise NotImplementedError

    def check(self, process: Process) -> None:
        """The program that it started, and did not run, is on this side."""
        raise NotImplementedError

    def serve(self, *command: Word, says: str, **how: Unpack[How]) -> Process:
        """Starts a server, and waits for what it says when it is ready."""
        server = self.start(*command, **how)
        try:
            wait_until_says(server, says)
        except BaseException:
            server.stop()
            raise
        return server


class HostSide(Side):
    """A namespace of the host, behind a cable."""

    def __init__(self, near: Namespace, far: Namespace) -> None:
        super().__init__("host", far, 1)
        self.near = near

    def start(self, *command: Word, **how: Unpack[How]) -> Process:
        return self.near.start(*command, **how)

    def run(self, *command: Word, seconds: float = DEADLINE, **how: Unpack[How]) -> Finished:
        return self.near.run(*command, seconds=seconds, **how)

    def check(self, process: Process) -> None:
        there, near = Path(f"/proc/{process.pid}/ns/net"), Path(f"/run/netns/{self.near.name}")
        assert os.stat(there).st_ino == os.stat(near).st_ino, process.said()


class GuiseSide(Side):
    """A stack of guise on a tap in far; a new one for each program."""

    def __init__(
        self, far: Namespace, run_dir: Path, *options: str, number: int = 2, paths: int = 1
    ) -> None:
        super().__init__("guise", far, number)
        self.run_dir = run_dir
        self.options = list(options)
        for i in range(paths):
            self.options += ["--link", "tap"]
            for address in (f"10.77.{number + i}.2/24", f"fd77:0:0:{number + i}::2/64"):
                self.options += ["--ip", f"eth{i}={address}"]

    def words(self, *command: Word, options: Sequence[str] = ()) -> list[Word]:
        return [GUISE, "run", *self.options, *options, "--", *command]

    def command(self, *words: Word) -> list[Word]:
        """A guise command of the user that this side's stacks belong to."""
        return [GUISE, *words]

    def call(self, *words: Word, stdin: bytes | None = None) -> Finished:
        return self.far.run(*self.command(*words), stdin=stdin, env=self.environment(), cwd="/")

    def environment(self, env: Mapping[str, str] | None = None) -> dict[str, str]:
        return {**(env or {}), "GUISE_RUNDIR": str(self.run_dir)}

    def start(self, *command: Word, options: Sequence[str] = (), **how: Unpack[How]) -> Process:
        how["env"] = self.environment(how.get("env"))
        return self.far.start(*self.words(*command, options=options), **how)

    def check(self, process: Process) -> None:
        """It is a member, and no socket has escaped. A program that were on the host's stack, in
        far, would reach whatever is there as well."""
        stacks = json.loads(self.call("ls", "--json").expect().text)
        [stack] = [stack for stack in stacks if process.pid in stack["pids"]]
        assert stack["escaped"] == 0, stack

    def run(
        self,
        *command: Word,
        seconds: float = DEADLINE,
        options: Sequence[str] = (),
        **how: Unpack[How],
    ) -> Finished:
        """As a user who wants proof: with -v. No socket may have escaped to the host."""
        with self.start(*command, options=["-v", *options], **how) as process:
            finished = process.finish(seconds)
        return without_proof(finished, self.options)


# As it is when nothing ran outside, and nothing is unknown.
PROOF = re.compile(
    r"^(?:guise: )?(?P<cc>\w+) "
    r"(?P<reach>on the wire|as far as passt|within the stack \(no link\)), "
    r"(?P<programs>(?:\d+ programs?|programs in a namespace)(?:, \d+ programs?)?), "
    r"(?:(?P<direct>\d+) members? direct and (?P<served>\d+) served, )?"
    r"(?P<connections>\d+) connections?, "
    r"(?P<escaped>\d+) sockets? escaped to the host"
    r"(?:; most members are served because they are \w+'s, .*)?\n",
    re.MULTILINE,
)


def proof(finished: Finished) -> re.Match[str]:
    """The line that `guise run -v` ends with."""
    found = PROOF.search(finished.errors)
    assert found, f"no line of proof: {finished}"
    return found


def without_proof(finished: Finished, options: Sequence[str]) -> Finished:
    """What the program itself said, after a look at the proof."""
    line = proof(finished)
    assert line["escaped"] == "0", finished
    cc = options[options.index("--cc") + 1] if "--cc" in options else "cubic"
    assert line["cc"] == cc, finished
    assert (line["direct"] == "0") == ("--served" in options), finished
    return replace(finished, stderr=PROOF.sub("", finished.errors).encode())


def wait_until_says(process: Process, words: str) -> None:
    """Waits until the words stand in what the program has written."""

    def there() -> bool:
        said = process.said()
        assert said.status == -1, f"a server that should run: {said}"
        return words in said.text or words in said.errors

    eventually(there, f"{words!r} is said by {process.command}")
