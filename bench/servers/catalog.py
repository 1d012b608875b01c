# SPDX-License-Identifier: GPL-2.0-only
"""The servers that are measured, in the order of the table."""

from __future__ import annotations

from bench.servers.gunicorn import Gunicorn
from bench.servers.haproxy import Haproxy
from bench.servers.jvm import Jvm
from bench.servers.node import NodeCluster
from bench.servers.pool import Pool
from bench.servers.postgresql import PostgreSQL
from bench.servers.server import Server

_IN_ORDER: tuple[Server, ...] = (
    PostgreSQL(),
    Gunicorn("gunicorn", "sync"),
    Gunicorn("gunicorn-gthread", "gthread"),
    NodeCluster(),
    Jvm(),
    Haproxy(),
    Pool(),
)
SERVERS = {server.name: server for server in _IN_ORDER}
