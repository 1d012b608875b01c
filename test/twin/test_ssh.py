# SPDX-License-Identifier: GPL-2.0-only
"""The ssh client, and scp on top of it, against OpenSSH's own server on the host's side."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from topology.content import blob, digest
from topology.namespace import Namespace
from topology.process import Process
from topology.side import GuiseSide, HostSide, Side, wait_until_says
from topology.sshd import options, prepare
from topology.unpacked import libraries

BLOB = blob(3 << 20)


@pytest.fixture
def sshd(far: Namespace, tmp_path: Path) -> Iterator[Process]:
    words = prepare(tmp_path)
    with far.start(*words, env=libraries()) as sshd:
        wait_until_says(sshd, "Server listening on :: port 2222")
        yield sshd


def test_runs_commands_and_carries_their_data(
    host: HostSide, guise: GuiseSide, sshd: Process, tmp_path: Path
) -> None:
    def talk(side: Side) -> tuple[str, str, int]:
        ssh = ["ssh", "-p", "2222", *options(tmp_path), f"root@{side.peer}"]
        copy = tmp_path / side.name
        up = side.run(*ssh, f"tee {copy} | sha256sum", stdin=BLOB).expect().text
        down = side.run(*ssh, f"cat {copy}").expect()
        return up.split()[0], digest(down.stdout), side.run(*ssh, "exit 3").status

    on_host = talk(host)
    assert on_host == (digest(BLOB), digest(BLOB), 3)
    assert talk(guise) == on_host


def test_scp_copies_both_ways(
    host: HostSide, guise: GuiseSide, sshd: Process, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    source.write_bytes(BLOB)

    def copy(side: Side) -> list[str]:
        there, back = tmp_path / f"{side.name}-there", tmp_path / f"{side.name}-back"
        scp = ["scp", "-q", "-P", "2222", *options(tmp_path)]
        side.run(*scp, source, f"root@{side.peer}:{there}").expect()
        side.run(*scp, f"root@{side.peer}:{there}", back).expect()
        return [digest(file.read_bytes()) for file in (there, back)]

    on_host = copy(host)
    assert on_host == [digest(BLOB)] * 2
    assert copy(guise) == on_host


def test_forwards_a_port(
    host: HostSide, guise: GuiseSide, far: Namespace, sshd: Process, tmp_path: Path
) -> None:
    """A program connects to the client's side; the server connects on to nc beside it."""

    def forward(side: Side) -> str:
        with far.start("nc", "-n", "-v", "-N", "-l", "7000") as sink:
            wait_until_says(sink, "Listening on")
            # The first of two values counts.
            words = ["ssh", "-p", "2222", "-o", "LogLevel=DEBUG", *options(tmp_path), "-N"]
            words += ["-L", f"{side.address}:7001:127.0.0.1:7000"]
            with side.start(*words, f"root@{side.peer}") as ssh:
                # Only then does it listen: what it says of listening comes before bind().
                wait_until_says(ssh, "[port listener]")
                far.run("nc", "-N", side.address, "7001", stdin=BLOB).expect()
                return digest(sink.finish().expect().stdout)

    on_host = forward(host)
    assert on_host == digest(BLOB)
    assert forward(guise) == on_host
