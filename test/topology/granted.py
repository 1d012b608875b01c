# SPDX-License-Identifier: GPL-2.0-only
"""A machine on which root has set up uplinks for a user, with the server of topology/uplinks.py
behind them. No systemd runs there: the service gets its socket from the test, as the units say.

        machine: up1, up2 ──s1, s2── server
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Unpack

from topology.namespace import Word
from topology.private import Machine, as_user
from topology.process import Finished, How, Process, eventually
from topology.side import GUISE, PYTHON
from topology.uplinks import Uplinks

# As systemd.socket(5) and sd_listen_fds(3).
SYSTEMD = """
import os, socket, sys
path, user, mode, *command = sys.argv[1:]
os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.bind(path)
os.chown(path, int(user), 0)
os.chmod(path, int(mode, 8))
s.listen(128)
os.dup2(s.fileno(), 3)
os.set_inheritable(3, True)
os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
os.execv(command[0], command)
"""

# Root runs it, so it must lie where only root writes, wherever the tests' own is.
INSTALLED = "/run/bin/guise"


class Granted(Uplinks):
    """The host is a machine of the test's own; commands are the user's."""

    def __init__(self, machine: Machine, run_dir: Path, uid: int) -> None:
        self.machine = machine
        self.uid = uid
        super().__init__(machine.net, run_dir)
        machine.shell(f"install -m 755 {GUISE} {INSTALLED}")

    def setup(self, *flags: Word) -> Finished:
        return self.machine.run(INSTALLED, "setup", "--user", str(self.uid), *flags)

    def user(self, *words: Word) -> Finished:
        return self.machine.run(*as_user(self.uid, *words))

    def guise(self, *words: Word) -> Finished:
        return self.user(GUISE, *words)

    def start(
        self, *command: Word, options: tuple[str, ...] = ("up1", "up2"), **how: Unpack[How]
    ) -> Process:
        """A program of the user's on a stack with these uplinks."""
        words = as_user(self.uid, *self.words(*command, options=options))
        return self.machine.start(*words, **how)

    def run(self, *command: Word, options: tuple[str, ...] = ("up1", "up2")) -> Finished:
        return self.user(*self.words(*command, options=options))

    def unit(self, kind: str, key: str) -> str:
        text = self.machine.shell(f"cat /etc/systemd/system/guise-uplink-{self.uid}.{kind}")
        found = re.search(rf"^{key}=(.*)$", text, re.MULTILINE)
        assert found, text
        return found[1]

    @property
    def socket(self) -> str:
        return self.unit("socket", "ListenSequentialPacket")

    @contextmanager
    def service(self) -> Iterator[Process]:
        """The service, as systemd starts it when somebody connects."""
        socket = [self.socket, self.unit("socket", "SocketUser"), self.unit("socket", "SocketMode")]
        kept = "".join(
            f",+{name.removeprefix('CAP_').lower()}"
            for name in self.unit("service", "CapabilityBoundingSet").split()
        )
        command = ["/usr/bin/setpriv", "--no-new-privs", f"--bounding-set=-all{kept}"]
        command += self.unit("service", "ExecStart").split()
        with self.machine.start(PYTHON, "-c", SYSTEMD, *socket, *command) as service:
            eventually(
                lambda: self.machine.run("test", "-S", socket[0]).status == 0, "the socket is there"
            )
            yield service

    def reserved(self) -> str:
        return self.machine.shell("cat /proc/sys/net/ipv4/ip_local_reserved_ports").strip()

    def host(self) -> str:
        """All that the service changes."""
        return self.machine.shell(
            "nft list ruleset; ip -br link | cut -d' ' -f1 | cut -d@ -f1 | sort; "
            "tc qdisc show | grep -v noqueue; "
            "cat /proc/sys/net/ipv4/ip_local_reserved_ports; ls /run/guise 2>&1 || :"
        )
