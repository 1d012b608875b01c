# SPDX-License-Identifier: GPL-2.0-only
"""nginx in the foreground with two workers under another user, on port 8080, all in one folder."""

from pathlib import Path

from topology.namespace import Word
from topology.unpacked import server

CONFIG = """
user nobody nogroup;
worker_processes 2;
daemon off;
error_log stderr notice;
pid {folder}/pid;
events {{ worker_connections 256; }}
http {{
    access_log off;
    {temporary}
    server {{ listen 0.0.0.0:8080; location {location} }}
}}
"""
TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


def prepare(folder: Path, location: str) -> list[Word]:
    """Writes its configuration; the words that start it, with libraries() around."""
    temporary = "\n".join(f"{name}_temp_path {folder}/{name};" for name in TEMPORARY)
    text = CONFIG.format(folder=folder, temporary=temporary, location=location)
    (folder / "nginx.conf").write_text(text, encoding="ascii")
    return [server("usr/sbin/nginx"), "-p", folder, "-c", folder / "nginx.conf"]
