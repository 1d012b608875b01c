# SPDX-License-Identifier: GPL-2.0-only
"""The examples do what they say."""

import re
from collections.abc import Iterator

import pytest
from topology.content import blob
from topology.namespace import Namespace
from topology.process import Process, eventually, run
from topology.side import BUILD

EXAMPLES = BUILD / "examples"


@pytest.mark.parametrize("words", [[], ["bbr"]], ids=["default", "bbr"])
def test_two_stacks_on_a_cable(words: list[str]) -> None:
    line = run([EXAMPLES / "pair", *words]).expect().text
    found = re.fullmatch(
        r"100000000 bytes sent, 100000000 received, (\w+), (\d+) Mbit/s, (\d+) retransmitted\n",
        line,
    )
    assert found, line
    assert found[1] == "".join(words or ["cubic"])
    assert int(found[2]) > 0


def test_unknown_congestion_control_ends_it_with_a_sentence() -> None:
    done = run([EXAMPLES / "pair", "pigeon"]).expect(1)
    assert done.errors.startswith("pair: congestion control: ") and "pigeon" in done.errors


@pytest.fixture
def echo(far: Namespace) -> Iterator[Process]:
    with far.start(EXAMPLES / "echo", "tap0") as server:
        eventually(lambda: not server.running() or "tap0" in far.interfaces(), "there is a tap")
        assert server.running(), server.said()
        far.ip("address", "add", "192.0.2.1/24", "dev", "tap0")
        far.ip("link", "set", "tap0", "up")
        eventually(lambda: far.reaches("192.0.2.2", 7), "the server listens")
        yield server


def test_echo_server(far: Namespace, echo: Process) -> None:
    sent = blob(100_000)
    for _ in range(2):
        with far.socket() as client:
            client.connect(("192.0.2.2", 7))
            got = b""
            for at in range(0, len(sent), 10_000):
                piece = sent[at : at + 10_000]
                client.sendall(piece)
                while len(got) < at + len(piece):
                    got += client.recv(65536)
            assert got == sent
    assert echo.running()
    # Linux's TCP with BBR, whatever this host has: the example sets it or ends.
    assert not echo.said().errors
