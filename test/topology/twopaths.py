# SPDX-License-Identifier: GPL-2.0-only
"""Two shaped paths between two namespaces, and who may use them: the host's own stack in each, and
a stack of guise in each.

        near                                  far
        br1 ── wire1 ══ guise path ══ wire1 ── br1      10.91.1.0/24
         └ tap1                         tap1 ┘
        br2 ── wire2 ══ guise path ══ wire2 ── br2      10.91.2.0/24
         └ tap2                         tap2 ┘

The bridges have the host's addresses, 1 near and 2 far; a stack of guise is behind the taps, 3 near
and 4 far. So guise and the host's stack send over the same wires, whose counters say how much each
path has carried.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

from topology.namespace import Namespace, Word
from topology.process import Process
from topology.side import GUISE, wait_until_says
from topology.simultaneous import Paths

NEAR, FAR, GUISE_NEAR, GUISE_FAR = 1, 2, 3, 4
PATHS = (1, 2)
# What waits at each end of a path at most, as in the kernel's selftest.
QUEUE = 50


def address(path: int, end: int) -> str:
    return f"10.91.{path}.{end}"


def host_has_mptcp() -> bool:
    return Path("/proc/sys/net/mptcp/enabled").exists()


@contextlib.contextmanager
def congestion_control(namespace: Namespace) -> Iterator[None]:
    """As of a stack of guise, whatever the host's default is; Reno where CUBIC is not for all."""
    key = "net.ipv4.tcp_congestion_control"
    before = namespace.run("sysctl", "-n", key).expect().text.strip()
    if namespace.run("sysctl", "-qw", f"{key}=cubic").status:
        namespace.run("sysctl", "-qw", f"{key}=reno").expect()
    yield
    namespace.run("sysctl", "-qw", f"{key}={before}").expect()


class TwoPaths:
    """Made for one pair of rates and delays; as a context, its paths end with it."""

    def __init__(
        self, near: Namespace, far: Namespace, run_dir: Path, paths: Paths, queue: int = QUEUE
    ) -> None:
        self.near, self.far, self.paths, self._queue = near, far, paths, queue
        self._run_dir = run_dir
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> TwoPaths:
        with contextlib.ExitStack() as stack:
            for path in PATHS:
                stack.enter_context(self._wire(path))
            for end, namespace in ((NEAR, self.near), (FAR, self.far)):
                for path in PATHS:
                    stack.enter_context(self._bridge(namespace, path, end))
                stack.enter_context(congestion_control(namespace))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *raised: object) -> None:
        self._stack.close()

    @contextlib.contextmanager
    def _wire(self, path: int) -> Iterator[None]:
        rate, delay = self.paths.rates[path - 1], self.paths.delays[path - 1]
        shape = ["--rate", f"{rate}mbit", "--delay", f"{delay}ms", "--limit", str(self._queue)]
        ends = [f"{namespace.name}:wire{path}" for namespace in (self.near, self.far)]
        command = [str(GUISE), "path", "--memory", "64M", *shape, *ends]
        with Process(command, env=self.environment()) as process:
            wait_until_says(process, "ready")
            yield

    @contextlib.contextmanager
    def _bridge(self, namespace: Namespace, path: int, end: int) -> Iterator[None]:
        bridge, tap = f"br{path}", f"tap{path}"
        namespace.ip("link", "add", bridge, "type", "bridge", "forward_delay", "0")
        namespace.ip("tuntap", "add", tap, "mode", "tap", "vnet_hdr")
        for port in (f"wire{path}", tap):
            namespace.ip("link", "set", port, "master", bridge, "up")
        namespace.ip("address", "add", f"{address(path, end)}/24", "dev", bridge)
        namespace.ip("link", "set", bridge, "up")
        yield
        for device in (tap, bridge):
            namespace.ip("link", "delete", device)

    def environment(self) -> dict[str, str]:
        return {"GUISE_RUNDIR": str(self._run_dir)}

    def use(self, peer: int) -> None:
        """The host's stack in near has both paths to that end."""
        self.near.ip("route", "replace", "default", "via", address(2, peer), "table", "2")
        rule = ["rule", "add", "from", address(2, NEAR), "table", "2"]
        if address(2, NEAR) not in self.near.ip("rule"):
            self.near.ip(*rule)
        self.near.ip("mptcp", "endpoint", "flush")
        self.near.ip("mptcp", "endpoint", "add", address(2, NEAR), "dev", "br2", "subflow")
        for namespace in (self.near, self.far):
            namespace.ip("mptcp", "limits", "set", "subflows", "2")

    def on_guise(
        self, end: int, peer: int, *command: Word, paths: int = 2, flags: tuple[str, ...] = ()
    ) -> list[str]:
        """The words that run a program on a stack of guise at that end."""
        words = [str(GUISE), "run", *flags]
        for path in PATHS[:paths]:
            words += ["--link", f"tap:tap{path}", "--ip", f"eth{path - 1}={address(path, end)}/24"]
            words += ["--gateway", f"eth{path - 1}={address(path, peer)}"]
        if paths > 1:
            words.append("--mptcp")
        return [*words, "--", *(os.fspath(word) for word in command)]

    def carried(self) -> dict[str, tuple[int, int]]:
        """What both wires have carried so far, up (from near to far) and down."""
        up, down = [], []
        for path in PATHS:
            listing = self.near.ip("-json", "-statistics", "link", "show", f"wire{path}")
            (link,) = json.loads(listing)
            up.append(int(link["stats64"]["tx"]["bytes"]))
            down.append(int(link["stats64"]["rx"]["bytes"]))
        return {"up": (up[0], up[1]), "down": (down[0], down[1])}
