# SPDX-License-Identifier: GPL-2.0-only
"""Programs on one stack that are killed while their connections are busy."""

from __future__ import annotations

from topology.side import PYTHON, GuiseSide, program, wait_until_says

PORT = "5000"


def kill_clients(side: GuiseSide, rounds: int) -> None:
    """Two at a time; what is sent after the last of them must still arrive, and come back."""
    words = [PYTHON, program("kill_clients.py"), side.peer, PORT, str(rounds)]
    with side.far.start(PYTHON, program("echo_server.py"), PORT) as server:
        wait_until_says(server, "ready")
        done = side.run(*words, seconds=60 + rounds).expect()
    assert done.text.splitlines() == [f"{rounds} rounds", "ok"], done
