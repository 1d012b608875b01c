# SPDX-License-Identifier: GPL-2.0-only
"""Measures servers on guise and on this host, and prints a table.

A run is a process of its own (session.py): it starts the server, waits until it answers, loads it
with 1 to 64 clients one after the other, and ends it. On guise this process and all that it starts
are on one stack without a link (guise run --link none); on the host the same goes over its
loopback. The runs of the two sides alternate, and the medians are reported.

That a server is where it should be is looked at from this process, which is on the host: the
server's port must be closed here while it runs on guise, and open while it runs on the host; and
guise says at the end of each run how many programs and sockets of it were not on the stack.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

from bench.servers import machine, processes
from bench.servers.catalog import SERVERS
from bench.servers.packages import BUILD, Failed
from bench.servers.server import Server, free_port

SIDES = ("guise", "host")
TRIES = 5
START_SECONDS = 60  # that a server and all else beside the load may take
Rates = dict[int, float]


def say(text: str) -> None:
    print(f"bench-servers: {text}", file=sys.stderr, flush=True)


def row(*columns: str) -> str:
    name, unit, *figures = columns
    return f"{name:<20} {unit:<16}" + "".join(f"{figure:>10}" for figure in figures)


def open_here(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(5)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def check_place(side: str, port: int) -> None:
    """Called while the server answers its own side."""
    if side == "guise" and open_here(port):
        raise Failed(f"the server is not on the stack: its port {port} is open on the host")
    if side == "host" and not open_here(port):
        raise Failed(f"the server is not on the host: its port {port} is closed here")


def check_report(errors: str) -> None:
    """What guise says at the end of a run: everything was on the stack."""
    try:
        said = json.loads(errors.splitlines()[-1])
    except (IndexError, ValueError):
        raise Failed(f"guise did not say how the run ended: {errors[-1000:]}") from None
    wrong = {key: said[key] for key in ("escaped", "untrapped", "outside", "lost") if said[key]}
    if wrong:
        raise Failed(f"not all of it was on the stack: {wrong}")


def measure(side: str, server: Server, clients: Sequence[int], seconds: int, folder: Path) -> Rates:
    port = free_port()
    session = [sys.executable, "-m", "bench.servers.session", server.name, str(port), str(seconds)]
    session += [str(folder), *map(str, clients)]
    guise = [str(BUILD / "guise"), "run", "--json", "--link", "none", "--"]
    deadline = START_SECONDS + len(clients) * 2 * (seconds + 5)
    rates: Rates = {}
    with tempfile.TemporaryFile("w+") as errors:
        with processes.running(
            [*(guise if side == "guise" else []), *session],
            stdout=subprocess.PIPE,
            stderr=errors,
        ) as run:
            late = threading.Timer(deadline, run.end)
            late.start()
            try:
                for line in run.lines():
                    said = json.loads(line)
                    if "ready" in said:
                        check_place(side, port)
                    else:
                        rates[said["clients"]] = said["rate"]
                status = run.wait()
            finally:
                expired = not late.is_alive()
                late.cancel()
        processes.end_orphans(10)
        errors.seek(0)
        text = errors.read()
    if expired:
        raise Failed(f"not done within {deadline} s: {text[-2000:]}")
    if status:
        raise Failed(f"status {status}: {text[-2000:]}")
    if side == "guise":
        check_report(text)
    return rates


def undisturbed(
    side: str, server: Server, clients: Sequence[int], seconds: int, folder: Path
) -> Rates:
    """A run in which the machine did not stand still: its figures would mean nothing."""
    for _ in range(TRIES):
        with machine.watched() as stood_still:
            rates, failed = Rates(), None
            try:
                rates = measure(side, server, clients, seconds, folder)
            except Failed as reason:
                failed = Failed(f"on {side}: {reason}")
        if not stood_still:
            if failed:
                raise failed
            return rates
        still = f"this machine stood still for {sum(stood_still):.1f} s"
        say(f"{server.name}, {side}: once more, for {still}")
    raise Failed(f"on {side}: this machine stood still in each of {TRIES} runs")


def compare(server: Server, clients: Sequence[int], runs: int, seconds: int) -> None:
    """Prints the rows of a server."""
    rates: dict[str, list[Rates]] = {side: [] for side in SIDES}
    with tempfile.TemporaryDirectory(prefix="guise-bench-") as name:
        folder = Path(name)
        server.prepare(folder)
        for i in range(runs):
            for side in SIDES:
                rates[side].append(undisturbed(side, server, clients, seconds, folder))
                figures = ", ".join(f"{n}: {rate:.0f}" for n, rate in rates[side][-1].items())
                say(f"{server.name}, {side}, run {i + 1} of {runs}: {figures}")
    for n in clients:
        guise, host = (statistics.median(run[n] for run in rates[side]) for side in SIDES)
        columns = (f"{guise:.0f}", f"{host:.0f}", f"{guise / host:.2f}")
        print(row(f"{server.name}-{n}", server.unit, *columns), flush=True)


def chosen(patterns: Sequence[str]) -> dict[str, list[int]]:
    """The clients of each server that any pattern names, as "jvm", "jvm-32" or "*-32"."""
    found: dict[str, list[int]] = {}
    unknown = set(patterns)
    for server in SERVERS.values():
        for n in server.clients:
            names = (server.name, f"{server.name}-{n}")
            fits = {p for p in patterns if any(fnmatch.fnmatch(name, p) for name in names)}
            if fits or not patterns:
                found.setdefault(server.name, []).append(n)
            unknown -= fits
    if unknown:
        raise SystemExit(
            f"bench-servers: there is no {', '.join(sorted(unknown))}; --list says what there is"
        )
    return found


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench/servers/run",
        description="Real servers with their clients, on one stack of guise and on this host.",
    )
    parser.add_argument("name", nargs="*", help="what to measure, as jvm, jvm-32, '*-32' (all)")
    parser.add_argument("--runs", type=int, default=3, help="on each side (%(default)s)")
    parser.add_argument("--seconds", type=int, default=3, help="of each load (%(default)s)")
    parser.add_argument("--list", action="store_true", help="say what there is, and end")
    given = parser.parse_args()
    if given.runs < 1 or given.seconds < 1:
        parser.error("--runs and --seconds are at least 1")
    return given


def main() -> int:
    given = arguments()
    plan = chosen(given.name)
    if given.list:
        for name, clients in plan.items():
            print("\n".join(f"{name}-{n}" for n in clients))
        return 0
    if not os.access(BUILD / "guise", os.X_OK):
        raise SystemExit(f"bench-servers: {BUILD}/guise is not there: make builds it")
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    processes.adopt_orphans()
    status = 0
    print(row("name", "unit", *SIDES, "ratio"), flush=True)
    for name, clients in plan.items():
        if missing := SERVERS[name].missing():
            say(f"{name} is not measured: {', '.join(missing)} not found")
            say("    ./bootstrap bench-servers installs or unpacks what is needed")
            continue
        try:
            compare(SERVERS[name], clients, given.runs, given.seconds)
        except Failed as failed:
            say(f"{name} FAILED, {failed}")
            status = 1
    return status


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        say("interrupted; everything that it started is ended")
        sys.exit(130)
    finally:
        processes.end_orphans(0)
