// SPDX-License-Identifier: GPL-2.0-only
// node node_cluster.mjs: two workers serve HTTP on port 8080, each its number and what it was sent;
// one that ends is replaced by the next number. /exit and /kill end the worker that is asked.
import cluster from "node:cluster";
import http from "node:http";

if (cluster.isPrimary) {
	let listening = 0;
	cluster.on("listening", () => ++listening >= 2 && console.log(`${listening} listening`));
	cluster.on("exit", (worker, code, signal) => {
		console.log(`worker ${worker.id} ended by ${signal ?? code}`);
		if (!worker.exitedAfterDisconnect) cluster.fork();
	});
	cluster.fork();
	cluster.fork();
	process.on("SIGTERM", () => cluster.disconnect(() => console.log("all disconnected")));
} else {
	process.on("SIGTERM", () => {});
	http.createServer((request, response) => {
		if (request.url === "/exit") process.exit(3);
		if (request.url === "/kill") process.kill(process.pid, "SIGKILL");
		response.setHeader("X-Worker", cluster.worker.id);
		request.pipe(response);
	}).listen(8080);
}
