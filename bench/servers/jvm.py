# SPDX-License-Identifier: GPL-2.0-only
"""A JVM's own HTTP server (Serve.java)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bench.servers.packages import program
from bench.servers.server import HttpServer, output


class Jvm(HttpServer):
    name = "jvm"

    def programs(self) -> Mapping[str, str]:
        return {"java": "default-jdk-headless", "javac": "default-jdk-headless", "wrk": "wrk"}

    def environment(self) -> dict[str, str]:
        return {}

    def prepare(self, folder: Path) -> None:
        output(
            [program("javac"), "-d", str(folder), str(Path(__file__).with_name("Serve.java"))], 60
        )

    def command(self, folder: Path, port: int) -> list[str]:
        # Else each answer waits for the client's delayed ACK, on either side.
        at_once = "-Dsun.net.httpserver.nodelay=true"
        return [program("java"), at_once, "-cp", str(folder), "Serve", str(port)]
