# SPDX-License-Identifier: GPL-2.0-only
"""A sender that asks for timestamps gets one for each step of its data, as on the host."""

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest
from topology.namespace import Namespace
from topology.side import PYTHON, GuiseSide, HostSide, Side, program

STEPS = {"udp": ["scheduled", "sent"], "tcp": ["scheduled", "sent", "acknowledged"]}


@contextlib.contextmanager
def sink(far: Namespace, how: str) -> Iterator[int]:
    """Takes what comes to a port, which it returns."""
    kind = socket.SOCK_DGRAM if how == "udp" else socket.SOCK_STREAM
    with far.socket(kind=kind) as server:
        server.bind(("", 0))
        if how == "udp":
            yield server.getsockname()[1]
            return
        server.listen()

        def take() -> None:
            with contextlib.suppress(OSError), server.accept()[0] as connection:
                while connection.recv(65536):
                    pass

        taker = threading.Thread(target=take, daemon=True)
        taker.start()
        yield server.getsockname()[1]
        taker.join(1)


@pytest.mark.parametrize("how", STEPS)
def test_a_sender_hears_of_each_step(host: HostSide, guise: GuiseSide, how: str) -> None:
    def steps(side: Side) -> str:
        with sink(side.far, how) as port:
            words = [PYTHON, program("timestamps.py"), how, side.peer, str(port), *STEPS[how]]
            return side.run(*words).expect().text

    on_host = steps(host)
    assert on_host == f"{' '.join(STEPS[how])} True\n"
    assert steps(guise) == on_host
