# SPDX-License-Identifier: GPL-2.0-only
"""node's cluster with 8 workers (cluster.js)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bench.servers.packages import program
from bench.servers.server import HttpServer


class NodeCluster(HttpServer):
    name = "node-cluster"

    def programs(self) -> Mapping[str, str]:
        return {"node": "nodejs", "wrk": "wrk"}

    def command(self, folder: Path, port: int) -> list[str]:
        return [program("node"), str(Path(__file__).with_name("cluster.js")), str(port)]
