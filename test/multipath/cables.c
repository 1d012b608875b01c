// SPDX-License-Identifier: GPL-2.0-only
/*
 * Two stacks of this process, joined by two cables, and a Multipath TCP connection over both.
 *
 *	one ── eth0 ── 10.0.1.1 ── 10.0.1.2 ── eth0 ── other
 *	    ── eth1 ── 10.0.2.1 ── 10.0.2.2 ── eth1 ──
 *
 * Sends 4 MB each way. Prints how many bytes arrived as they were sent, how many further subflows
 * the connection has and whether it fell back, and what each interface of the first stack has sent
 * and received. Each cable has a rate, so that one alone is not enough.
 */
#include "guise/guise.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE       4000000l
#define PERIOD     251 /* of the bytes that are sent */
#define NETEM      "netem rate 40mbit limit 200"
#define SOL_MPTCP  284
#define MPTCP_INFO 1
#define WAIT_MS    60000

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

/* The first members of struct mptcp_info: headers of Debian 12 do not have all of it. */
struct info {
	uint8_t subflows, others[7];
	uint32_t flags;
};

static long must(long ret, const char *what)
{
	if (ret >= 0)
		return ret;
	fprintf(stderr, "cables: %s: %s (%s)\n", what, strerror((int)-ret), guise_error());
	exit(1);
}

static struct guise_stack *create(const char *name)
{
	struct guise_options opt = GUISE_OPTIONS_INIT;
	struct guise_stack *s;
	int err;

	opt.name = name;
	opt.memory = 64 << 20;
	s = guise_create(&opt, &err);
	if (!s)
		must(err, "create");
	return s;
}

static void put_on(struct guise_stack *s, const char *dev, const char *address)
{
	must(guise_addr_add(s, dev, address), address);
	must(guise_link_offload(s, dev, 0), "offload");
	must(guise_qdisc_set(s, dev, NETEM), "netem");
	must(guise_link_set(s, dev, 1), "up");
}

static void join(struct guise_stack *one, struct guise_stack *other)
{
	must(guise_pair(one, "eth0", other, "eth0"), "first pair");
	must(guise_pair(one, "eth1", other, "eth1"), "second pair");
	put_on(one, "eth0", "10.0.1.1/24");
	put_on(one, "eth1", "10.0.2.1/24");
	put_on(other, "eth0", "10.0.1.2/24");
	put_on(other, "eth1", "10.0.2.2/24");
	/* For the subflow to 10.0.1.2, whose socket is bound to eth1. */
	must(guise_route_add(one, "default", "10.0.2.2", "eth1", 0), "route");
	must(guise_mptcp_endpoint(one, "10.0.2.1", "eth1", "subflow"), "endpoint");
}

struct end {
	struct guise_stack *s;
	int fd;
	long sent, got, right;
};

/* Sends and receives what is possible now. */
static int move(struct end *e)
{
	static unsigned char buf[65536];
	long n = SIZE - e->sent, moved = 0;

	if (n > (long)sizeof(buf))
		n = (long)sizeof(buf);
	for (long i = 0; i < n; i++)
		buf[i] = (unsigned char)((e->sent + i) % PERIOD);
	if (n > 0)
		n = guise_sendto(e->s, e->fd, buf, (size_t)n, MSG_DONTWAIT, NULL, 0);
	if (n != -EAGAIN) {
		e->sent += must(n, "send");
		moved = n;
	}
	if (e->got == SIZE)
		return moved > 0;
	n = guise_recvfrom(e->s, e->fd, buf, sizeof(buf), MSG_DONTWAIT, NULL, NULL);
	if (n == -EAGAIN)
		return moved > 0;
	must(n - 1, "receive");
	for (long i = 0; i < n; i++)
		e->right += buf[i] == (e->got + i) % PERIOD;
	e->got += n;
	return 1;
}

/* Both ends are in this thread: it waits in the stack of the first, for what it cannot do yet. */
static void converse(struct end *one, struct end *other)
{
	uint64_t last = guise_clock(one->s);

	while (one->got < SIZE || other->got < SIZE) {
		struct pollfd p = { .fd = one->fd, .events = POLLIN };

		if (move(one) | move(other)) {
			last = guise_clock(one->s);
			continue;
		}
		must(guise_poll(one->s, &p, 1, 1), "poll");
		if (guise_clock(one->s) - last > WAIT_MS * 1000000ull) {
			fprintf(stderr, "cables: nothing for %d ms\n", WAIT_MS);
			exit(1);
		}
	}
}

static void print_counters(struct guise_stack *s, const char *dev)
{
	static const char *const counters[] = { "tx_bytes", "rx_bytes" };
	char path[128], value[64];

	printf("%s", dev);
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "/sys/class/net/%s/statistics/%s", dev, counters[i]);
		must(guise_read_file(s, path, value, sizeof(value)), path);
		printf(" %lu", strtoul(value, NULL, 10));
	}
	printf("\n");
}

int main(void)
{
	struct guise_stack *one = create("one"), *other = create("other");
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(5001) };
	struct end here = { .s = one }, there = { .s = other };
	struct info info = { 0 };
	socklen_t len = sizeof(info);
	int listener;

	join(one, other);
	must(listener = guise_socket(other, AF_INET, SOCK_STREAM, IPPROTO_MPTCP), "socket");
	must(guise_bind(other, listener, (struct sockaddr *)&at, sizeof(at)), "bind");
	must(guise_listen(other, listener, 1), "listen");
	inet_pton(AF_INET, "10.0.1.2", &at.sin_addr);
	must(here.fd = guise_socket(one, AF_INET, SOCK_STREAM, IPPROTO_MPTCP), "socket");
	must(guise_connect(one, here.fd, (struct sockaddr *)&at, sizeof(at)), "connect");
	must(there.fd = guise_accept4(other, listener, NULL, NULL, 0), "accept");
	converse(&here, &there);
	must(guise_getsockopt(one, here.fd, SOL_MPTCP, MPTCP_INFO, &info, &len), "MPTCP_INFO");
	printf("right %ld %ld\nsubflows %d fallback %d\n", there.right, here.right, info.subflows,
	       info.flags & 1);
	print_counters(one, "eth0");
	print_counters(one, "eth1");
	guise_leave(one);
	guise_leave(other);
	return 0;
}
