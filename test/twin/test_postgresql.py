# SPDX-License-Identifier: GPL-2.0-only
"""psql against PostgreSQL on the host's side, which runs as a user without rights."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from topology.content import digest
from topology.namespace import Namespace
from topology.postgres import prepare
from topology.process import Process
from topology.side import GuiseSide, HostSide, Side, wait_until_says
from topology.unpacked import libraries

ROWS = "".join(f"{i}\trow {i * i}\n" for i in range(50_000)).encode()


@pytest.fixture
def postgres(far: Namespace) -> Iterator[Process]:
    with far.start(*prepare(), env=libraries()) as postgres:
        wait_until_says(postgres, "ready to accept connections")
        yield postgres


def psql(side: Side, command: str, stdin: bytes | None = None) -> bytes:
    words = ["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", side.peer]
    words += ["-U", "guise", "-d", "postgres", "-c", command]
    env = {"PGCONNECT_TIMEOUT": "60", "PGSYSCONFDIR": "/nonexistent"}
    return side.run(*words, stdin=stdin, env=env).expect().stdout


@pytest.mark.also_served
def test_rows_go_there_and_come_back(
    host: HostSide, guise: GuiseSide, postgres: Process, tmp_path: Path
) -> None:
    def store(side: Side) -> tuple[bytes, str]:
        psql(side, f"create table rows_{side.name} (number int, words text)")
        psql(side, f"copy rows_{side.name} from stdin", ROWS)
        query = f"select count(*), sum(number), sum(length(words)) from rows_{side.name}"
        sums = psql(side, query)
        rows = psql(side, f"copy (select * from rows_{side.name} order by number) to stdout")
        return sums, digest(rows)

    on_host = store(host)
    assert on_host[0].startswith(b"50000|1249975000|") and on_host[1] == digest(ROWS)
    assert store(guise) == on_host


def test_an_error_of_the_server_is_the_clients(
    host: HostSide, guise: GuiseSide, postgres: Process
) -> None:
    def wrong(side: Side) -> tuple[int, str]:
        words = ["psql", "-X", "-h", side.peer, "-U", "guise", "-d", "postgres"]
        done = side.run(*words, "-c", "select 1 / 0")
        return done.status, done.errors

    on_host = wrong(host)
    assert on_host[0] == 1 and "division by zero" in on_host[1]
    assert wrong(guise) == on_host
