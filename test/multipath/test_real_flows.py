# SPDX-License-Identifier: GPL-2.0-only
"""Two paths carry one connection of an unmodified program at the speed of both: 16 MiB by curl and
by iperf3, from a stack of guise to the host kernel's own MPTCP and to another stack of guise. The
limits are those of the kernel's selftest simult_flows: what two paths can carry at once.

A machine that is busy with other things may be late in any run, so the median of three counts, and
most of these are slow tests; test_simulated_flows.py has the same in simulated time.

The host's servers are unmodified, too: before them is socat, whose listener is an MPTCP socket.
"""

from __future__ import annotations

import contextlib
import json
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from topology.content import blob, digest
from topology.leftovers import Leftovers
from topology.namespace import Namespace
from topology.process import Finished, run
from topology.side import PYTHON, program, wait_until_says, without_proof
from topology.simultaneous import CASES, SIZE, Paths, used_both
from topology.twopaths import (
    FAR,
    GUISE_FAR,
    GUISE_NEAR,
    TwoPaths,
    address,
    host_has_mptcp,
)

PORT = 5201
BEHIND = "5202"  # where a server of the host listens, behind socat
RUNS = 3
IPPROTO_MPTCP = 262
EVERYWHERE = f"x{PORT:04x}x00000000x0000000000000000"  # a sockaddr_in without its family

needs_host_mptcp = pytest.mark.skipif(not host_has_mptcp(), reason="the host's kernel has no MPTCP")
slow = pytest.mark.slow


@pytest.fixture
def near(leftovers: Leftovers) -> Iterator[Namespace]:
    with Namespace("near") as near:
        yield near


def server_words(client: str, port: str) -> tuple[list[str], str]:
    """A server for that client, and what it says when it listens."""
    if client == "iperf3":
        return ["iperf3", "-s", "-p", port, "--forceflush"], "Server listening"
    return [PYTHON, program("checksums.py"), "0.0.0.0", port, str(SIZE)], "listening"


@contextlib.contextmanager
def server(two: TwoPaths, client: str, where: str) -> Iterator[int]:
    """On the host in far, or on a stack of guise behind far; gives the end that it is at."""
    with contextlib.ExitStack() as stack:

        def start(words: list[str], says: str) -> None:
            process = stack.enter_context(two.far.start(*words, env=two.environment()))
            wait_until_says(process, says)

        if where == "guise":
            words, says = server_words(client, str(PORT))
            start(two.on_guise(GUISE_FAR, GUISE_NEAR, *words), says)
            yield GUISE_FAR
            return
        start(*server_words(client, BEHIND))
        listener = f"SOCKET-LISTEN:2:{IPPROTO_MPTCP}:{EVERYWHERE},fork,so-reuseaddr"
        start(["socat", "-d", "-d", listener, f"TCP4:127.0.0.1:{BEHIND}"], "listening on")
        yield FAR


Transfer = Callable[[TwoPaths, int, str, Path], tuple[float, int]]


def on_guise(two: TwoPaths, peer: int, *command: str) -> Finished:
    """As a user who wants proof."""
    words = two.on_guise(GUISE_NEAR, peer, *command, flags=("-v",))
    done = run(two.near.command(*words), env=two.environment()).expect()
    return without_proof(done, [])


def by_curl(two: TwoPaths, peer: int, direction: str, folder: Path) -> tuple[float, int]:
    """Milliseconds, and bytes that arrived as they were."""
    url, said = f"http://{address(1, peer)}:{PORT}/", folder / "said"
    words = ["curl", "-sS", "-o", str(said), "-w", "%{time_total}"]
    if direction == "up":
        content = folder / "content"
        content.write_bytes(blob(SIZE))
        done = on_guise(two, peer, *words, "-T", str(content), url)
        assert said.read_text() == digest(blob(SIZE))
    else:
        done = on_guise(two, peer, *words, url)
        assert digest(said.read_bytes()) == digest(blob(SIZE))
    return float(done.text) * 1000, SIZE


def by_iperf3(two: TwoPaths, peer: int, direction: str, folder: Path) -> tuple[float, int]:
    """It ends when all is sent: then a little of it is still on its way."""
    flags = ["-R"] if direction == "down" else []
    words = ["iperf3", "-c", address(1, peer), "-p", str(PORT), "-n", str(SIZE), "--json", *flags]
    received = json.loads(on_guise(two, peer, *words).text)["end"]["sum_received"]
    assert received["bytes"] > SIZE / 2
    return received["seconds"] * 1000, received["bytes"]


CLIENTS: dict[str, Transfer] = {"curl": by_curl, "iperf3": by_iperf3}


def check(near: Namespace, far: Namespace, folder: Path, case: tuple[Paths, str, str, str]) -> None:
    paths, direction, client, where = case
    late, parts = [], []
    with (
        TwoPaths(near, far, folder / "run", paths) as two,
        server(two, client, where) as peer,
    ):
        for _ in range(RUNS):
            before = two.carried()[direction]
            took, size = CLIENTS[client](two, peer, direction, folder)
            after = two.carried()[direction]
            used_both(paths, size, (after[0] - before[0], after[1] - before[1]))
            late.append(took - paths.limit_ms(size))
            parts.append(f"{size} bytes in {took:.0f} ms, at most {paths.limit_ms(size)}")
            if sum(x <= 0 for x in late) > RUNS / 2:
                break  # the third cannot change the median
    assert statistics.median(late) <= 0, parts


def cases() -> Iterator[object]:
    """The first is in make check. Each pair of paths and direction has both programs and both
    kinds of servers; curl to guise and iperf3 to the host are not tried with each."""
    first = CASES[0], "up", "curl", "host"
    chosen = [
        (paths, direction, *how)
        for paths in CASES
        for direction in ("up", "down")
        for how in (("curl", "host"), ("iperf3", "guise"))
    ]
    chosen += [
        (CASES[i], direction, *how)
        for i, direction in ((0, "down"), (3, "up"))
        for how in (("curl", "guise"), ("iperf3", "host"))
    ]
    for case in chosen:
        marks = [needs_host_mptcp] if case[3] == "host" else []
        marks += [] if case == first else [slow]
        yield pytest.param(case, marks=marks, id="-".join(str(part) for part in case))


@pytest.mark.parametrize("case", list(cases()))
def test_both_paths_at_once_in_real_time(
    near: Namespace, far: Namespace, tmp_path: Path, case: tuple[Paths, str, str, str]
) -> None:
    check(near, far, tmp_path, case)
