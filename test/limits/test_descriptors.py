# SPDX-License-Identifier: GPL-2.0-only
"""guise's own descriptors do not take a program's numbers: it can have as many as its soft limit
says, at each number, and so have the programs that it starts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from topology.process import run
from topology.side import GUISE

PROGRAM = """
import json, os, resource, socket, subprocess, sys

own = socket.create_server(("127.0.0.1", 0)) if len(sys.argv) < 2 else None
most = resource.getrlimit(resource.RLIMIT_NOFILE)
given = []
try:
    while True:
        given.append(os.dup(0))
except OSError as error:
    ended = error.errno
for fd in given:
    os.close(fd)
# Each number from where guise's were, up to the limit.
for fd in range(max(given[0], most[0] - 200), most[0]):
    os.dup2(0, fd)
    os.close(fd)
closed = os.posix_spawn(
    "/bin/sh", ["sh", "-c", "true"], os.environ, file_actions=[(os.POSIX_SPAWN_CLOSE, 0)]
)
assert os.waitpid(closed, 0)[1] == 0
child = []
if own:
    own.close()
    command = [sys.executable, "-c", open("/proc/self/cmdline").read().split(chr(0))[2], "child"]
    child = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
print(json.dumps([most, len(given), given[-1], ended, child]))
"""


@pytest.mark.parametrize("files", ["256:4096", "1024:4096", "3800:20000"])
def test_a_program_has_as_many_descriptors_as_on_the_host(files: str) -> None:
    command = ["prlimit", f"--nofile={files}", "/usr/bin/python3", "-c", PROGRAM]
    host = run(command).expect()
    guise = run([GUISE, "run", "--link", "none", "--", *command]).expect()
    assert json.loads(guise.text) == json.loads(host.text)
    assert json.loads(guise.text)[4][0] == [int(n) for n in files.split(":")], guise


def test_a_join_asks_for_the_limit_once_for_all_descriptors(tmp_path: Path) -> None:
    """Not once for each that it moves out of the way."""
    calls = tmp_path / "calls"
    strace = ("strace", "-o", calls, "-e", "trace=prlimit64,fcntl", "true")
    run([GUISE, "run", "--link", "none", "--", *strace]).expect()
    lines = calls.read_text().splitlines()
    moved = sum("F_DUPFD_CLOEXEC" in line for line in lines)
    asked = sum("RLIMIT_NOFILE" in line for line in lines)
    assert moved >= 10 and 0 < asked < moved / 2, lines
