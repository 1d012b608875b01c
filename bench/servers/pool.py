# SPDX-License-Identifier: GPL-2.0-only
"""A pool of 8 threads, each of which waits for sockets and for an eventfd (pool.c)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bench.servers.packages import BUILD
from bench.servers.server import HttpServer

POOL = BUILD / "bench/servers/pool"


class Pool(HttpServer):
    name = "thread-pool"

    def programs(self) -> Mapping[str, str]:
        return {"wrk": "wrk"}

    def missing(self) -> list[str]:
        there = POOL.exists()
        return [*super().missing(), *([] if there else [f"{POOL} (make bench-servers builds it)"])]

    def command(self, folder: Path, port: int) -> list[str]:
        return [str(POOL), str(port)]
