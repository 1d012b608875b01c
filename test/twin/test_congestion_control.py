# SPDX-License-Identifier: GPL-2.0-only
"""--cc: an upload works with every congestion control of Linux 6.12, whichever the host's kernel
has.
Each connection is asked itself which one it has."""

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from topology.content import blob, digest
from topology.namespace import Namespace
from topology.process import DEADLINE
from topology.side import PYTHON, GuiseSide, HostSide, Side, program

SIZE = 2 << 20
LOSS_BASED = ["reno", "cubic", "bic", "highspeed", "htcp", "hybla", "scalable", "westwood"]
DELAY_BASED = ["bbr", "cdg", "dctcp", "illinois", "lp", "nv", "vegas", "veno", "yeah"]


@pytest.fixture
def port(far: Namespace) -> Iterator[int]:
    """A server in far that answers an upload with its checksum."""
    with far.socket() as listener:
        listener.bind(("0.0.0.0", 0))
        listener.listen()

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return  # shut down
                with connection:
                    connection.settimeout(DEADLINE)
                    received = bytearray()
                    while data := connection.recv(1 << 20):
                        received += data
                    connection.sendall(digest(received).encode())

        listener.settimeout(None)
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(DEADLINE)


def upload(side: Side, port: int) -> dict[str, str]:
    words = [PYTHON, program("upload.py"), side.peer, str(port), str(SIZE)]
    answer: dict[str, str] = json.loads(side.run(*words).expect().text)
    return answer


@pytest.mark.parametrize("cc", LOSS_BASED + DELAY_BASED)
def test_upload_runs_on(cc: str, guise: GuiseSide, port: int) -> None:
    guise.options += ["--cc", cc]
    # Towards a peer that does not mark congestion as it wants it, DCTCP is Reno.
    expected = "dctcp-reno" if cc == "dctcp" else cc
    assert upload(guise, port) == {"cc": expected, "sha256": digest(blob(SIZE))}


def test_dctcp_runs_between_two_stacks_that_have_it(
    far: Namespace, run_dir: Path, guise: GuiseSide
) -> None:
    other = GuiseSide(far, run_dir, "--cc", "dctcp", number=3)
    guise.options += ["--cc", "dctcp"]
    sink = [PYTHON, program("mptcp.py"), "listen", "4", "0.0.0.0", "5000", "tcp"]
    with other.serve(*sink, says="ready"):
        words = [PYTHON, program("upload.py"), other.address, "5000", str(SIZE)]
        answer = json.loads(guise.run(*words).expect().text)
    assert answer == {"cc": "dctcp", "sha256": digest(blob(SIZE))}


def test_default_is_cubic_and_the_host_keeps_its_own(
    host: HostSide, guise: GuiseSide, port: int
) -> None:
    before = upload(host, port)
    assert before["sha256"] == digest(blob(SIZE))
    assert upload(guise, port) == {**before, "cc": "cubic"}
    guise.options += ["--cc", "westwood"]
    assert upload(guise, port)["cc"] == "westwood"
    assert upload(host, port) == before


@pytest.mark.also_without_root
def test_a_program_chooses_one_for_a_connection(guise: GuiseSide) -> None:
    script = (
        "import socket\n"
        "s = socket.socket()\n"
        "for name in ('vegas', 'bbr', 'reno'):\n"
        "    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())\n"
        "    print(s.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b'\\0'))\n"
    )
    assert guise.run(PYTHON, "-c", script).expect().text == "b'vegas'\nb'bbr'\nb'reno'\n"
