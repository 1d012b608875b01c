# SPDX-License-Identifier: GPL-2.0-only
"""A PostgreSQL server with all its processes and clients on one stack, under a user without rights.

Its postmaster forks for each connection and for its work in the background; a child that is killed
makes it end all others and begin anew.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

from topology.namespace import Namespace
from topology.postgres import prepare
from topology.process import Process, eventually
from topology.side import GuiseSide, HostSide, Side
from topology.unpacked import libraries, server
from topology.user import skip_unless_readable

CLIENTS = """
export PGUSER=guise PGDATABASE=postgres PGHOST=%s
until psql -Xqc 'select 1' >/dev/null 2>&1; do sleep 0.1; done
pgbench -i -s 1 -q >/dev/null 2>&1
pgbench -n -c 4 -j 2 -t 100 2>&1 | grep -e processed: -e failed -e aborted
psql -XAt <<'END'
	select inet_client_addr(), inet_server_addr();
	set parallel_setup_cost = 0;
	set parallel_tuple_cost = 0;
	set min_parallel_table_scan_size = 0;
	select count(*), sum(abalance) = (select sum(delta) from pgbench_history)
		from pgbench_accounts;
END
echo worked
"""
SUMS = """
select count(*), (select sum(abalance) from pgbench_accounts) = sum(delta) from pgbench_history
"""
# Those that are there for as long as the server is.
KINDS = {"checkpointer", "background writer", "walwriter", "autovacuum launcher"}


def children(postmaster: int) -> dict[int, str]:
    """The processes that it has, each with what it calls itself."""
    found = {}
    for child in Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split():
        try:
            title = Path(f"/proc/{child}/cmdline").read_text().rstrip("\0")
        except OSError:
            continue
        if title.startswith("postgres: "):
            found[int(child)] = title.removeprefix("postgres: ").rstrip()
    return found


def on_a_stack(pid: int) -> bool:
    return "memfd:guise" in Path(f"/proc/{pid}/maps").read_text()


def psql(side: Side, command: str) -> str:
    """By far."""
    words = ["psql", "-X", "-A", "-t", "-h", side.address, "-U", "guise", "-d", "postgres"]
    return side.far.run(*words, "-c", command).expect().text.strip()


def in_the_background(postmaster: int) -> dict[str, int]:
    """The pids of those that are always there, when they all are."""

    def all_there() -> dict[str, int]:
        found = {title: pid for pid, title in children(postmaster).items() if title in KINDS}
        return found if found.keys() >= KINDS else {}

    return eventually(all_there, "the server's own processes are there")


def recovers(side: Side, postgres: Process) -> None:
    """A backend is killed in a query: all others are ended, and the server begins anew."""
    words = ["psql", "-X", "-h", side.address, "-U", "guise", "-d", "postgres"]
    before = in_the_background(postgres.pid)
    with side.far.start(*words, "-c", "select pg_sleep(1000)") as client:

        def backend() -> int:
            titles = children(postgres.pid).items()
            return next((pid for pid, title in titles if title.endswith("SELECT")), 0)

        os.kill(eventually(backend, "the query has begun"), signal.SIGKILL)
        assert client.finish().status == 2
    ready = "database system is ready to accept connections"
    eventually(lambda: postgres.said().errors.count(ready) == 2, "the server has recovered")
    assert not set(in_the_background(postgres.pid).values()) & set(before.values())


def test_postgresql_serves_recovers_and_ends(
    host: HostSide, guise: GuiseSide, far: Namespace
) -> None:
    skip_unless_readable(65534)

    def serve(side: Side) -> list[str]:
        with side.start(*prepare(CLIENTS % side.address), env=libraries()) as postgres:
            eventually(lambda: "worked" in postgres.said().text, "the clients have ended")
            found = postgres.said().text.splitlines()
            processes = in_the_background(postgres.pid)
            for pid in (postgres.pid, *processes.values()):
                assert on_a_stack(pid) == (side.name == "guise"), (pid, processes)
            pgbench = server("usr/lib/postgresql/*/bin/pgbench")
            words = ["-n", "-c", "2", "-t", "50", "-h", side.address, "-U", "guise", "postgres"]
            done = far.run(pgbench, *words, env=libraries()).expect()
            found += [line for line in done.text.splitlines() if "processed:" in line]
            found.append(psql(side, SUMS))
            recovers(side, postgres)
            found.append(psql(side, SUMS))
            postgres.signal(signal.SIGINT)
            found.append(str(postgres.finish().status))
        assert not [pid for pid in processes.values() if Path(f"/proc/{pid}").exists()]
        return found

    def expected(side: Side) -> list[str]:
        done = "number of transactions actually processed: "
        failed = "number of failed transactions: 0 (0.000%)"
        mine = [f"{side.address}|{side.address}", "SET", "SET", "SET", "100000|t", "worked"]
        return [f"{done}400/400", failed, *mine, f"{done}100/100", "500|t", "500|t", "0"]

    assert serve(host) == expected(host)
    assert serve(guise) == expected(guise)
