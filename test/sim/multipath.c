// SPDX-License-Identifier: GPL-2.0-only
/*
 * Multipath TCP over paths of known rate and delay, in simulated time:
 *
 *	client ==== path 0 ==== server		two namespaces of one stack, a veth pair for each
 *	       ==== path 1 ====			path; netem impairs both of its ends
 *
 * One connection sends for a while, up or down, beside TCP flows that share a path with it.
 * Prints what each flow delivered after the warm-up, and what each path carried.
 *
 * Usage: multipath [OPTION...]
 *	-p NETEM	a path, with netem's words (repeatable)
 *	-2		the first path has two subflows: a bottleneck that they share
 *	-n		plain TCP over the first path, in place of Multipath TCP
 *	-b		further paths are backups
 *	-d		download: the server sends
 *	-c CC, -s SCHEDULER, -S SEED
 *	-x PATH:CC:N	N flows of TCP on that path, in the same direction
 *	-t SECONDS, -w SECONDS	of the run and of the warm-up before it
 *	-m BYTES	a message of that many bytes each 100 ms, in place of as much as fits
 *	-B "MIN USUAL MAX"	the sizes of the buffers of TCP
 *	-k PATH:SECONDS	from then on, that path loses every packet
 */
#include "guise/guise.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/mptcp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATHS         4
#define FLOWS         32
#define PORT          5001
#define SECOND        1000000000ull
#define MESSAGE_EVERY (SECOND / 10)

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif
#ifndef SOL_MPTCP
#define SOL_MPTCP 284
#endif

struct flow {
	const char *kind;
	int path, out, in;
	long got;             /* after the warm-up */
	long pending;         /* of the message that is being sent */
	long whole;           /* received since the last message was whole */
	uint64_t last, stall; /* when something came, and the longest pause after the warm-up */
};

static struct guise_stack *stack;
static int client, server, paths, flows;
static const char *netem[PATHS];
static struct flow flow[FLOWS];
static bool down;

static long check(long ret, const char *what)
{
	if (ret >= 0)
		return ret;
	fprintf(stderr, "multipath: %s: %s (%s)\n", what, strerror((int)-ret), guise_error());
	exit(1);
}

static void enter(int ns)
{
	check(guise_netns_enter(stack, ns), "enter a namespace");
}

static void set_netem(int ns, int path, const char *words)
{
	char spec[256], name[16];

	enter(ns);
	snprintf(name, sizeof(name), "p%d", path);
	snprintf(spec, sizeof(spec), "netem %s", words);
	check(guise_qdisc_set(stack, name, spec), spec);
}

static void make_end(int ns, int path, int host)
{
	char name[16], address[32];

	enter(ns);
	snprintf(name, sizeof(name), "p%d", path);
	snprintf(address, sizeof(address), "10.0.%d.%d/24", path, host);
	check(guise_addr_add(stack, name, address), address);
	check(guise_link_offload(stack, name, 0), "offload");
	check(guise_link_set(stack, name, 1), "up");
	set_netem(ns, path, netem[path]);
}

static void make_paths(bool shared, const char *flags)
{
	char name[16], text[32];

	for (int i = 0; i < paths; i++) {
		snprintf(name, sizeof(name), "p%d", i);
		check(guise_veth_add(stack, client, name, server, name), "veth");
		make_end(server, i, 2);
		make_end(client, i, 1);
		if (!i)
			continue;
		/* A socket that is bound to this interface comes to the server's first address. */
		snprintf(text, sizeof(text), "10.0.0.0/%d", 17 - i);
		check(guise_route_add(stack, text, NULL, name, 0), text);
		snprintf(text, sizeof(text), "10.0.%d.1", i);
		check(guise_mptcp_endpoint(stack, text, name, flags), "endpoint");
	}
	if (!shared)
		return;
	check(guise_addr_add(stack, "p0", "10.0.0.3/24"), "second address");
	check(guise_mptcp_endpoint(stack, "10.0.0.3", "p0", "subflow"), "endpoint");
}

static void add_flow(const char *kind, int path, int protocol, const char *cc)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(PORT + flows) };
	struct flow *f = &flow[flows++];
	int listener, from, to;
	char text[64];

	snprintf(text, sizeof(text), "10.0.%d.2", path);
	inet_pton(AF_INET, text, &a.sin_addr);
	enter(server);
	listener = (int)check(guise_socket(stack, AF_INET, SOCK_STREAM, protocol), "socket");
	check(guise_bind(stack, listener, (struct sockaddr *)&a, sizeof(a)), "bind");
	check(guise_setsockopt(stack, listener, IPPROTO_TCP, TCP_CONGESTION, cc,
			       (socklen_t)strlen(cc)),
	      cc);
	check(guise_listen(stack, listener, 1), "listen");
	enter(client);
	from = (int)check(guise_socket(stack, AF_INET, SOCK_STREAM, protocol), "socket");
	check(guise_setsockopt(stack, from, IPPROTO_TCP, TCP_CONGESTION, cc, (socklen_t)strlen(cc)),
	      cc);
	check(guise_connect(stack, from, (struct sockaddr *)&a, sizeof(a)), "connect");
	to = (int)check(guise_accept4(stack, listener, NULL, NULL, 0), "accept");
	*f = (struct flow){
		.kind = kind, .path = path, .out = down ? to : from, .in = down ? from : to
	};
}

/* Bytes that the senders' end of a path has sent, without what netem dropped or still has. */
static void count_path(int path, uint64_t *bytes)
{
	static char text[8192];
	char name[16];
	const char *line;

	enter(down ? client : server);
	snprintf(name, sizeof(name), "p%d:", path);
	check(guise_read_file(stack, "/proc/thread-self/net/dev", text, sizeof(text)),
	      "/proc/thread-self/net/dev");
	line = strstr(text, name);
	*bytes = line ? strtoull(line + strlen(name), NULL, 10) : 0;
}

static void send_some(struct flow *f, long message)
{
	static char buf[65536];
	long n = message && f->pending < (long)sizeof(buf) ? f->pending : (long)sizeof(buf);

	if (!n)
		return;
	n = guise_sendto(stack, f->out, buf, (size_t)n, MSG_DONTWAIT, NULL, 0);
	if (n == -EAGAIN)
		return;
	check(n, "send");
	if (message)
		f->pending -= n;
}

static void receive(struct flow *f, bool counted)
{
	static char buf[65536];
	uint64_t now = guise_clock(stack);
	long n;

	while ((n = guise_recvfrom(stack, f->in, buf, sizeof(buf), MSG_DONTWAIT, NULL, NULL)) > 0) {
		if (counted) {
			f->got += n;
			if (f->last && now - f->last > f->stall)
				f->stall = now - f->last;
		}
		f->last = now;
	}
	if (n != -EAGAIN)
		check(n - 1, "receive");
}

static void run(uint64_t until, bool counted, long message)
{
	uint64_t next = guise_clock(stack), now;

	while ((now = guise_clock(stack)) < until) {
		struct pollfd p[2 * FLOWS];
		uint64_t wake = until;

		if (message && now >= next) {
			flow[0].pending += message;
			next += MESSAGE_EVERY;
		}
		if (message && next < wake)
			wake = next;
		for (int i = 0; i < flows; i++) {
			bool idle = message && !i && !flow[i].pending;

			p[2 * i] = (struct pollfd){ flow[i].in, POLLIN, 0 };
			p[2 * i + 1] = (struct pollfd){ flow[i].out, idle ? 0 : POLLOUT, 0 };
		}
		check(guise_poll(stack, p, 2 * (unsigned int)flows,
				 (int)((wake - now) / 1000000) + 1),
		      "poll");
		for (int i = 0; i < flows; i++) {
			if (p[2 * i].revents)
				receive(&flow[i], counted);
			if (p[2 * i + 1].revents & POLLOUT)
				send_some(&flow[i], i ? 0 : message);
		}
	}
}

static void print_counter(int ns, const char *name)
{
	static char text[65536];
	char *names, *values, *word, *rest;

	enter(ns);
	check(guise_read_file(stack, "/proc/thread-self/net/netstat", text, sizeof(text)),
	      "/proc/thread-self/net/netstat");
	names = strstr(text, "MPTcpExt:");
	values = names ? strstr(names + 1, "MPTcpExt:") : NULL;
	if (!values)
		return;
	values[-1] = '\0';
	for (word = strtok_r(names, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		if (!strcmp(word, name))
			printf("counter %s %ld\n", name, strtol(values, NULL, 10));
		values = strchr(values, ' ');
		if (!values)
			return;
		values++;
	}
}

int main(int argc, char **argv)
{
	struct guise_options opt = GUISE_OPTIONS_INIT;
	uint64_t sent[PATHS], seconds = 20, warm = 5, kill_at = 0, start;
	struct mptcp_info info;
	socklen_t len = sizeof(info);
	const char *cc = "cubic", *scheduler = NULL, *buffers = NULL, *flags = "subflow";
	int err, c, dead = 0, crossing = 0, protocol = IPPROTO_MPTCP;
	struct {
		int path, n;
		char cc[16];
	} cross[PATHS];
	bool shared = false;
	long message = 0;

	opt.simulated = 1;
	opt.seed = 1;
	while ((c = getopt(argc, argv, "p:2nbdc:s:S:x:t:w:m:k:B:")) != -1) {
		switch (c) {
		case 'p':
			if (paths < PATHS)
				netem[paths++] = optarg;
			break;
		case '2':
			shared = true;
			break;
		case 'n':
			protocol = 0;
			break;
		case 'b':
			flags = "subflow backup";
			break;
		case 'd':
			down = true;
			break;
		case 'c':
			cc = optarg;
			break;
		case 's':
			scheduler = optarg;
			break;
		case 'S':
			opt.seed = strtoull(optarg, NULL, 0);
			break;
		case 'x':
			if (crossing < PATHS &&
			    sscanf(optarg, "%d:%15[^:]:%d", &cross[crossing].path,
				   cross[crossing].cc, &cross[crossing].n) == 3)
				crossing++;
			break;
		case 't':
			seconds = strtoull(optarg, NULL, 10);
			break;
		case 'w':
			warm = strtoull(optarg, NULL, 10);
			break;
		case 'B':
			buffers = optarg;
			break;
		case 'm':
			message = atol(optarg);
			break;
		case 'k':
			if (sscanf(optarg, "%d:%" SCNu64, &dead, &kill_at) != 2)
				return 2;
			break;
		default:
			return 2;
		}
	}
	if (!paths)
		return 2;
	stack = guise_create(&opt, &err);
	if (!stack) {
		fprintf(stderr, "multipath: %s\n", guise_error());
		return 1;
	}
	client = (int)check(guise_netns_new(stack), "namespace");
	server = (int)check(guise_netns_new(stack), "namespace");
	make_paths(shared, flags);
	for (int i = 0; i < 2; i++) {
		enter(i ? server : client);
		if (scheduler)
			check(guise_sysctl_set(stack, "net.mptcp.scheduler", scheduler), scheduler);
		if (!buffers)
			continue;
		check(guise_sysctl_set(stack, "net.ipv4.tcp_rmem", buffers), buffers);
		check(guise_sysctl_set(stack, "net.ipv4.tcp_wmem", buffers), buffers);
	}
	add_flow(protocol ? "mptcp" : "tcp", 0, protocol, cc);
	for (int i = 0; i < crossing; i++)
		for (int k = 0; k < cross[i].n && flows < FLOWS; k++)
			add_flow("cross", cross[i].path, 0, cross[i].cc);
	start = guise_clock(stack);
	run(start + warm * SECOND, false, message);
	for (int i = 0; i < paths; i++)
		count_path(i, &sent[i]);
	if (kill_at) {
		run(start + kill_at * SECOND, true, message);
		set_netem(client, dead, "loss 100%");
		set_netem(server, dead, "loss 100%");
	}
	run(start + (warm + seconds) * SECOND, true, message);
	for (int i = 0; i < flows; i++)
		printf("flow %s %d bytes %ld stall %" PRIu64 "\n", flow[i].kind, flow[i].path,
		       flow[i].got, flow[i].stall);
	for (int i = 0; i < paths; i++) {
		uint64_t now;

		count_path(i, &now);
		printf("path %d bytes %" PRIu64 "\n", i, now - sent[i]);
	}
	memset(&info, 0, sizeof(info));
	if (protocol &&
	    guise_getsockopt(stack, flow[0].out, SOL_MPTCP, MPTCP_INFO, &info, &len) >= 0)
		printf("subflows %d\n", info.mptcpi_subflows + 1);
	print_counter(down ? server : client, "MPTCPRetrans");
	print_counter(down ? client : server, "DuplicateData");
	guise_leave(stack);
	return 0;
}
