# SPDX-License-Identifier: GPL-2.0-only
"""Process trees: programs that a program starts are on its stack, and have the sockets that they
inherit."""

from __future__ import annotations

from pathlib import Path

import pytest
from topology.content import Content
from topology.namespace import Namespace
from topology.side import PYTHON, GuiseSide, HostSide, Side, program

TREES = ["forking_server", "pool", "fork_under_traffic", "children", "inherited", "held"]


@pytest.mark.parametrize("tree", [*TREES, pytest.param("many", marks=pytest.mark.slow)])
def test_tree_of_python(host: HostSide, guise: GuiseSide, tree: str) -> None:
    def run(side: Side) -> str:
        return side.run(PYTHON, program("trees.py"), tree, seconds=120).expect().text

    host.near.ip("link", "set", "lo", "up")
    on_host = run(host)
    assert on_host.strip()
    assert run(guise) == on_host


def test_server_that_forks_for_each_connection(
    host: HostSide, guise: GuiseSide, far: Namespace
) -> None:
    """socat, for each a child of its own, and a program on the socket as inetd starts it."""

    def serve(side: Side, what: str) -> list[str]:
        listen = "TCP-LISTEN:7000,reuseaddr,fork"
        with side.serve("socat", "-d", "-d", listen, what, says="listening on"):
            peer = f"TCP:{side.address}:7000"
            return [
                far.run("socat", "-t20", "STDIO", peer, stdin=b"line %d\n" % i).expect().text
                for i in range(8)
            ]

    for what in ("EXEC:cat", "EXEC:cat,nofork", "SYSTEM:tr a-z A-Z; echo done"):
        on_host = serve(host, what)
        assert on_host[7].lower().startswith("line 7\n")
        assert serve(guise, what) == on_host


@pytest.mark.also_served
def test_shell_with_background_jobs_and_pipelines(
    host: HostSide, guise: GuiseSide, content: Content, tmp_path: Path
) -> None:
    script = """
        for i in 1 2 3 4; do curl -s -o "$2/$i" "$1" & done
        wait
        cat "$2"/[1-4] | sha256sum
        (curl -s "$1" | head -c 1000; curl -s "$1" | tail -c 1000) | sha256sum
        env -i /bin/sh -c 'curl -s "$0" | sha256sum' "$1"
    """

    def run(side: Side) -> str:
        folder = tmp_path / side.name
        folder.mkdir()
        url = f"http://{side.peer}:{content.port}/blob"
        return side.run("sh", "-ec", script, "sh", url, folder).expect().text

    on_host = run(host)
    assert len(set(on_host.split())) == 4
    assert run(guise) == on_host


def test_make_fetches_in_parallel_jobs(
    host: HostSide, guise: GuiseSide, content: Content, tmp_path: Path
) -> None:
    def fetch(side: Side) -> str:
        folder = tmp_path / side.name
        folder.mkdir()
        url = f"http://{side.peer}:{content.port}/blob"
        files = "1 2 3 4 5 6 7 8"
        rules = f"all: {files}\n{files}:\n\t@curl -s -o $@ {url}\n"
        (folder / "Makefile").write_text(rules, encoding="ascii")
        side.run("make", "-s", "-j", "4", "-C", folder).expect()
        return side.run("sh", "-c", f"cat {folder}/[1-8] | sha256sum").expect().text

    assert fetch(guise) == fetch(host)
