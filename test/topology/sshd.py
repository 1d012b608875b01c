# SPDX-License-Identifier: GPL-2.0-only
"""OpenSSH's own server with keys, accounts and a configuration of a test's folder."""

from pathlib import Path

from topology.namespace import Word
from topology.process import run
from topology.unpacked import server

# The server reads the accounts of the machine; in a mount namespace it finds the test's own.
# (ip netns exec made one: nothing of this is seen outside.)
SCRIPT = """
set -e
mount --bind "$1/passwd" /etc/passwd
mount --bind "$1/shadow" /etc/shadow
mount -t tmpfs tmpfs /run
mkdir -m 755 /run/sshd
exec "$2" -D -e -f "$1/sshd_config"
"""
CONFIG = """
Port 2222
UsePAM no
StrictModes no
HostKey {0}/host_key
AuthorizedKeysFile {0}/key.pub
PermitRootLogin yes
PidFile none
Subsystem sftp internal-sftp
"""


def prepare(folder: Path) -> list[Word]:
    """Writes what it needs into the folder; the words that start it, with libraries() around."""
    for name in ("host_key", "key"):
        key = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        run(key).expect()
    (folder / "sshd_config").write_text(CONFIG.format(folder), encoding="ascii")
    (folder / "passwd").write_text(
        f"root:x:0:0::{folder}:/bin/sh\nsshd:x:65534:65534::/run/sshd:/usr/sbin/nologin\n",
        encoding="ascii",
    )
    (folder / "shadow").write_text("root:*:19000::::::\nsshd:*:19000::::::\n", encoding="ascii")
    return ["sh", "-c", SCRIPT, "sshd", folder, server("usr/sbin/sshd")]


def options(folder: Path) -> list[str]:
    """Of the client: ssh and scp."""
    words = ["-F", "none", "-i", str(folder / "key"), "-o", "BatchMode=yes"]
    words += ["-o", "StrictHostKeyChecking=no", "-o", "LogLevel=ERROR"]
    return [*words, "-o", f"UserKnownHostsFile={folder}/known_hosts"]
