# SPDX-License-Identifier: GPL-2.0-only
"""HAProxy with 4 threads before the thread pool, whose connections it keeps."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bench.servers.packages import program
from bench.servers.pool import POOL, Pool
from bench.servers.server import free_port

CONFIGURATION = """
global
    nbthread 4
defaults
    mode http
    timeout connect 10s
    timeout client 10s
    timeout server 10s
listen front
    bind 127.0.0.1:{front}
    http-reuse always
    server back 127.0.0.1:{back}
"""
SCRIPT = """
"$1" "$2" &
exec "$3" -db -f "$4"
"""


class Haproxy(Pool):
    name = "haproxy"

    def programs(self) -> Mapping[str, str]:
        return {"haproxy": "haproxy", **super().programs()}

    def command(self, folder: Path, port: int) -> list[str]:
        back = free_port()
        configuration = folder / "haproxy.cfg"
        configuration.write_text(CONFIGURATION.format(front=port, back=back), encoding="ascii")
        words = [str(POOL), str(back), program("haproxy"), str(configuration)]
        return ["sh", "-c", SCRIPT, "sh", *words]
