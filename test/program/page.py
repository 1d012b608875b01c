# SPDX-License-Identifier: GPL-2.0-only
"""page.py PORT COUNT: serves a page with so many resources (images, scripts, styles, frames), and
says of each request from which program it comes and for what."""

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT, COUNT = int(sys.argv[1]), int(sys.argv[2])
PICTURE = '<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="1"/>'
KINDS = {
    "svg": ("image/svg+xml", '<img src="/{0}.svg">', PICTURE),
    "js": ("text/javascript", '<script src="/{0}.js"></script>', "said.append({0});"),
    "css": ("text/css", '<link rel="stylesheet" href="/{0}.css">', "p {{ margin: {0}px }}"),
    "html": ("text/html", '<iframe src="/{0}.html"></iframe>', "<p>frame {0}</p>"),
    "json": ("application/json", "<script>wanted.push('/{0}.json')</script>", '{{"number": {0}}}'),
}
NAMES = [(number, list(KINDS)[number % len(KINDS)]) for number in range(1, COUNT + 1)]
# What came of it stands in the page when it has been loaded.
PAGE = """<!doctype html><link rel="icon" href="data:,"><body>
<script>var said = [], wanted = []; said.append = said.push</script>
{}<pre id="found"></pre><script>
onload = async () => {{
	const answers = await Promise.all(wanted.map((url) => fetch(url).then((a) => a.json())));
	const widths = [...document.images].map((image) => image.naturalWidth);
	const frames = [...document.querySelectorAll("iframe")]
		.map((frame) => frame.contentDocument.body.textContent);
	document.getElementById("found").textContent =
		JSON.stringify([said, answers.map((a) => a.number), widths, frames]);
}};
</script></body>
"""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        text, kind = PAGE.format("\n".join(KINDS[k][1].format(n) for n, k in NAMES)), "text/html"
        if self.path != "/":
            number, _, ending = self.path.lstrip("/").partition(".")
            if ending not in KINDS:
                self.send_error(404)
                return
            kind, text = KINDS[ending][0], KINDS[ending][2].format(number)
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *what: object) -> None:
        del what
        sys.stdout.write(f"{self.client_address[0]} {self.path}\n")  # at once: of many threads
        sys.stdout.flush()


print("ready", flush=True)
ThreadingHTTPServer(("", PORT), Handler).serve_forever()
