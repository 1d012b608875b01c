# SPDX-License-Identifier: GPL-2.0-only
"""A program that unmaps or overwrites the memory of its stack: guise says so, no other program
hangs, and nothing is left."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest
from topology.named import Named
from topology.process import Process, eventually
from topology.side import GUISE, PYTHON, program, wait_until_says

SEGV = 128 + signal.SIGSEGV
SENTENCE = "the program has unmapped or overwritten memory of its stack"


@pytest.mark.parametrize("what", ["unmap", "header", "memory"])
def test_a_program_that_spoils_its_stack(tmp_path: Path, what: str) -> None:
    named = Named(tmp_path)
    named.up()
    words = [str(GUISE), "run", "--stack", "web", "--", PYTHON, program("spoil.py"), what]
    with named.serve() as server:
        with Process(words, env=named.env, cwd=tmp_path, stdin=subprocess.PIPE) as spoiler:
            wait_until_says(spoiler, "ready")
            assert spoiler.stdin
            spoiler.stdin.write(b"now\n")
            spoiler.stdin.close()
            done = spoiler.finish()
        if what == "unmap":
            # Only this program is concerned: the others go on.
            assert done.status == SEGV and SENTENCE in done.errors, done
            eventually(lambda: named.ls()["web"]["members"] == 1, "one has gone")
            script = "import socket; socket.create_connection(('127.0.0.1', 4000))"
            named.python("web", script)
            server.finish().expect()
            named.call("down", "web").expect()
        else:
            # The damaged memory belongs to all. Each gets an error, or ends by the damage.
            told = server.finish()
            for one in (done, told):
                lost = "Network is down" in one.text and one.status == 0
                assert lost or (one.status == SEGV and SENTENCE in one.errors), one
    eventually(lambda: not named.run_dir.exists() or named.ls() == {}, "nothing is left")
