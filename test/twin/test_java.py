# SPDX-License-Identifier: GPL-2.0-only
"""A JVM that serves HTTP and another that asks: two processes on one stack, and on two."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from topology.namespace import Namespace, Word
from topology.process import run
from topology.side import GuiseSide, HostSide, Side, program

TIMES = 40
RIGHT = f"HTTP_1_1: {TIMES}\nHTTP_2: {TIMES}\nrefused\n"
# $1: a folder of classes. The server is told to end when its client has.
TOGETHER = """
java -cp "$1" Http serve 8080 >"$1/server" &
until grep -q serves "$1/server"; do sleep 0.1; done
java -cp "$1" Http ask http://127.0.0.1:8080/ "$2"
kill $!
wait
cat "$1/server"
"""

pytestmark = pytest.mark.slow


@pytest.fixture
def java(tmp_path: Path) -> list[Word]:
    if not shutil.which("javac"):
        pytest.skip("javac is not installed: it comes with default-jdk-headless")
    run(["javac", "-d", tmp_path / "classes", program("Http.java")]).expect()
    return ["java", "-cp", tmp_path / "classes", "Http"]


def test_server_and_client_on_one_stack(
    host: HostSide, guise: GuiseSide, java: list[Word], tmp_path: Path
) -> None:
    def talk(side: Side) -> str:
        words: list[Word] = ["sh", "-ec", TOGETHER, "sh", tmp_path / "classes", str(TIMES)]
        return side.run(*words).expect().text

    on_host = talk(host)
    assert on_host == RIGHT + "serves\nstopped\n"
    assert talk(guise) == on_host


def test_server_and_client_on_two_stacks(
    host: HostSide, guise: GuiseSide, far: Namespace, run_dir: Path, java: list[Word]
) -> None:
    """The path between them: a tap each, and far between."""
    other = GuiseSide(far, run_dir, number=3)

    def ask(server: Side, client: Side) -> str:
        with server.serve(*java, "serve", "8080", says="serves"):
            return (
                client.run(*java, "ask", f"http://{server.address}:8080/", str(TIMES)).expect().text
            )

    assert ask(guise, other) == RIGHT
    assert ask(other, guise) == RIGHT
    assert ask(host, guise) == RIGHT
