# SPDX-License-Identifier: GPL-2.0-only
"""memcached under memcaslap's load, either of them on guise: what was set is what is read."""

from pathlib import Path

import pytest
from topology.namespace import Namespace
from topology.process import Finished, eventually
from topology.side import GuiseSide, HostSide, Side
from topology.unpacked import libraries, server

PORT = 11211


def memcached() -> list[str | Path]:
    return [server("usr/bin/memcached"), "-u", "root", "-l", "0.0.0.0", "-p", str(PORT)]


def load(address: str, *more: str) -> list[str]:
    words = ["memcaslap", "-s", f"{address}:{PORT}", "-T", "2", "-c", "16", "-x", "20000"]
    return [*words, "-X", "512", "-v", "1", *more]


def counts(done: Finished) -> dict[str, str]:
    """What it did and what it found wrong, without its rates."""
    lines = (line.partition(": ") for line in done.expect().text.splitlines())
    names = ("cmd_get", "cmd_set", "get_misses", "verify_misses", "verify_failed", "object_bytes")
    return {name: value for name, _, value in lines if name in names}


# The binary protocol, and several values asked for at once, make other sequences of calls.
KINDS = pytest.mark.parametrize("kind", [[], ["-B"], ["-d", "20"]], ids=["text", "binary", "multi"])


@KINDS
def test_server_bears_the_load(
    host: HostSide, guise: GuiseSide, far: Namespace, kind: list[str]
) -> None:
    def measure(side: Side) -> dict[str, str]:
        with side.start(*memcached(), env=libraries()):
            eventually(lambda: far.reaches(side.address, PORT), "memcached listens")
            return counts(far.run(*load(side.address, *kind)))

    on_host = measure(host)
    assert on_host["cmd_set"] != "0" and on_host["verify_failed"] == "0", on_host
    assert measure(guise) == on_host


@KINDS
def test_load_runs_against_a_server(
    host: HostSide, guise: GuiseSide, far: Namespace, kind: list[str]
) -> None:
    with far.start(*memcached(), env=libraries()):
        eventually(lambda: far.reaches("127.0.0.1", PORT), "memcached listens")

        def measure(side: Side) -> dict[str, str]:
            return counts(side.run(*load(side.peer, *kind)))

        on_host = measure(host)
        assert on_host["cmd_set"] != "0" and on_host["verify_failed"] == "0", on_host
        assert measure(guise) == on_host
