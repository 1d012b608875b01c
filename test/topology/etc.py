# SPDX-License-Identifier: GPL-2.0-only
"""Files of /etc: those of the preload library's cases of names, and a namespace's resolv.conf."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from topology.namespace import Namespace

ETC = {
    "hosts": "127.0.0.1 localhost\n::1 localhost ip6-localhost\n"
    "192.0.2.77 filed.guise.test filed\n2001:db8::77 filed6.guise.test filed6\n",
    "resolv.conf": "nameserver 127.0.0.1\nsearch guise.test\noptions timeout:2 attempts:1\n",
    "nsswitch.conf": "hosts: files dns\nservices: files\n",
}


@contextmanager
def resolv_conf(far: Namespace, text: str) -> Iterator[Path]:
    """far's own /etc/resolv.conf: `ip netns exec` puts it there."""
    folder = Path("/etc/netns") / far.name
    folder.mkdir(parents=True)
    try:
        path = folder / "resolv.conf"
        path.write_text(text, encoding="ascii")
        yield path
    finally:
        shutil.rmtree(folder)
        with suppress(OSError):  # another test may have its own there
            folder.parent.rmdir()
