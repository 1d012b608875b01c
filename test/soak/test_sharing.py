# SPDX-License-Identifier: GPL-2.0-only
"""The host and a stack load one server from one address at once: 100,000 connections and 20 GB of
each, in both directions together, and neither resets the other's. That is at the default of
SOAK_SECONDS, 1200; another value has a part of it, as SOAK_SECONDS / 1200 says."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from topology.leftovers import Leftovers
from topology.namespace import Namespace
from topology.shared import PacketSide, counters
from topology.side import PYTHON, HostSide, program, wait_until_says

SOAK_SECONDS = int(os.environ.get("SOAK_SECONDS", "1200"))
MEGABYTES = max(1, 10_000 * SOAK_SECONDS // 1200)  # there, and as many back
# The client's end of a closed connection keeps its port for a minute, towards the same address. Of
# its 4,096 ports, a stack could make no more connections to one address in this time.
ADDRESSES = 40
CONNECTIONS = max(1, 100_000 * SOAK_SECONDS // 1200 // ADDRESSES)  # to each

pytestmark = [pytest.mark.soak, pytest.mark.timeout(4 * SOAK_SECONDS + 600)]

# One program that makes those to all addresses, one address after the other.
EACH = 'client=$1; shift; for address; do "$PYTHON" "$client" make "$address" 7000 "$NUMBER"; done'


def test_host_and_stack_load_one_server_from_one_address(
    far: Namespace, host: HostSide, run_dir: Path, leftovers: Leftovers
) -> None:
    near = host.near
    addresses = [f"10.77.1.{number}" for number in range(100, 100 + ADDRESSES)]
    for address in addresses:
        near.ip("address", "add", f"{address}/24", "dev", "cable")
    leftovers.look()
    shared = PacketSide(far, run_dir, "--link", "packet:cable,ports=auto")
    client = program("connections.py")
    with near.start(PYTHON, client, "serve", "::", "7000", stdin=subprocess.PIPE) as server:
        wait_until_says(server, "ready")
        before = counters(far), counters(near)
        env = {"NUMBER": str(CONNECTIONS), "PYTHON": PYTHON}
        programs = []
        for start in far.start, shared.start:
            programs.append(start("sh", "-c", EACH, "each", client, *addresses, env=env))
            programs.append(start(PYTHON, client, "bulk", shared.peer, "7000", str(MEGABYTES)))
        said = [each.finish(4 * SOAK_SECONDS + 300).expect().text for each in programs]
        after = counters(far), counters(near)
    whole = f"{CONNECTIONS} whole, 0 failed\n" * ADDRESSES
    assert said == [whole, f"{MEGABYTES} MB whole\n"] * 2, said
    for was, now, what in zip(before, after, ("host", "server"), strict=True):
        for name in ("Tcp.OutRsts", "Tcp.InErrs", "Tcp.EstabResets", "Tcp.AttemptFails"):
            # The server itself may answer a repeated segment after its connection is closed.
            if (what, name) != ("server", "Tcp.OutRsts"):
                assert now[name] == was[name], (what, name, was[name], now[name])
