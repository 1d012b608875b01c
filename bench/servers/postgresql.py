# SPDX-License-Identifier: GPL-2.0-only
"""PostgreSQL with pgbench -S: each client has a process of the server, which waits for its
connection and for its latch, a descriptor of the host.

The cluster is made once, and read by the servers of both sides. PostgreSQL refuses to run as root:
started by root it is put into a user namespace in which root has another number, and so may read
and write what root may.
"""

from __future__ import annotations

import math
import os
import re
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from bench.servers import packages, processes
from bench.servers.packages import Failed, program
from bench.servers.server import Server, free_port, output

USER = "guise"


class PostgreSQL(Server):
    name = "postgresql"
    unit = "queries/s"
    clients = (1, 4, 16, 64)
    ended_by = signal.SIGINT  # without waiting for clients
    _connecting = 0  # seconds that so many clients need

    def programs(self) -> Mapping[str, str]:
        needed = dict.fromkeys(("postgres", "initdb", "pgbench", "pg_isready"), "postgresql")
        return {**needed, "unshare": "util-linux"}

    def prepare(self, folder: Path) -> None:
        words = ["-D", str(folder / "db"), "-U", USER, "-A", "trust", "--no-sync"]
        output([*self._as_user(), program("initdb"), *words], 60, self.environment())
        port = free_port()
        with processes.running(
            self.command(folder, port),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=self.environment(),
            ended_by=self.ended_by,
        ) as server:
            end = time.monotonic() + 30
            while not self.answers(port):
                if time.monotonic() > end or server.status() is not None:
                    raise Failed("the server does not start on the host")
                time.sleep(0.05)
            self._pgbench(port, 60, "-i", "-q")

    def environment(self) -> dict[str, str]:
        client = {"PGUSER": USER, "PGDATABASE": "postgres"}
        return {**packages.libraries(), "LC_ALL": "C", **client}

    def command(self, folder: Path, port: int) -> list[str]:
        settings = [
            "listen_addresses=127.0.0.1",
            "unix_socket_directories=",
            "fsync=off",
            "jit=off",
        ]
        words = [word for setting in settings for word in ("-c", setting)]
        database = ["-D", str(folder / "db"), "-p", str(port)]
        return [*self._as_user(), program("postgres"), *database, *words]

    def answers(self, port: int) -> bool:
        words = [program("pg_isready"), "-q", *self._to(port)]
        env = {**os.environ, **self.environment()}
        return subprocess.run(words, env=env, timeout=10).returncode == 0

    def warm(self, port: int, clients: int) -> None:
        text = self._pgbench(port, 20, "-n", "-S", "-c", str(clients), "-t", "100")
        connected = re.search(r"^initial connection time = ([0-9.]+) ms$", text, re.MULTILINE)
        if not connected:
            raise Failed(f"pgbench with {clients} clients:\n{text}")
        self._connecting = math.ceil(float(connected[1]) / 1000)

    def load(self, port: int, clients: int, seconds: int) -> float:
        # The time until all are connected is part of pgbench's, and not of its rate.
        seconds += self._connecting
        words = ["-n", "-S", "-j", "1", "-c", str(clients), "-T", str(seconds)]
        text = self._pgbench(port, seconds, *words)
        rate = re.search(r"^tps = ([0-9.]+)", text, re.MULTILINE)
        failed = re.search(r"^number of failed transactions: ([1-9].*)", text, re.MULTILINE)
        if not rate or failed:
            raise Failed(f"pgbench with {clients} clients:\n{text}")
        return float(rate[1])

    def _pgbench(self, port: int, seconds: int, *words: str) -> str:
        words = (program("pgbench"), *words, *self._to(port))
        return output(words, seconds, self.environment())

    def _to(self, port: int) -> list[str]:
        return ["-h", "127.0.0.1", "-p", str(port)]

    def _as_user(self) -> list[str]:
        if os.geteuid():
            return []
        return [program("unshare"), "--map-user=65534", "--map-group=65534", "--"]
