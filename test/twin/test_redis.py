# SPDX-License-Identifier: GPL-2.0-only
"""redis-server with redis-benchmark and redis-cli, either of them on guise."""

import csv
import io
import shlex

import pytest
from topology.content import blob
from topology.namespace import Namespace
from topology.side import BUILD, GuiseSide, HostSide, Side, wait_until_says

# Without --save it would fork to write its memory down.
SERVER = [
    str(BUILD / "test/redis-server"),
    "--port",
    "6379",
    "--bind",
    "0.0.0.0",
    "--protected-mode",
    "no",
]
SERVER += ["--save", "", "--appendonly", "no"]
READY = "Ready to accept connections"
TESTS = "ping_inline,set,get,incr,lpush,lrange_100,mset"


def benchmark(server: str) -> list[str]:
    words = ["redis-benchmark", "-h", server, "-c", "50", "-n", "4000", "-d", "512", "-P", "4"]
    return [*words, "-t", TESTS, "--csv"]


def rates(text: str) -> list[str]:
    """The names of the tests that gave a rate."""
    rows = list(csv.DictReader(io.StringIO(text)))
    assert all(float(row["rps"]) > 0 for row in rows), text
    return [row["test"] for row in rows]


def test_server_serves_the_benchmark(host: HostSide, guise: GuiseSide, far: Namespace) -> None:
    def measure(side: Side) -> list[str]:
        with side.serve(*SERVER, says=READY):
            return rates(far.run(*benchmark(side.address)).expect().text)

    on_host = measure(host)
    assert len(on_host) > 6
    assert measure(guise) == on_host


@pytest.mark.also_without_root
def test_benchmark_runs_against_a_server(host: HostSide, guise: GuiseSide, far: Namespace) -> None:
    with far.start(*SERVER) as server:
        wait_until_says(server, READY)

        def measure(side: Side) -> list[str]:
            return rates(side.run(*benchmark(side.peer)).expect().text)

        on_host = measure(host)
        assert len(on_host) > 6
        assert measure(guise) == on_host


@pytest.mark.also_served
def test_server_keeps_what_it_is_given(host: HostSide, guise: GuiseSide, far: Namespace) -> None:
    value = blob(4 << 20)

    def keep(side: Side) -> tuple[bytes, str, bytes]:
        with side.serve(*SERVER, says=READY):
            client = ["redis-cli", "-h", side.address]
            stored = far.run(*client, "-x", "SET", "value", stdin=value).expect().stdout
            length = far.run(*client, "STRLEN", "value").expect().text
            read = far.run(*client, "--raw", "GET", "value").expect().stdout
            return stored, length, read

    on_host = keep(host)
    assert on_host == (b"OK\n", f"{len(value)}\n", value + b"\n")
    assert keep(guise) == on_host


@pytest.mark.also_without_root
def test_client_talks_to_a_server_beside_it_on_one_stack(host: HostSide, guise: GuiseSide) -> None:
    """The shell starts both: three processes join one stack, and meet on its loopback."""
    script = (
        f"{shlex.join(SERVER)} >/dev/null & server=$!\n"
        "until redis-cli ping 2>/dev/null | grep -q PONG; do sleep 0.05; done\n"
        "redis-cli set key value; redis-cli get key\n"
        "redis-cli shutdown nosave; wait $server; echo $?\n"
    )

    def talk(side: Side) -> str:
        return side.run("sh", "-c", script).expect().text

    on_host = talk(host)
    assert on_host == "OK\nvalue\n0\n"
    assert talk(guise) == on_host
