# SPDX-License-Identifier: GPL-2.0-only
"""PostgreSQL's own server, with a cluster that is gone with it.

The server refuses to be root, and another user may not be let into build/. So it has a file system
of its own, in the mount namespace that ip netns exec made.
"""

from topology.namespace import Word
from topology.unpacked import UNPACKED, server

SCRIPT = """
set -e
mount -t tmpfs tmpfs /mnt
mkdir /mnt/unpacked /mnt/data
mount --bind "$1" /mnt/unpacked
chown 65534:65534 /mnt/data
chmod 700 /mnt/data
cd /mnt/data
LD_LIBRARY_PATH=$(echo "$LD_LIBRARY_PATH" | sed "s#$1#/mnt/unpacked#g")
export LD_LIBRARY_PATH HOME=/mnt/data LC_ALL=C
export PATH="/mnt/unpacked/$2:$PATH"
exec setpriv --reuid 65534 --regid 65534 --clear-groups sh -ec '
	initdb -D db -U guise -A trust --no-sync >/dev/null
	echo "host all all 0.0.0.0/0 trust" >>db/pg_hba.conf
	(eval "$1") &
	exec postgres -D db -c listen_addresses=* -c fsync=off -c unix_socket_directories= -c jit=off \\
		-c autovacuum_naptime=1s' postgres "$3"
"""


def prepare(beside: str = ":") -> list[Word]:
    """The words that start it, with libraries() around; beside it runs a script as its user."""
    folder = server("usr/lib/postgresql/*/bin/postgres").parent
    return ["sh", "-c", SCRIPT, "sh", UNPACKED, folder.relative_to(UNPACKED), beside]
