# SPDX-License-Identifier: GPL-2.0-only
"""Holds a listening socket and both ends of a connection, says its process number, and runs its
arguments meanwhile."""

import os
import socket
import subprocess
import sys

with (
    socket.create_server(("127.0.0.1", 0)) as server,
    socket.create_connection(server.getsockname()) as client,
    server.accept()[0],
):
    print("pid", os.getpid(), flush=True)
    status = subprocess.run(sys.argv[1:], check=False).returncode
sys.exit(status)
