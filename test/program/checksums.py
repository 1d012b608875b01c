# SPDX-License-Identifier: GPL-2.0-only
"""checksums.py ADDRESS PORT BYTES: an HTTP server on that address. GET gives that many bytes, the
same each time; PUT of anything is answered with its checksum. Says "listening" when it does.
Told to end (SIGTERM), it waits until its clients have: an emulated program has no tracer that would
finish what it is about in the stack."""

import hashlib
import http.server
import random
import signal
import socketserver
import sys

ADDRESS, PORT, BYTES = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
CONTENT = random.Random(1).randbytes(BYTES)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = False

    def server_bind(self) -> None:
        # Not HTTPServer's own, which would look up the name of this host.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = ADDRESS, PORT


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self.answer(CONTENT)

    def do_PUT(self) -> None:
        left = int(self.headers["Content-Length"])
        sum_ = hashlib.sha256()
        while left and (part := self.rfile.read(min(left, 1 << 16))):
            sum_.update(part)
            left -= len(part)
        self.answer(sum_.hexdigest().encode())

    def log_message(self, format: str, *args: object) -> None:
        del format, args


signal.signal(signal.SIGTERM, lambda *_: sys.exit())
with Server((ADDRESS, PORT), Handler) as server:
    print("listening", flush=True)
    server.serve_forever()
