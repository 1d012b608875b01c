# SPDX-License-Identifier: GPL-2.0-only
"""gunicorn with 8 workers, all of which accept from one listener. Those of the kind sync wait in
select for it and for a pipe of the host, and close each connection after its answer; those of the
kind gthread have threads, and keep connections."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from bench.servers import packages
from bench.servers.server import HttpServer

PYTHON = "/usr/bin/python3"  # Debian's, whose package gunicorn is
PACKAGES = (
    packages.UNPACKED / "usr/lib/python3/dist-packages",
    Path("/usr/lib/python3/dist-packages"),
)
WORKERS = 8

Headers = list[tuple[str, str]]


def application(
    environ: Mapping[str, object], start_response: Callable[[str, Headers], object]
) -> Iterable[bytes]:
    """What it serves."""
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "2")])
    return [b"ok"]


class Gunicorn(HttpServer):
    def __init__(self, name: str, kind: str) -> None:
        self.name = name
        self._kind = kind

    def programs(self) -> Mapping[str, str]:
        return {PYTHON: "python3", "wrk": "wrk"}

    def missing(self) -> list[str]:
        there = any((folder / "gunicorn").is_dir() for folder in PACKAGES)
        return [*super().missing(), *([] if there else ["gunicorn (Debian's python3-gunicorn)"])]

    def environment(self) -> dict[str, str]:
        path = [packages.ROOT, *PACKAGES[:1]]
        return {**super().environment(), "PYTHONPATH": ":".join(map(str, path))}

    def command(self, folder: Path, port: int) -> list[str]:
        workers = [
            "--preload",
            "-w",
            str(WORKERS),
            "-k",
            self._kind,
            "--worker-tmp-dir",
            "/dev/shm",
        ]
        if self._kind == "gthread":
            workers += ["--threads", "4"]
        served = ["-b", f"127.0.0.1:{port}", "bench.servers.gunicorn:application"]
        return [PYTHON, "-m", "gunicorn", *workers, *served]
