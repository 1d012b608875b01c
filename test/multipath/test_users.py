# SPDX-License-Identifier: GPL-2.0-only
"""Uplinks of a user without root: what root sets up once, and what the user then has and has not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from topology.granted import Granted
from topology.namespace import Namespace
from topology.private import Machine, as_user
from topology.process import eventually
from topology.side import GUISE, PYTHON, program, wait_until_says
from topology.uplinks import PORT, SERVER, SERVER6, goes_on

pytestmark = pytest.mark.skipif(
    not Path("/proc/sys/net/mptcp/enabled").exists(), reason="the host's kernel has no MPTCP"
)

ALICE, BOB = (500_000 + 2 * (os.getpid() % 100_000) + i for i in range(2))

SEND = [PYTHON, program("steady.py"), "send"]


@pytest.fixture
def granted(far: Namespace, run_dir: Path) -> Iterator[Granted]:
    with Machine(far, route=False) as machine:
        if machine.run(*as_user(ALICE, "test", "-x", GUISE)).status:
            pytest.skip(f"{GUISE} lies where only root may go")
        with Granted(machine, run_dir, ALICE) as granted:
            yield granted


def test_first(granted: Granted) -> None:
    print(granted.setup("--uplink", "up1", "--uplink", "up2").expect().text)
    before = granted.host()
    with granted.service() as service, granted.serve():
        with granted.begin(*SEND, SERVER, PORT) as client:
            try:
                goes_on(client)
            finally:
                print(client.said(), service.said())
                print(granted.host())
                print(granted.machine.shell("ip a; ip route"))
            eventually(lambda: granted.subflows() == {"10.88.1.2", "10.88.2.2"}, "both")
