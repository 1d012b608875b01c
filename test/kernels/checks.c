// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the kernel's own checks find in it.
 *
 *	checks boot BUG			boots with a bug planted (arch/guise/kernel/planted.c)
 *	checks leaks [BUG]		what kmemleak finds after much has come and gone,
 *					in simulated time
 *	checks leaks-of-links		the same, after links between two stacks
 *
 * leaks prints one line for the rounds, and then kmemleak's report as it is.
 */
#include "guise/guise.h"
#include "guise/syscall.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

#define ROUNDS 20
#define SECOND 1000000000ull
/* kmemleak takes what is younger than 5 s for a pointer on its way, and what has
 * changed since the last scan. */
#define AGE (12 * SECOND)

static struct guise_stack *s;

static int must(long ret, const char *what)
{
	if (ret >= 0)
		return (int)ret;
	fprintf(stderr, "checks: %s: %s (%s)\n", what, strerror((int)-ret), guise_error());
	exit(1);
}

static struct guise_stack *create(const char *bug, int simulated)
{
	struct guise_options opt = GUISE_OPTIONS_INIT;
	struct guise_stack *stack;
	char cmdline[64];
	int err;

	snprintf(cmdline, sizeof(cmdline), "guise_plant=%s", bug);
	opt.cmdline = cmdline;
	opt.simulated = simulated;
	opt.seed = 1;
	stack = guise_create(&opt, &err);
	if (!stack)
		must(err, "create");
	return stack;
}

static void kmemleak(const char *word)
{
	static const char path[] = "/sys/kernel/debug/kmemleak";
	int fd =
		must(guise_call(s, GUISE_NR_openat, AT_FDCWD, (long)path, O_WRONLY, 0, 0, 0), path);

	must(guise_write(s, fd, word, strlen(word)), word);
	guise_close(s, fd);
}

static void print_leaks(void)
{
	static char report[1 << 20];

	/* By a thread of the kernel's own; a task of ours cannot scan. */
	kmemleak("scan=2");
	must(guise_nanosleep(s, AGE), "sleep");
	kmemleak("scan=off");
	must(guise_read_file(s, "/sys/kernel/debug/kmemleak", report, sizeof(report)), "kmemleak");
	fputs(report, stdout);
}

/* A connection over an address; its end is an orderly one, or a reset. */
static void connection(int family, int protocol, const char *address, int reset)
{
	struct sockaddr_in6 at6 = { .sin6_family = AF_INET6 };
	struct sockaddr_in at4 = { .sin_family = AF_INET };
	struct sockaddr *at = family == AF_INET ? (void *)&at4 : (void *)&at6;
	socklen_t len = family == AF_INET ? sizeof(at4) : sizeof(at6);
	const struct linger now = { reset, 0 };
	int listener, client, server;
	static char text[3000];

	inet_pton(AF_INET, address, &at4.sin_addr);
	inet_pton(AF_INET6, address, &at6.sin6_addr);
	must(listener = guise_socket(s, family, SOCK_STREAM, protocol), "socket");
	must(guise_bind(s, listener, at, len), "bind");
	must(guise_listen(s, listener, 5), "listen");
	must(guise_getsockname(s, listener, at, &len), "getsockname");
	must(client = guise_socket(s, family, SOCK_STREAM, protocol), "socket");
	must(guise_connect(s, client, at, len), "connect");
	must(server = guise_accept4(s, listener, NULL, NULL, 0), "accept");
	must(guise_write(s, client, text, sizeof(text)), "write");
	must(guise_read(s, server, text, 1000), "read"); /* the rest stays there */
	must(guise_setsockopt(s, client, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), "linger");
	guise_close(s, client);
	guise_close(s, server);
	guise_close(s, listener);
}

static void sockets(void)
{
	static const int kinds[][3] = {
		{ AF_INET, SOCK_DGRAM, 0 },          { AF_INET6, SOCK_DGRAM, 0 },
		{ AF_INET, SOCK_RAW, IPPROTO_ICMP }, { AF_INET6, SOCK_RAW, IPPROTO_ICMPV6 },
		{ AF_PACKET, SOCK_RAW, 0x300 },      { AF_NETLINK, SOCK_RAW, NETLINK_ROUTE },
		{ AF_UNIX, SOCK_STREAM, 0 },
	};
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(9) };
	struct epoll_event event = { .events = EPOLLIN };
	int ep, fd;

	must(ep = guise_epoll_create(s, 0), "epoll");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		must(fd = guise_socket(s, kinds[i][0], kinds[i][1], kinds[i][2]), "socket");
		must(guise_epoll_ctl(s, ep, EPOLL_CTL_ADD, fd, &event), "epoll_ctl");
		if (kinds[i][0] == AF_INET && kinds[i][1] == SOCK_DGRAM) {
			inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
			guise_sendto(s, fd, "lost", 4, 0, (struct sockaddr *)&to, sizeof(to));
		}
		guise_close(s, fd);
	}
	guise_close(s, ep);
	connection(AF_INET, 0, "127.0.0.1", 0);
	connection(AF_INET6, 0, "::1", 1);
	connection(AF_INET, IPPROTO_MPTCP, "127.0.0.1", 0);
}

/* Two namespaces with a veth pair between them, a queue with packets in it, and a neighbour that
 * does not answer; all of it goes when the namespaces close. */
static void namespaces(const char *qdisc)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(9) };
	int a, b, fd;

	must(a = guise_netns_new(s), "namespace");
	must(b = guise_netns_new(s), "namespace");
	must(guise_veth_add(s, a, "v0", b, "v1"), "veth");
	must(guise_netns_enter(s, b), "enter");
	must(guise_addr_add(s, "v1", "10.1.0.2/24"), "address");
	must(guise_link_set(s, "v1", 1), "up");
	must(guise_netns_enter(s, a), "enter");
	must(guise_addr_add(s, "v0", "10.1.0.1/24"), "address");
	must(guise_addr_add(s, "v0", "fd00::1/64"), "address");
	must(guise_link_set(s, "v0", 1), "up");
	must(guise_qdisc_set(s, "v0", qdisc), "qdisc");
	must(guise_route_add(s, "10.9.0.0/16", "10.1.0.2", NULL, 0), "route");
	must(guise_sysctl_set(s, "net.ipv4.tcp_congestion_control", "bbr"), "sysctl");
	connection(AF_INET, 0, "10.1.0.1", 0);
	must(fd = guise_socket(s, AF_INET, SOCK_DGRAM, 0), "socket");
	for (int i = 2; i < 40; i++) {
		char address[32];

		snprintf(address, sizeof(address), i % 2 ? "10.1.0.2" : "10.1.0.%d", i);
		inet_pton(AF_INET, address, &to.sin_addr);
		must(guise_sendto(s, fd, "queued", 6, 0, (struct sockaddr *)&to, sizeof(to)),
		     "send");
	}
	guise_close(s, fd);
	must(guise_qdisc_set(s, "v0", "fq_codel"), "qdisc");
	must(guise_netns_enter(s, -1), "enter");
	guise_close(s, a);
	guise_close(s, b);
}

static void leaks(const char *bug)
{
	static const char *const qdiscs[] = {
		"netem delay 20ms loss 1% limit 100",
		"fq",
		"tbf rate 10mbit burst 32kb latency 50ms",
		"pfifo limit 100",
		"fq_codel",
	};

	s = create(bug, 1);
	for (int i = 0; i < ROUNDS; i++) {
		sockets();
		namespaces(qdiscs[i % (sizeof(qdiscs) / sizeof(qdiscs[0]))]);
	}
	must(guise_nanosleep(s, 90 * SECOND), "TIME_WAIT");
	printf("%d rounds\n", ROUNDS);
	print_leaks();
}

/* A stack that comes and goes, connected by a pair to one that stays. */
static void leaks_of_links(void)
{
	struct guise_stack *other;

	s = create("", 0);
	for (int i = 0; i < ROUNDS / 4; i++) {
		other = create("", 0);
		must(guise_pair(s, "c0", other, "c0"), "pair");
		must(guise_addr_add(s, "c0", "10.2.0.1/24"), "address");
		must(guise_addr_add(other, "c0", "10.2.0.2/24"), "address");
		must(guise_link_set(s, "c0", 1), "up");
		must(guise_link_set(other, "c0", 1), "up");
		must(guise_qdisc_set(s, "c0", "netem delay 1ms"), "qdisc");
		connection(AF_INET, 0, "10.2.0.1", i % 2);
		guise_leave(other);
		must(guise_link_del(s, "c0"), "delete");
	}
	printf("%d rounds\n", ROUNDS / 4);
	print_leaks();
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "", *bug = argc > 2 ? argv[2] : "";

	if (!strcmp(what, "boot")) {
		s = create(bug, 1);
		puts("booted");
	} else if (!strcmp(what, "leaks")) {
		leaks(bug);
	} else if (!strcmp(what, "leaks-of-links")) {
		leaks_of_links();
	} else {
		fprintf(stderr, "usage: checks boot BUG | leaks [BUG] | leaks-of-links\n");
		return 2;
	}
	guise_leave(s);
	return 0;
}
