// SPDX-License-Identifier: GPL-2.0-only
// node cluster.js PORT: eight workers. The first process accepts, and sends each connection to a
// worker over a Unix socket of the host. Answers are 503 until all workers are there.
const cluster = require("cluster");
const http = require("http");

const WORKERS = 8;

if (cluster.isPrimary) {
	let listening = 0;
	cluster.on("listening", () => {
		if (++listening === WORKERS)
			Object.values(cluster.workers).forEach(worker => worker.send("all are there"));
	});
	for (let i = 0; i < WORKERS; i++)
		cluster.fork();
} else {
	let status = 503;
	process.on("message", () => { status = 200; });
	http.createServer((request, response) => {
		response.statusCode = status;
		response.end("ok");
	}).listen(Number(process.argv[2]), "127.0.0.1");
}
