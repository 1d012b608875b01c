# SPDX-License-Identifier: GPL-2.0-only
"""psql against PostgreSQL on the host's side, which runs as a user without rights."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from topology.content import digest
from topology.namespace import Namespace
from topology.process import Process
from topology.side import GuiseSide, HostSide, Side, wait_until_says
from topology.unpacked import UNPACKED, libraries, server

# The server refuses to be root, and another user may not be let into build/. So it has a file
# system of its own, in the mount namespace that ip netns exec made, which is gone with it.
SCRIPT = """
set -e
mount -t tmpfs tmpfs /mnt
mkdir /mnt/unpacked /mnt/data
mount --bind "$1" /mnt/unpacked
chown 65534:65534 /mnt/data
chmod 700 /mnt/data
cd /mnt
LD_LIBRARY_PATH=$(echo "$LD_LIBRARY_PATH" | sed "s#$1#/mnt/unpacked#g")
export LD_LIBRARY_PATH HOME=/mnt/data LC_ALL=C
exec setpriv --reuid 65534 --regid 65534 --clear-groups sh -ec '
	"/mnt/unpacked/$1/initdb" -D /mnt/data/db -U guise -A trust --no-sync >/dev/null
	echo "host all all 0.0.0.0/0 trust" >>/mnt/data/db/pg_hba.conf
	exec "/mnt/unpacked/$1/postgres" -D /mnt/data/db -c listen_addresses=* -c fsync=off \\
		-c unix_socket_directories= -c jit=off' postgres "$2"
"""
ROWS = "".join(f"{i}\trow {i * i}\n" for i in range(50_000)).encode()


@pytest.fixture
def postgres(far: Namespace) -> Iterator[Process]:
    folder = server("usr/lib/postgresql/*/bin/postgres").parent
    words: list[str | Path] = [
        "sh",
        "-c",
        SCRIPT,
        "postgres",
        UNPACKED,
        folder.relative_to(UNPACKED),
    ]
    with far.start(*words, env=libraries()) as postgres:
        wait_until_says(postgres, "ready to accept connections")
        yield postgres


def psql(side: Side, command: str, stdin: bytes | None = None) -> bytes:
    words = ["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", side.peer]
    words += ["-U", "guise", "-d", "postgres", "-c", command]
    env = {"PGCONNECT_TIMEOUT": "60", "PGSYSCONFDIR": "/nonexistent"}
    return side.run(*words, stdin=stdin, env=env).expect().stdout


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
