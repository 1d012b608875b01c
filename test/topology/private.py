# SPDX-License-Identifier: GPL-2.0-only
"""A machine of the test's own, as far as guise sees one: a network namespace with a way to a peer,
and a mount namespace whose /etc is a copy, without /etc/guise and with an empty
/etc/systemd/system, and whose /run and /dev/net are empty at first.

        machine ──cable── far
        192.0.2.2       192.0.2.1
        2001:db8::2     2001:db8::1
"""

from __future__ import annotations

import os
from typing import Self, Unpack

from topology.namespace import Namespace, Word, join
from topology.process import Finished, How, Process, run
from topology.side import wait_until_says

# No folder of the host's is mounted over: one that was made for that and is removed by another copy
# of this test would be gone here, too, with what is mounted there.
PRIVATE = """
set -e
mount --make-rprivate /
mount -t tmpfs -o mode=755 machine /run
mkdir -p /run/dev/net /run/bin /run/systemd/system
cp -a /etc /run/etc || : # something there may go meanwhile
rm -rf /run/etc/guise /run/etc/systemd/system
mkdir -p /run/etc/systemd/system
mount --bind /run/etc /etc
mknod /run/dev/net/tun c 10 200
chmod 666 /run/dev/net/tun
mount --bind /run/dev/net /dev/net
printf '#!/bin/sh\\necho "$@" >> /run/systemctl.log\\n' > /run/bin/systemctl
chmod 755 /run/bin/systemctl
echo made
exec sleep infinity
"""


class Machine:
    """Commands run in it as root, or as a user by `as_user`."""

    def __init__(self, far: Namespace, *, ipv6: bool = True, route: bool = True) -> None:
        self.far = far
        self.net = Namespace("machine")
        join(far, self.net, "192.0.2", "2001:db8:0:0")
        if route:
            self.net.ip("route", "add", "default", "via", "192.0.2.1")
            self.net.ip("-6", "route", "add", "default", "via", "2001:db8::1")
        if not ipv6:
            self.net.ip("-6", "address", "flush", "dev", "cable")
        self._keeper = self.net.start("unshare", "--mount", "sh", "-c", PRIVATE)
        try:
            wait_until_says(self._keeper, "made")
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._keeper.stop()
        self.net.delete()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def command(self, *words: Word) -> list[str]:
        path = f"PATH=/run/bin:{os.environ['PATH']}"
        inside = ["nsenter", f"--target={self._keeper.pid}", "--mount", "--net", "env", path]
        return [*inside, *(os.fspath(word) for word in words)]

    def run(self, *words: Word) -> Finished:
        return run(self.command(*words), cwd="/")

    def start(self, *words: Word, **how: Unpack[How]) -> Process:
        how["cwd"] = "/"
        return Process(self.command(*words), **how)

    def shell(self, script: str) -> str:
        return self.run("sh", "-c", script).expect().text

    def state(self) -> str:
        """All that setup could change."""
        return self.shell(
            "nft list ruleset; ip -br link | cut -d' ' -f1; ip -o -4 address; "
            "ip -o -6 address show scope global | sed 's/valid_lft.*//'; "
            "find /etc/guise /etc/systemd/system /run/guise-setup 2>&1 "
            "-type f -o -type l; ls -l /dev/net/tun; cd /proc/sys/net; "
            "grep -r . ipv[46]/conf/*/*forwarding ipv6/conf/*/accept_ra | sort"
        )


def as_user(uid: int, *words: Word) -> list[Word]:
    drop = [f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--inh-caps=-all"]
    return ["setpriv", *drop, "--bounding-set=-all", *words]
