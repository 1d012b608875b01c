# SPDX-License-Identifier: GPL-2.0-only
"""Debian's python3: urllib, http.server, and asyncio with 1,000 connections at a time."""

import hashlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from topology.content import Content, blob
from topology.namespace import Namespace
from topology.side import PYTHON, GuiseSide, HostSide, Side, program, wait_until_says

CONNECTIONS = 1000


@pytest.mark.also_without_root
def test_urllib_downloads(host: HostSide, guise: GuiseSide, content: Content) -> None:
    script = (
        "import hashlib, sys, urllib.request\n"
        "with urllib.request.urlopen(sys.argv[1]) as answer:\n"
        "    print(answer.status, hashlib.sha256(answer.read()).hexdigest())\n"
    )

    def fetch(side: Side) -> str:
        url = f"http://{side.peer}:{content.port}/blob"
        return side.run(PYTHON, "-c", script, url).expect().text

    on_host = fetch(host)
    assert on_host == f"200 {content.sha256}\n"
    assert fetch(guise) == on_host


@pytest.mark.also_served
def test_http_server_serves_several_clients_at_once(
    host: HostSide, guise: GuiseSide, far: Namespace, tmp_path: Path
) -> None:
    content = blob(6 << 20)
    (tmp_path / "blob").write_bytes(content)
    server = [PYTHON, "-u", "-m", "http.server", "8000", "-d", str(tmp_path)]

    def serve(side: Side) -> list[str]:
        def fetch(_: int) -> str:
            done = far.run("curl", "-sS", f"http://{side.address}:8000/blob").expect()
            return hashlib.sha256(done.stdout).hexdigest()

        with side.serve(*server, says="Serving HTTP"), ThreadPoolExecutor(4) as clients:
            return list(clients.map(fetch, range(8)))

    on_host = serve(host)
    assert on_host == [hashlib.sha256(content).hexdigest()] * 8
    assert serve(guise) == on_host


def test_asyncio_server_holds_a_thousand_connections(
    host: HostSide, guise: GuiseSide, far: Namespace
) -> None:
    def echo(side: Side) -> str:
        with side.serve(PYTHON, program("echo_server.py"), "7", says="ready"):
            words = [PYTHON, program("echo_clients.py"), side.address, "7", str(CONNECTIONS)]
            return far.run(*words).expect().text

    on_host = echo(host)
    assert on_host == f"{CONNECTIONS} of {CONNECTIONS}\n"
    assert echo(guise) == on_host


@pytest.mark.also_without_root
def test_asyncio_client_holds_a_thousand_connections(
    host: HostSide, guise: GuiseSide, far: Namespace
) -> None:
    with far.start(PYTHON, program("echo_server.py"), "7") as server:
        wait_until_says(server, "ready")

        def echo(side: Side) -> str:
            words = [PYTHON, program("echo_clients.py"), side.peer, "7", str(CONNECTIONS)]
            return side.run(*words).expect().text

        on_host = echo(host)
        assert on_host == f"{CONNECTIONS} of {CONNECTIONS}\n"
        assert echo(guise) == on_host
