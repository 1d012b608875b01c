# SPDX-License-Identifier: GPL-2.0-only
"""The receive window opens as on the host: TCP charges a frame little more than the data in it,
whatever its size."""

import pytest
from topology.sender import MSS, Sender
from topology.side import PYTHON, GuiseSide, HostSide, Side

# Takes one connection and reads nothing of it.
SERVER = """
import socket
with socket.create_server(("", 7)) as server:
    print("ready", flush=True)
    connection = server.accept()[0]
    input()
"""
# So large that no window is at its end when the frames are there.
BUFFER = "net.ipv4.tcp_rmem=4096 1048576 6291456"
FRAMES = 3


@pytest.mark.parametrize("segments", [1, 2, 3, 5, 7, 10, 12, 18, 24])
def test_window_opens_as_on_the_host(host: HostSide, guise: GuiseSide, segments: int) -> None:
    def windows(side: Side) -> list[int]:
        with side.serve(PYTHON, "-c", SERVER, says="ready", stdin=-1):
            taps = [name for name in side.far.interfaces() if name.startswith("guise")]
            interface = taps[0] if side is guise else "cable"
            with Sender(side.far, interface, f"{side.subnet}.77", side.address, 7) as sender:
                sender.connect()
                return [sender.send(segments * MSS) for _ in range(FRAMES)]

    host.near.run("sysctl", "-w", BUFFER).expect()
    guise.options += ["--sysctl", BUFFER]
    on_host, on_guise = windows(host), windows(guise)
    # A segment more or less is a matter of the version of Linux.
    assert all(
        abs(here - there) <= 2 * MSS for here, there in zip(on_host, on_guise, strict=True)
    ), (on_host, on_guise)
