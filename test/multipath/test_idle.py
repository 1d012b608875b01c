# SPDX-License-Identifier: GPL-2.0-only
"""A stack with two uplinks over which nothing is sent lets the processor sleep: holder, what
follows the host's interfaces, what asks their networks for addresses, and a program together."""

from __future__ import annotations

import contextlib
import subprocess
import time
from pathlib import Path

import pytest
from topology import apart
from topology.namespace import Namespace
from topology.network import network
from topology.process import eventually
from topology.side import PYTHON, program, wait_until_says
from topology.uplinks import Uplinks

SERVE = [PYTHON, program("connections.py"), "serve", "::", "7000"]


def switches(far: Namespace) -> dict[str, int]:
    """The voluntary context switches of each process in the namespace so far, of all its threads;
    there are no processes but guise's and its program. What asks for addresses is elsewhere."""
    found = {}
    followers = far.processes("guise")
    asking = {str(pid) for follower in followers for pid in apart.of(follower)}
    for entry in Path("/proc").iterdir():
        # Others may end meanwhile, or be hidden.
        with contextlib.suppress(OSError):
            if not entry.name.isdigit():
                continue
            if entry.name not in asking and (entry / "ns/net").stat().st_ino != far.inode:
                continue
            name = (entry / "comm").read_text(encoding="ascii").strip()
            found[f"{name} {entry.name}"] = sum(
                int(line.split()[1])
                for task in (entry / "task").iterdir()
                for line in (task / "status").read_text(encoding="ascii").splitlines()
                if line.startswith("voluntary_ctxt_switches")
            )
    return found


@pytest.mark.slow
@pytest.mark.parametrize("way", ["share", "own"])
def test_two_uplinks_without_traffic_wake_up_seldom(
    far: Namespace, run_dir: Path, tmp_path: Path, way: str
) -> None:
    with contextlib.ExitStack() as all_of_it:
        uplinks = all_of_it.enter_context(Uplinks(far, run_dir))
        if way == "own":
            for path in 1, 2:
                all_of_it.enter_context(network(uplinks, path, tmp_path, "12h"))
        options = (f"up1,{way}", f"up2,{way}")
        start = uplinks.start(*SERVE, options=options, stdin=subprocess.PIPE)
        server = all_of_it.enter_context(start)
        wait_until_says(server, "ready")
        uplinks.wait_until(up1="usable", up2="usable")
        last = switches(far)

        def at_rest() -> bool:
            nonlocal last
            before, last = last, switches(far)
            return sum(last.values()) - sum(before.values()) < 4

        eventually(at_rest, "the start is over", pause=1)
        least = 6 if way == "own" else 4
        assert len(last) >= least, f"warden, carrier, follower, its two and program: {last}"
        woken = {}
        # Routers, of which there are none here, are asked for ever more seldom.
        for _ in range(4 if way == "own" else 1):
            before = switches(far)
            time.sleep(10)  # the promise is one of ten seconds
            after = switches(far)
            assert after.keys() == before.keys()
            woken = {who: after[who] - before[who] for who in before}
            print(f"\nvoluntary context switches in 10 s: {woken}")
            if sum(woken.values()) < 40:
                break
        assert sum(woken.values()) < 40, woken
        assert server.stdin
        server.stdin.close()
        server.finish().expect()
