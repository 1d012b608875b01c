# SPDX-License-Identifier: GPL-2.0-only
"""The addresses that guise chooses for a stack."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from topology.leftovers import Leftovers
from topology.namespace import Namespace
from topology.process import Finished, Process
from topology.side import PYTHON, GuiseSide, wait_until_says

SHOW = ["ip", "-json", "address", "show", "dev", "eth0"]


@pytest.fixture
def chosen(far: Namespace, run_dir: Path, leftovers: Leftovers) -> GuiseSide:
    """Stacks whose addresses the user has not named."""
    return GuiseSide(far, run_dir, paths=0)


def address(shown: Finished) -> str:
    """The IPv4 address that a stack has."""
    [interface] = json.loads(shown.expect().text)
    [found] = (a["local"] for a in interface["addr_info"] if a["family"] == "inet")
    assert isinstance(found, str)
    return found


def finish(process: Process) -> Finished:
    with process:
        return process.finish()


def test_one_run_after_the_other_has_the_same_addresses(chosen: GuiseSide) -> None:
    assert {address(finish(chosen.start(*SHOW))) for _ in range(10)} == {"10.213.0.2"}


def test_a_run_beside_another_has_other_addresses(chosen: GuiseSide) -> None:
    with chosen.start("sh", "-c", "echo ready; cat", stdin=-1) as first:
        wait_until_says(first, "ready")
        assert address(finish(chosen.start(*SHOW))) == "10.213.0.6"
        assert first.stdin
        first.stdin.close()
        first.finish().expect()
    assert address(finish(chosen.start(*SHOW))) == "10.213.0.2"


def test_a_run_waits_until_the_one_before_has_delivered(far: Namespace, chosen: GuiseSide) -> None:
    with far.socket() as server:
        server.bind(("0.0.0.0", 0))
        server.listen()
        port = server.getsockname()[1]
        script = (
            f"import socket; s = socket.create_connection(('10.213.0.1', {port}))\n"
            "print('ready', flush=True); input(); s.sendall(b'delivered')"
        )
        with chosen.start(PYTHON, "-c", script, stdin=-1) as first:
            wait_until_says(first, "ready")
            with server.accept()[0] as client:
                with far.deaf("guise*"):
                    assert first.stdin
                    first.stdin.write(b"\n")
                    first.stdin.flush()
                    first.finish().expect()
                    second = chosen.start(*SHOW)
                assert address(finish(second)) == "10.213.0.2"
                assert client.recv(100) == b"delivered"
