// SPDX-License-Identifier: GPL-2.0-only
// node_client.mjs HTTP HTTPS: fetches /blob in each way that node has, at the same time, sends it
// back, and says the checksums that came of it.
import http from "node:http";
import https from "node:https";
import { createHash } from "node:crypto";
import { buffer } from "node:stream/consumers";

const [plain, secure] = process.argv.slice(2);
const sha256 = (bytes) => createHash("sha256").update(bytes).digest("hex");

const get = (client, url) =>
	new Promise((done, failed) => {
		client.get(url, (answer) => done(buffer(answer))).on("error", failed);
	});

const put = (url, bytes) =>
	new Promise((done, failed) => {
		const headers = { "Content-Length": bytes.length };
		const request = http.request(url, { method: "PUT", headers }, (answer) => done(buffer(answer)));
		request.on("error", failed).end(bytes);
	});

const fetched = async (url, options) => Buffer.from(await (await fetch(url, options)).arrayBuffer());

const [a, b, c, d] = await Promise.all([
	get(http, `${plain}/blob`),
	get(https, `${secure}/blob`),
	fetched(`${plain}/blob`),
	fetched(`${secure}/blob`),
]);
const up = await put(`${plain}/there`, a);
const again = await fetched(`${secure}/there`, { method: "PUT", body: a });
// Nobody listens on port 2.
const refused = await fetch(new URL("http://" + new URL(plain).hostname + ":2/")).catch((e) => e.cause.code);

console.log(JSON.stringify({
	"http": sha256(a), "https": sha256(b), "fetch http": sha256(c), "fetch https": sha256(d),
	"http upload": up.toString().trim(), "fetch upload": again.toString().trim(), refused,
}));
