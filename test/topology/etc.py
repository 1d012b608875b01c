# SPDX-License-Identifier: GPL-2.0-only
"""The files of /etc that the preload library's cases of names need."""

from __future__ import annotations

ETC = {
    "hosts": "127.0.0.1 localhost\n::1 localhost ip6-localhost\n"
    "192.0.2.77 filed.guise.test filed\n2001:db8::77 filed6.guise.test filed6\n",
    "resolv.conf": "nameserver 127.0.0.1\nsearch guise.test\noptions timeout:2 attempts:1\n",
    "nsswitch.conf": "hosts: files dns\nservices: files\n",
}
