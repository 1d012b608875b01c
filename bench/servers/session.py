# SPDX-License-Identifier: GPL-2.0-only
"""One run, on whatever stack this process is: python3 -m bench.servers.session SERVER PORT SECONDS
FOLDER CLIENTS…

Says on stdout, one JSON object a line: that the server answers, and the rate of each number of
clients.
"""

from __future__ import annotations

import json
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench.servers import processes
from bench.servers.catalog import SERVERS
from bench.servers.packages import Failed
from bench.servers.server import Server

READY_SECONDS = 40


def say(**what: object) -> None:
    print(json.dumps(what), flush=True)


def wait_until_ready(server: Server, process: processes.Running, port: int) -> None:
    end = time.monotonic() + READY_SECONDS
    while not server.answers(port):
        if process.status() is not None:
            raise Failed(f"it ended with status {process.status()}")
        if time.monotonic() > end:
            raise Failed(f"it does not answer after {READY_SECONDS} s")
        time.sleep(0.05)


def run(server: Server, port: int, seconds: int, folder: Path, clients: Sequence[int]) -> None:
    words = server.command(folder, port)
    with tempfile.TemporaryFile("w+") as log:
        try:
            with processes.running(
                words, stdout=log, stderr=log, env=server.environment(), ended_by=server.ended_by
            ) as process:
                wait_until_ready(server, process, port)
                say(ready=True)
                for n in clients:
                    server.warm(port, n)
                    say(clients=n, rate=server.load(port, n, seconds))
        except Failed as failed:
            log.seek(0)
            raise Failed(f"{failed}\n{log.read()[-2000:]}") from None


def main() -> int:
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    name, port, seconds, folder, *clients = sys.argv[1:]
    try:
        run(SERVERS[name], int(port), int(seconds), Path(folder), [int(n) for n in clients])
    except Failed as failed:
        print(failed, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
