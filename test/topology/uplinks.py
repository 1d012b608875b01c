# SPDX-License-Identifier: GPL-2.0-only
"""A host with several ways to one server.

        far: the host ──up1── 10.88.1.0/24, fd88:0:0:1::/64 ──s1── server: 10.99.0.1, fd99::1
                      ──up2── 10.88.2.0/24, fd88:0:0:2::/64 ──s2──

The server is .1 and ::1 of each network, and forwards between them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Self, Unpack

from topology.namespace import Namespace, Word
from topology.process import Finished, How, Process, eventually
from topology.side import GUISE, PYTHON, program, wait_until_says

SERVER = "10.99.0.1"
SERVER6 = "fd99::1"
PORT = "5000"

SEND = [PYTHON, program("steady.py"), "send"]


class Uplinks:
    """The host and its server; without four the host has no address of IPv4."""

    def __init__(self, far: Namespace, run_dir: Path, count: int = 2, *, four: bool = True) -> None:
        self.far = far
        self.four = four
        self.run_dir = run_dir
        self.server = Namespace("server")
        self.server.ip("address", "add", f"{SERVER}/32", "dev", "lo")
        self.server.ip("address", "add", f"{SERVER6}/128", "dev", "lo", "nodad")
        for path in range(1, count + 1):
            self.plug(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.server.delete()

    def plug(self, path: int, host: int = 2) -> None:
        """A cable, as when an adapter is plugged in."""
        self.far.ip(
            "link",
            "add",
            f"up{path}",
            "type",
            "veth",
            "peer",
            f"s{path}",
            "netns",
            self.server.name,
        )
        self.server.ip("link", "set", f"s{path}", "up")
        self.server.ip("address", "add", f"10.88.{path}.1/24", "dev", f"s{path}")
        self.server.ip("address", "add", f"fd88:0:0:{path}::1/64", "dev", f"s{path}", "nodad")
        self.far.ip("link", "set", f"up{path}", "up")
        self.address(path, host)

    def unplug(self, path: int) -> None:
        self.far.ip("link", "delete", f"up{path}")

    def address(self, path: int, host: int = 2) -> None:
        """Gives the host an address there, with a default route."""
        if self.four:
            self.far.ip("address", "add", f"10.88.{path}.{host}/24", "dev", f"up{path}")
        self.far.ip("address", "add", f"fd88:0:0:{path}::{host}/64", "dev", f"up{path}", "nodad")
        self.route(path)

    def no_address(self, path: int) -> None:
        self.far.ip("address", "flush", "dev", f"up{path}", "scope", "global")
        self.far.run("ip", "-6", "route", "del", "default", "dev", f"up{path}")

    def route(self, path: int) -> None:
        four, six = ("-4", f"10.88.{path}.1"), ("-6", f"fd88:0:0:{path}::1")
        for words in (four, six) if self.four else (six,):
            self.far.ip(
                words[0], "route", "replace", "default", "via", words[1], "dev", f"up{path}",
                "metric", str(1000 + path),
            )  # fmt: skip

    def no_route(self, path: int) -> None:
        for family in ("-4", "-6") if self.four else ("-6",):
            self.far.ip(family, "route", "delete", "default", "dev", f"up{path}")

    def carrier(self, path: int, state: str) -> None:
        self.server.ip("link", "set", f"s{path}", state)

    def serve(self, protocol: str = "mptcp") -> Process:
        self.server.run("ip", "mptcp", "limits", "set", "subflows", "8", "add_addr_accepted", "8")
        server = self.server.start(PYTHON, program("steady.py"), "serve", PORT, protocol)
        try:
            wait_until_says(server, "ready")
        except BaseException:
            server.stop()
            raise
        return server

    def words(self, *command: Word, options: tuple[str, ...] = ("up1", "up2")) -> list[Word]:
        uplinks = [word for name in options for word in ("--uplink", name)]
        return [GUISE, "run", "--mptcp", *uplinks, "--", *command]

    def environment(self) -> dict[str, str]:
        return {"GUISE_RUNDIR": str(self.run_dir)}

    def start(
        self, *command: Word, options: tuple[str, ...] = ("up1", "up2"), **how: Unpack[How]
    ) -> Process:
        how["env"] = {**(how.get("env") or {}), **self.environment()}
        return self.far.start(*self.words(*command, options=options), **how)

    def run(self, *command: Word, options: tuple[str, ...] = ("up1", "up2")) -> Finished:
        return self.far.run(*self.words(*command, options=options), env=self.environment())

    def guise(self, *words: Word) -> Finished:
        return self.far.run(GUISE, *words, env=self.environment())

    def stack(self) -> dict[str, object]:
        """The one stack there is, as guise ls has it."""
        [stack] = json.loads(self.guise("ls", "--json").expect().text)
        assert isinstance(stack, dict)
        return stack

    def states(self) -> dict[str, str]:
        uplinks = self.stack()["uplinks"]
        assert isinstance(uplinks, list)
        return {uplink["name"]: uplink["state"] for uplink in uplinks}

    def wait_until(self, **states: str) -> None:
        """Until the uplinks are what is said of them."""
        eventually(
            lambda: all(self.states()[name] == state for name, state in states.items()), str(states)
        )

    def followers(self) -> list[int]:
        """The pids of what follows the host's interfaces for stacks."""
        return [
            pid
            for pid in self.far.processes("guise")
            if b"follow-uplinks" in Path(f"/proc/{pid}/cmdline").read_bytes()
        ]

    def follower(self) -> int:
        [found] = self.followers()
        return found

    def subflows(self) -> set[str]:
        """The local addresses of the stack's TCP connections to the server that go on."""
        tool = self.guise(
            "exec", str(self.stack()["stack"]), "--", "ss", "-Hnt", "state", "established"
        )
        found = set()
        for line in tool.expect().text.splitlines():
            local, peer = line.split()[2:4]
            if peer.rsplit(":", 1)[1] == PORT:
                found.add(local.rsplit(":", 1)[0].split("%")[0].strip("[]"))
        return found


def pieces(client: Process) -> int:
    """How many pieces the server has answered (steady.py)."""
    said = client.said()
    numbers = [int(line) for line in said.text.splitlines() if line.isdigit()]
    assert said.status == -1, f"it has ended: {said}"
    return max(numbers, default=0)


def goes_on(client: Process, number: int = 20) -> None:
    """Waits for so many further pieces."""
    before = pieces(client)
    eventually(lambda: pieces(client) >= before + number, "the connection goes on")


class Transfer:
    """A connection over the uplinks to the server."""

    def __init__(self, uplinks: Uplinks, address: str = SERVER, *options: str) -> None:
        self.uplinks = uplinks
        self.address = address
        self.options = options or ("up1", "up2")

    def __enter__(self) -> Process:
        self.server = self.uplinks.serve()
        try:
            self.client = self.uplinks.start(
                *SEND, self.address, PORT, options=self.options, stdin=subprocess.PIPE
            )
            goes_on(self.client)
        except BaseException:
            self.server.stop()
            raise
        return self.client

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            if error is None:
                assert self.client.stdin
                self.client.stdin.close()
                ended = self.client.finish().expect()
                assert ended.text.splitlines()[-1] == "right", ended
        finally:
            self.client.__exit__(kind, error, trace)
            self.server.stop()


def uses_both(uplinks: Uplinks, address: str) -> None:
    form = "10.88.{}.2" if address == SERVER else "fd88:0:0:{}::2"
    with Transfer(uplinks, address) as client:
        both = {form.format(1), form.format(2)}
        eventually(lambda: uplinks.subflows() == both, "a subflow on each path")
        assert uplinks.states() == {"up1": "usable", "up2": "usable"}
        goes_on(client)


# What becomes of the first path; each returns what mends it.


def carrier(u: Uplinks) -> Callable[[], None]:
    u.carrier(1, "down")
    return lambda: u.carrier(1, "up")


def admin(u: Uplinks) -> Callable[[], None]:
    u.far.ip("link", "set", "up1", "down")

    def back() -> None:
        u.far.ip("link", "set", "up1", "up")
        u.no_address(1)
        u.address(1)

    return back


def gone(u: Uplinks) -> Callable[[], None]:
    u.unplug(1)
    return lambda: u.plug(1)


def route(u: Uplinks) -> Callable[[], None]:
    u.no_route(1)
    return lambda: u.route(1)


def address(u: Uplinks) -> Callable[[], None]:
    u.no_address(1)
    return lambda: u.address(1, 7)


FAULTS = [carrier, admin, gone, route, address]
