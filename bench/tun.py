#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""tun-bulk and tun-rr: what a program that cannot be preloaded gets of its network.

    far (iperf3, echo) ──veth── near: the program in
                                  near itself           host
                                  guise run --mode tun   guise
                                  pasta                  pasta
                                  slirp4netns            slirp4netns

One TCP connection from the program to far: Gbit/s out of it, and the time of a byte there and back.
guise goes out over a tap in near, which forwards. All four take turns; the medians are printed, and
what is not installed is left out, which is said. Needs root. tun.py [RUNS] [SECONDS]"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

BUILD = Path(os.environ.get("GUISE_BUILD", Path(__file__).resolve().parents[1] / "build"))
NEAR, FAR = (f"bench-{os.getpid()}-{role}" for role in ("near", "far"))
GATEWAY, ADDRESS = "192.0.2.1", "198.51.100.1"  # both far's; pasta takes a gateway for the host
BULK, ECHO = 5201, 5202

ROUND_TRIPS = """
import socket, sys, time
with socket.create_connection((sys.argv[1], int(sys.argv[2])), 30) as c:
    c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    def turn():
        c.send(b'x')
        c.recv(1)
    for _ in range(200):
        turn()
    trips, begin = 0, time.monotonic()
    while time.monotonic() - begin < float(sys.argv[3]):
        turn()
        trips += 1
    print((time.monotonic() - begin) / trips * 1e6)
"""
ANSWER = """
import socket, sys
server = socket.create_server((sys.argv[1], int(sys.argv[2])))
print('ready', flush=True)
while True:
    c, _ = server.accept()
    c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while data := c.recv(1):
        c.send(data)
"""


PATIENCE = 30  # seconds, beyond those that are measured


class Failed(Exception):
    """A program that was to be measured does not work here."""


def run(*words: str, seconds: int = 0) -> str:
    """In a session of its own, of which nothing is left when it takes too long."""
    program = subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, errors = program.communicate(timeout=seconds + PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(program.pid, signal.SIGKILL)
        program.communicate()
        raise Failed(f"{' '.join(words[4:7])} … took too long") from None
    if program.returncode:
        raise Failed(f"{' '.join(words)}\nended with {program.returncode}: {out}{errors}")
    return out


@contextlib.contextmanager
def namespaces() -> Iterator[None]:
    try:
        for name in (NEAR, FAR):
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        run("ip", "-n", NEAR, "link", "add", "out", "type", "veth", "peer", "out", "netns", FAR)
        run("ip", "-n", FAR, "address", "add", f"{ADDRESS}/32", "dev", "lo")
        for name, address in ((FAR, GATEWAY), (NEAR, "192.0.2.2")):
            run("ip", "-n", name, "address", "add", f"{address}/24", "dev", "out")
            run("ip", "-n", name, "link", "set", "out", "up")
        run("ip", "-n", NEAR, "route", "add", "default", "via", GATEWAY)
        yield
    finally:
        for name in (NEAR, FAR):
            subprocess.run(["ip", "netns", "delete", name], check=False)


@contextlib.contextmanager
def servers() -> Iterator[None]:
    there = ["ip", "netns", "exec", FAR]
    bulk = [*there, "iperf3", "-s", "-B", ADDRESS, "-p", str(BULK)]
    echo = [*there, sys.executable, "-c", ANSWER, ADDRESS, str(ECHO)]
    with (
        subprocess.Popen(bulk, stdout=subprocess.DEVNULL) as first,
        subprocess.Popen(echo, stdout=subprocess.PIPE) as second,
    ):
        try:
            assert second.stdout and second.stdout.readline() == b"ready\n"
            table = f"ss -tlnH src {ADDRESS}:{BULK}".split()
            deadline = time.monotonic() + 30
            while not run(*there, *table).strip() and time.monotonic() < deadline:
                time.sleep(0.05)
            yield
        finally:
            first.terminate()
            second.terminate()


# slirp4netns serves a namespace that somebody else has made. The fifo is open for both, so that
# neither end waits for the other.
SLIRP = """
exec 5<>{fifo}
unshare --user --map-root-user --net \\
    sh -c 'echo ready; read go; exec "$@"' - "$@" 0<{fifo} 1>{out} &
child=$!
while ! grep -q ready {out}; do sleep 0.02; done
slirp4netns --configure --mtu=65520 --ready-fd=4 $child tap0 4>{ready} >/dev/null 2>&1 &
slirp=$!
while ! grep -q 1 {ready}; do sleep 0.02; done
echo go > {fifo}
wait $child
kill $slirp
"""


def through_slirp(words: list[str]) -> str:
    with tempfile.TemporaryDirectory(prefix="guise-bench-") as folder:
        names = {name: f"{folder}/{name}" for name in ("fifo", "out", "ready")}
        os.mkfifo(names["fifo"])
        for name in ("out", "ready"):
            Path(names[name]).touch()
        script = SLIRP.format(**names)
        run("ip", "netns", "exec", NEAR, "sh", "-c", script, "-", *words)
        text = Path(names["out"]).read_text(encoding="utf-8")
        return text.removeprefix("ready\n")


def way(kind: str, words: list[str]) -> str:
    """Runs the program that way; what it says."""
    near = ["ip", "netns", "exec", NEAR]
    if kind == "guise":
        return run(*near, str(BUILD / "guise"), "run", "--mode", "tun", "--", *words)
    if kind == "pasta":
        return run(*near, "pasta", "--quiet", "--config-net", "--", *words)
    if kind == "slirp4netns":
        return through_slirp(words)
    return run(*near, *words)


def bulk(kind: str, seconds: int) -> float:
    # One second longer than is counted, for the start.
    words = ["iperf3", "-J", "-c", ADDRESS, "-p", str(BULK), "-t", str(seconds), "-O", "1"]
    return float(json.loads(way(kind, words))["end"]["sum_received"]["bits_per_second"]) / 1e9


def round_trip(kind: str, seconds: int) -> float:
    words = [sys.executable, "-c", ROUND_TRIPS, ADDRESS, str(ECHO), str(seconds)]
    return float(way(kind, words))


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    seconds = int(sys.argv[2]) if len(sys.argv) > 2 else 2  # iperf3 knows no parts of one
    if os.geteuid():
        sys.exit("needs root, to make network namespaces")
    kinds = ["host", "guise"]
    for program in ("pasta", "slirp4netns"):
        if shutil.which(program):
            kinds.append(program)
        else:
            print(f"{program} is not installed, and left out")
    with namespaces(), servers():
        for name, unit, measure in (("tun-rr", "us", round_trip), ("tun-bulk", "Gbit/s", bulk)):
            found: dict[str, list[float]] = {kind: [] for kind in kinds}
            for _ in range(runs):
                for kind in list(found):
                    try:
                        found[kind].append(measure(kind, seconds))
                    except Failed as why:
                        del found[kind]
                        kinds.remove(kind)
                        print(f"{name}: {kind} is left out: {why}")
            medians = (f"{kind} {statistics.median(all):.3g}" for kind, all in found.items())
            print(f"{name:9} {unit:7} {'  '.join(medians)}", flush=True)


if __name__ == "__main__":
    main()
