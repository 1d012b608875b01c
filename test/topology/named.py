# SPDX-License-Identifier: GPL-2.0-only
"""Named stacks of a test's own, in a runtime folder of its own."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from topology.process import Finished, Process, run
from topology.side import GUISE, PYTHON, wait_until_says

# A stack with lo only: what it takes is no privilege.
ALONE = '[[link]]\nkind = "none"\n'

# Of the host's loopback; no other copy of the tests has it, so each of its ports is free.
OWN_ADDRESS = f"127.{64 + (os.getpid() >> 16)}.{os.getpid() >> 8 & 255}.{os.getpid() & 255}"

SERVE = """
import socket, sys
server = socket.create_server(("127.0.0.1", 4000))
print("ready", flush=True)
try:
    server.accept()
except OSError as error:
    print(error.strerror, flush=True)
"""


class Named:
    """Configs and commands; what is still up at the end of the test is taken down."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run_dir = folder / "run"
        self.env = {"GUISE_RUNDIR": str(self.run_dir)}

    def call(self, *words: str, stdin: bytes | None = None) -> Finished:
        return run([GUISE, *words], env=self.env, cwd=self.folder, stdin=stdin)

    def write(self, text: str, name: str = "web") -> str:
        path = self.folder / f"{name}.toml"
        path.write_text(text)
        return str(path)

    def up(self, text: str = ALONE, name: str = "web") -> None:
        self.call("up", self.write(text, name)).expect()

    def on(self, stack: str, *command: str) -> Finished:
        return self.call("exec", stack, "--", *command)

    def python(self, stack: str, script: str) -> str:
        return self.call("run", "--stack", stack, "--", PYTHON, "-c", script).expect().text

    def serve(self, stack: str = "web") -> Process:
        """A program that waits in accept()."""
        server = self.start("run", "--stack", stack, "--", PYTHON, "-c", SERVE)
        try:
            wait_until_says(server, "ready")
        except BaseException:
            server.stop()
            raise
        return server

    def start(self, *words: str) -> Process:
        return Process([GUISE, *words], env=self.env, cwd=self.folder)

    def ls(self) -> dict[str, dict[str, Any]]:
        listed = json.loads(self.call("ls", "--json").expect().text)
        return {stack["stack"]: stack for stack in listed}
