# SPDX-License-Identifier: GPL-2.0-only
"""A stack on a Unix stream socket, with another implementation of the framing at its other end.

far ──tap── qemu_peer.py ──Unix socket── a stack of guise
10.77.5.1                                10.77.5.2
"""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from topology.content import Content
from topology.killing import kill_clients
from topology.leftovers import Leftovers
from topology.namespace import Namespace
from topology.process import Finished, eventually
from topology.side import PYTHON, GuiseSide, HostSide, Side, wait_until_says

PEER = str(Path(__file__).resolve().with_name("qemu_peer.py"))
NUMBER = 5
PASST_MTU = 65520  # its own


@pytest.fixture
def stream(
    far: Namespace, run_dir: Path, tmp_path: Path, leftovers: Leftovers
) -> Iterator[GuiseSide]:
    side = GuiseSide(far, run_dir, number=NUMBER, paths=0)
    path = tmp_path / "socket"
    with far.start(PYTHON, PEER, path, "peer0") as peer:
        wait_until_says(peer, "waiting")
        far.ip("address", "add", f"{side.peer}/24", "dev", "peer0")
        far.ip("address", "add", f"{side.peer6}/64", "dev", "peer0", "nodad")
        far.ip("link", "set", "peer0", "up")
        leftovers.look()
        side.options = ["--link", f"stream:{path}", "--ip", f"{side.address}/24"]
        side.options += ["--ip", f"{side.address6}/64"]
        yield side


def test_a_program_downloads_and_uploads_through_a_peer_with_qemus_framing(
    host: HostSide, stream: GuiseSide, content: Content, tmp_path: Path
) -> None:
    file = tmp_path / "blob"
    file.write_bytes(content.blob)

    def both_ways(side: Side) -> list[str]:
        four, six = (f"http://{place}:{content.port}" for place in (side.peer, f"[{side.peer6}]"))
        # One program, for the peer takes one visitor.
        script = f"curl -sS {four}/blob && curl -sS -T {file} {six}/there"
        out = side.run("sh", "-c", script).expect().stdout
        down, up = out[: len(content.blob)], out[len(content.blob) :]
        return [hashlib.sha256(down).hexdigest(), up.decode(), content.uploads[-1]]

    on_host = both_ways(host)
    assert on_host == [content.sha256, f"{content.sha256}\n", content.sha256]
    assert both_ways(stream) == on_host


def set_mtu(stream: GuiseSide, mtu: int) -> None:
    stream.far.ip("link", "set", "peer0", "mtu", str(mtu))
    stream.options[1] += f",mtu={mtu}"


@pytest.mark.parametrize(("mtu", "rounds"), [(1500, 25), (PASST_MTU, 150)])
def test_killed_programs_leave_the_link_in_step(stream: GuiseSide, mtu: int, rounds: int) -> None:
    """A program that is killed in the middle of a frame leaves it whole to the others."""
    set_mtu(stream, mtu)
    kill_clients(stream, rounds)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("mtu", [1500, PASST_MTU])
def test_many_killed_programs_leave_the_link_in_step(stream: GuiseSide, mtu: int) -> None:
    set_mtu(stream, mtu)
    kill_clients(stream, 2500)


def test_a_peer_that_speaks_something_else_loses_the_link(
    far: Namespace, run_dir: Path, leftovers: Leftovers, tmp_path: Path
) -> None:
    path = tmp_path / "socket"
    side = GuiseSide(far, run_dir, number=NUMBER, paths=0)
    side.options = ["--link", f"stream:{path}", "--ip", f"{side.address}/24"]
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(1)
        listener.settimeout(60)
        with side.start("sh", "-c", "read line; ip -br link show eth0", stdin=-1) as process:
            visitor, _ = listener.accept()
            with visitor:
                visitor.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")

                def lost() -> Finished | None:
                    said = process.said()
                    return said if "is lost" in said.errors else None

                eventually(lost, "the loss is said")
                assert process.stdin
                process.stdin.write(b"\n")
                process.stdin.close()
                done = process.finish().expect()
    assert "NO-CARRIER" in done.text, done
    assert f"a frame of {int.from_bytes(b'SSH-', 'big')} bytes" in done.errors, done
    assert "65535" in done.errors and len(done.errors.splitlines()) == 1, done
