// SPDX-License-Identifier: GPL-2.0-only
/*
 * A Multipath TCP connection over two paths, in simulated time: the topology, the amount and the
 * way to write of the kernel's own selftest simult_flows.
 *
 *	client            router             server
 *	  v1 ──── netem ──── v1   v3 ────────── v3
 *	  10.0.1.1    10.0.1.2    10.0.3.2      10.0.3.3
 *	  v2 ──── netem ──── v2
 *	  10.0.2.1    10.0.2.2
 *
 * One end sends 16 MiB, the other 80 KiB. Each writes at most 100 bytes first, and no more for the
 * 200 ms in which the second subflow joins. Prints how long it took until both had all, and what
 * the client's interfaces have sent and received. The same arguments print the same, whatever the
 * machine does.
 *
 * Usage: flows SEED OFFSET-MS RATE1 RATE2 DELAY1 DELAY2 LOSS DIRECTION PATHS
 *	OFFSET-MS	how long the stack exists before the connection is made
 *	RATE, DELAY	of each path and direction, in Mbit/s and ms
 *	LOSS		of each path and direction, as 0.01%
 *	DIRECTION	up: the client sends 16 MiB; down: the server does
 *	PATHS		2; 1: the second path is not an endpoint
 */
#include "guise/guise.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PORT   10001
#define LARGE  (16l << 20)
#define SMALL  (80l << 10)
#define FIRST  100
#define JOIN   200000000ull /* ns */
#define PERIOD 251          /* of the bytes that are sent */

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

static struct guise_stack *s;

static long check(long ret, const char *what)
{
	if (ret >= 0)
		return ret;
	fprintf(stderr, "flows: %s: %s (%s)\n", what, strerror((int)-ret), guise_error());
	exit(1);
}

/* ---- the topology ----------------------------------------------------------------------- */

struct path {
	const char *rate, *delay, *loss;
	unsigned int seed;
};

static void set_up(const char *dev, const char *address)
{
	check(guise_addr_add(s, dev, address), address);
	check(guise_link_set(s, dev, 1), dev);
}

/* At most 50 packets wait, as in the selftest: else the round trip would grow with the queue. */
static void shape(const char *dev, const struct path *p, unsigned int end)
{
	char spec[256];

	snprintf(spec, sizeof(spec), "netem rate %smbit delay %sms loss %s limit 50 seed %u",
		 p->rate, p->delay, p->loss, p->seed + end);
	check(guise_link_offload(s, dev, 0), "offload");
	check(guise_qdisc_set(s, dev, spec), spec);
}

/* Leaves this thread in the client's namespace. */
static void make_hosts(int client, int router, int server, const struct path path[2], int paths)
{
	check(guise_veth_add(s, client, "v1", router, "v1"), "veth 1");
	check(guise_veth_add(s, client, "v2", router, "v2"), "veth 2");
	check(guise_veth_add(s, router, "v3", server, "v3"), "veth 3");

	check(guise_netns_enter(s, router), "router");
	check(guise_sysctl_set(s, "net.ipv4.ip_forward", "1"), "forwarding");
	set_up("v1", "10.0.1.2/24");
	set_up("v2", "10.0.2.2/24");
	set_up("v3", "10.0.3.2/24");
	shape("v1", &path[0], 0);
	shape("v2", &path[1], 1);

	check(guise_netns_enter(s, server), "server");
	set_up("v3", "10.0.3.3/24");
	check(guise_route_add(s, "default", "10.0.3.2", NULL, 0), "the server's route");

	check(guise_netns_enter(s, client), "client");
	set_up("v1", "10.0.1.1/24");
	set_up("v2", "10.0.2.1/24");
	shape("v1", &path[0], 2);
	shape("v2", &path[1], 3);
	/* A socket of the second path is bound to v2, so the first of these does not fit. */
	check(guise_route_add(s, "10.0.3.0/24", "10.0.1.2", "v1", 0), "the client's route");
	check(guise_route_add(s, "default", "10.0.2.2", "v2", 0), "its second route");
	if (paths == 2)
		check(guise_mptcp_endpoint(s, "10.0.2.1", "v2", "subflow"), "endpoint");
}

/* ---- the connection ---------------------------------------------------------------------- */

struct end {
	const char *name;
	int fd;
	long send, sent, expect, got;
	uint64_t next; /* no writing before that time */
	int shut, eof;
};

static void write_some(struct end *e)
{
	static unsigned char buf[65536 + PERIOD];
	long n = e->send - e->sent;

	if (!buf[1])
		for (size_t i = 0; i < sizeof(buf); i++)
			buf[i] = (unsigned char)(i % PERIOD);
	if (n > 65536)
		n = 65536;
	if (!e->sent)
		n = FIRST;
	if (n)
		n = guise_sendto(s, e->fd, buf + e->sent % PERIOD, (size_t)n, MSG_DONTWAIT, NULL,
				 0);
	if (n == -EAGAIN)
		return;
	check(n, "send");
	if (!e->sent)
		e->next = guise_clock(s) + JOIN;
	e->sent += n;
	if (e->sent == e->send) {
		check(guise_shutdown(s, e->fd, SHUT_WR), "shutdown");
		e->shut = 1;
	}
}

static void read_some(struct end *e)
{
	static unsigned char buf[65536];
	long n;

	while ((n = guise_recvfrom(s, e->fd, buf, sizeof(buf), MSG_DONTWAIT, NULL, NULL)) > 0)
		for (long i = 0; i < n; i++, e->got++)
			if (buf[i] != e->got % PERIOD) {
				fprintf(stderr, "flows: byte %ld at the %s is wrong\n", e->got,
					e->name);
				exit(1);
			}
	if (n == -EAGAIN)
		return;
	check(n, "receive");
	e->eof = 1;
}

static void converse(struct end ends[2])
{
	while (!ends[0].eof || !ends[1].eof || !ends[0].shut || !ends[1].shut) {
		uint64_t now = guise_clock(s), until = UINT64_MAX;
		struct pollfd p[2];
		int timeout = 60000;

		for (int i = 0; i < 2; i++) {
			struct end *e = &ends[i];

			p[i] = (struct pollfd){ .fd = e->eof && e->shut ? -1 : e->fd };
			if (!e->eof)
				p[i].events |= POLLIN;
			if (!e->shut && now >= e->next)
				p[i].events |= POLLOUT;
			else if (!e->shut && e->next < until)
				until = e->next;
		}
		if (until != UINT64_MAX)
			timeout = (int)((until - now + 999999) / 1000000);
		check(guise_poll(s, p, 2, timeout) - (until == UINT64_MAX),
		      "poll (nothing for a minute)");
		for (int i = 0; i < 2; i++) {
			if (p[i].revents & POLLOUT && !ends[i].shut)
				write_some(&ends[i]);
			if (p[i].revents & (POLLIN | POLLHUP) && !ends[i].eof)
				read_some(&ends[i]);
		}
	}
}

/* ---- what the wires carried ---------------------------------------------------------------- */

static void print_counters(const char *dev)
{
	char text[4096], *line;
	unsigned long rx, tx;

	check(guise_read_file(s, "/proc/thread-self/net/dev", text, sizeof(text)), "its counters");
	line = strstr(text, dev);
	if (!line || sscanf(line, "%*s %lu %*u %*u %*u %*u %*u %*u %*u %lu", &rx, &tx) != 2) {
		fprintf(stderr, "flows: no %s in /proc/net/dev:\n%s", dev, text);
		exit(1);
	}
	printf(" %s_rx %lu %s_tx %lu", dev, rx, dev, tx);
}

int main(int argc, char **argv)
{
	struct guise_options opt = GUISE_OPTIONS_INIT;
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	struct end ends[2] = { { .name = "client" }, { .name = "server" } };
	int err, client, router, server, listener, up;
	struct path path[2];
	uint64_t start;

	if (argc != 10) {
		fprintf(stderr, "usage: flows SEED OFFSET-MS RATE1 RATE2 DELAY1 DELAY2 LOSS "
				"up|down PATHS\n");
		return 2;
	}
	opt.simulated = 1;
	opt.seed = strtoull(argv[1], NULL, 0);
	for (int i = 0; i < 2; i++)
		path[i] = (struct path){ .rate = argv[3 + i],
					 .delay = argv[5 + i],
					 .loss = argv[7],
					 .seed = (unsigned int)opt.seed * 16 + 1 };
	up = !strcmp(argv[8], "up");
	s = guise_create(&opt, &err);
	if (!s) {
		fprintf(stderr, "flows: %s\n", guise_error());
		return 1;
	}
	check(client = guise_netns_new(s), "namespace");
	check(router = guise_netns_new(s), "namespace");
	check(server = guise_netns_new(s), "namespace");
	make_hosts(client, router, server, path, atoi(argv[9]));
	check(guise_nanosleep(s, strtoull(argv[2], NULL, 0) * 1000000), "sleep");

	check(guise_netns_enter(s, server), "server");
	check(listener = guise_socket(s, AF_INET, SOCK_STREAM, IPPROTO_MPTCP), "listener");
	check(guise_bind(s, listener, (struct sockaddr *)&to, sizeof(to)), "bind");
	check(guise_listen(s, listener, 1), "listen");

	check(guise_netns_enter(s, client), "client");
	check(ends[0].fd = guise_socket(s, AF_INET, SOCK_STREAM, IPPROTO_MPTCP), "socket");
	inet_pton(AF_INET, "10.0.3.3", &to.sin_addr);
	start = guise_clock(s);
	check(guise_connect(s, ends[0].fd, (struct sockaddr *)&to, sizeof(to)), "connect");
	check(ends[1].fd = guise_accept4(s, listener, NULL, NULL, 0), "accept");
	ends[up ? 0 : 1].send = ends[up ? 1 : 0].expect = LARGE;
	ends[up ? 1 : 0].send = ends[up ? 0 : 1].expect = SMALL;
	converse(ends);
	for (int i = 0; i < 2; i++)
		if (ends[i].got != ends[i].expect) {
			fprintf(stderr, "flows: the %s received %ld bytes, not %ld\n", ends[i].name,
				ends[i].got, ends[i].expect);
			return 1;
		}
	printf("ns %" PRIu64, guise_clock(s) - start);
	print_counters("v1");
	print_counters("v2");
	printf("\n");
	guise_leave(s);
	return 0;
}
