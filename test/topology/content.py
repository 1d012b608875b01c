# SPDX-License-Identifier: GPL-2.0-only
"""An HTTP server in a namespace: it hands out a blob and takes uploads, and knows checksums."""

from __future__ import annotations

import contextlib
import hashlib
import http.server
import random
import socket
import socketserver
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from topology.namespace import Namespace
from topology.process import DEADLINE, run

NAME = "server.guise.test"  # in the certificate


def blob(size: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(size)


def digest(content: bytes | bytearray) -> str:
    return hashlib.sha256(content).hexdigest()


class Content:
    """GET /blob is the blob; PUT or POST of anything is answered with its checksum."""

    def __init__(self, where: Namespace) -> None:
        self.blob = blob(8 << 20)
        self.sha256 = digest(self.blob)
        self.uploads: list[str] = []
        self._where = where
        self._servers = contextlib.ExitStack()
        self.port = self._servers.enter_context(self._serving(None))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """No port listens any more."""
        self._servers.close()

    def serve_tls(self, authority: Authority) -> int:
        """A second port that speaks TLS."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(authority.certificate, authority.key)
        return self._servers.enter_context(self._serving(context))

    @contextlib.contextmanager
    def _serving(self, tls: ssl.SSLContext | None) -> Iterator[int]:
        with self._where.entered():
            server = _Server(self, tls)
        thread = threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()
            server.server_close()


class _Server(http.server.ThreadingHTTPServer):
    """On all addresses of both families."""

    address_family = socket.AF_INET6
    daemon_threads = True

    def __init__(self, content: Content, tls: ssl.SSLContext | None) -> None:
        self.content = content
        self.tls = tls
        super().__init__(("::", 0), _Handler)

    def server_bind(self) -> None:
        self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        # Not HTTPServer's own, which would look up the name of this host.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = NAME, self.server_address[1]

    def finish_request(self, request: Any, client_address: Any) -> None:
        request.settimeout(DEADLINE)
        if self.tls:
            request = self.tls.wrap_socket(request, server_side=True)
        super().finish_request(request, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # a client that went away: it is the client that the test looks at


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        if self.path == "/blob":
            self._answer(200, self.server.content.blob)
        else:
            self._answer(404, b"there is only /blob\n")

    def do_PUT(self) -> None:
        length = int(self.headers["Content-Length"])
        sha256 = digest(self.rfile.read(length))
        self.server.content.uploads.append(sha256)
        self._answer(201, sha256.encode() + b"\n")

    do_POST = do_PUT

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *words: Any) -> None:
        pass


@dataclass(frozen=True)
class Authority:
    """A certificate authority of the test's own, and a certificate of NAME and of far's addresses
    that it signed."""

    root: Path
    certificate: Path
    key: Path

    @classmethod
    def make(cls, folder: Path) -> Self:
        authority = cls(folder / "root.pem", folder / "server.pem", folder / "server.key")
        key, request, names = (folder / name for name in ("root.key", "request", "names"))
        addresses = "".join(f",IP:10.77.{i}.1" for i in (1, 2))  # far's, as the sides see it
        names.write_text(f"subjectAltName=DNS:{NAME}{addresses}\n", encoding="ascii")

        def openssl(words: str, **files: Path) -> None:
            options = [word for key, file in files.items() for word in (f"-{key}", str(file))]
            run(["openssl", *words.split(), *options]).expect()

        openssl(
            "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=guise-test-root",
            keyout=key,
            out=authority.root,
        )
        openssl(
            f"req -newkey rsa:2048 -nodes -subj /CN={NAME}",
            keyout=authority.key,
            out=request,
        )
        openssl(
            "x509 -req -days 2 -CAcreateserial",
            **{"in": request, "CA": authority.root, "CAkey": key},
            extfile=names,
            out=authority.certificate,
        )
        return authority
