# SPDX-License-Identifier: GPL-2.0-only
"""A network that gives addresses and answers what is asked about names, on one of the server's
links."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from topology.process import Process
from topology.side import wait_until_says
from topology.uplinks import Uplinks


@contextlib.contextmanager
def network(
    uplinks: Uplinks, path: int, tmp_path: Path, lease: str = "120", *, six: bool = False
) -> Iterator[Process]:
    """Gives addresses of 10.88.PATH.0/24 by DHCP, or of fd88:0:0:PATH::/64 by router
    advertisements, and knows a name only on that link."""
    if six:
        uplinks.server.ip("address", "add", "fe80::53/64", "dev", f"s{path}", "nodad")
        ways = (
            f"enable-ra\ndhcp-range=fd88:0:0:{path}::,ra-stateless\n"
            "dhcp-option=option6:dns-server,[fe80::53]\n"
        )
    else:
        ways = f"dhcp-range=10.88.{path}.100,10.88.{path}.150,{lease}\n"
    config = tmp_path / f"dnsmasq{path}.conf"
    config.write_text(
        "keep-in-foreground\nlog-facility=-\nlog-queries\nno-resolv\nno-hosts\nuser=root\npid-file\n"
        f"interface=s{path}\nexcept-interface=lo\nbind-interfaces\nno-ping\nlocal=/test/\n{ways}"
        f"dhcp-leasefile={tmp_path}/leases{path}\n"
        f"host-record=here.test,192.0.2.{path}\nhost-record=only{path}.test,192.0.2.9\n",
        encoding="ascii",
    )
    with uplinks.server.start("dnsmasq", "-C", config) as server:
        wait_until_says(server, "started, version")
        yield server
