// SPDX-License-Identifier: GPL-2.0-only
// node_server.mjs CERTIFICATE KEY FILE: serves the file on port 8080 and, over TLS, on 8443; what is
// sent to it is answered with its checksum.
import http from "node:http";
import https from "node:https";
import { createReadStream, readFileSync } from "node:fs";
import { createHash } from "node:crypto";
import { buffer } from "node:stream/consumers";

const [cert, key, file] = process.argv.slice(2);

async function serve(request, answer) {
	if (request.method === "GET")
		createReadStream(file).pipe(answer);
	else
		answer.end(createHash("sha256").update(await buffer(request)).digest("hex"));
}

const secure = { cert: readFileSync(cert), key: readFileSync(key) };
http.createServer(serve).listen(8080, () => {
	https.createServer(secure, serve).listen(8443, () => console.log("ready"));
});
