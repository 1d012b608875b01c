# SPDX-License-Identifier: GPL-2.0-only
"""What a server says of itself, to be measured."""

from __future__ import annotations

import abc
import http.client
import os
import re
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.servers import packages
from bench.servers.packages import Failed, program


def free_port() -> int:
    """One that nobody has on the stack of this process."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server(abc.ABC):
    name: str
    unit: str
    clients: tuple[int, ...]  # how many at a time
    ended_by = signal.SIGTERM

    @abc.abstractmethod
    def programs(self) -> Mapping[str, str]:
        """What it is made of, client included, and the Debian package of each."""

    def missing(self) -> list[str]:
        return [
            f"{name} (Debian's {package})"
            for name, package in self.programs().items()
            if not packages.find(name)
        ]

    def prepare(self, folder: Path) -> None:  # noqa: B027 # most need nothing
        """Makes in the folder what the runs of both sides need; called once, on the host."""

    def environment(self) -> dict[str, str]:
        return packages.libraries()

    @abc.abstractmethod
    def command(self, folder: Path, port: int) -> list[str]:
        """Starts it in the foreground, listening to 127.0.0.1 and the port."""

    @abc.abstractmethod
    def answers(self, port: int) -> bool:
        """Whether it is ready."""

    def warm(self, port: int, clients: int) -> None:
        """Comes before each load: caches are filled, code is compiled."""
        self.load(port, clients, 1)

    @abc.abstractmethod
    def load(self, port: int, clients: int, seconds: int) -> float:
        """The rate that so many clients get."""


class HttpServer(Server):
    """Loaded by wrk: each client is a connection that is kept as long as the server keeps it."""

    unit = "requests/s"
    clients = (1, 8, 32)

    def answers(self, port: int) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("GET", "/")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def load(self, port: int, clients: int, seconds: int) -> float:
        words = [program("wrk"), "-t", "1", "-c", str(clients), "-d", f"{seconds}s"]
        text = output([*words, f"http://127.0.0.1:{port}/"], seconds)
        rate = re.search(r"^Requests/sec: +([0-9.]+)$", text, re.MULTILINE)
        if not rate or "Socket errors" in text or "Non-2xx" in text:
            raise Failed(f"wrk with {clients} connections:\n{text}")
        return float(rate[1])


def output(words: Sequence[str], seconds: int, env: Mapping[str, str] | None = None) -> str:
    """What a load generator says that is to run so long."""
    try:
        done = subprocess.run(
            words,
            capture_output=True,
            text=True,
            timeout=seconds + 30,
            env={**os.environ, **(env or {})},
        )
    except subprocess.TimeoutExpired as late:
        raise Failed(f"{' '.join(words)} did not end after {seconds} s: {late.stdout!r}") from None
    if done.returncode:
        raise Failed(f"{' '.join(words)}: status {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout
