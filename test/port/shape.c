// SPDX-License-Identifier: GPL-2.0-only
/*
 * A bulk transfer through a queueing discipline, in simulated time. Prints
 * when each segment that carries data reached the receiver's interface, in
 * nanoseconds since the connection, and the discipline in its own words.
 *
 * Usage: shape QDISC CONGESTION-CONTROL BYTES [BYTES-A-SECOND]
 * The last is SO_MAX_PACING_RATE.
 */
#include "guise/guise.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FULL 1000 /* bytes of a frame that has data in it */

static int must(long ret, const char *what)
{
	if (ret >= 0)
		return (int)ret;
	fprintf(stderr, "shape: %s: %s (%s)\n", what, strerror((int)-ret), guise_error());
	exit(1);
}

static void print_arrivals(struct guise_stack *s, int packet, uint64_t start)
{
	char control[128] __attribute__((aligned(16))), frame[64];

	for (;;) {
		struct iovec iov = { frame, sizeof(frame) };
		struct msghdr m = { .msg_iov = &iov,
				    .msg_iovlen = 1,
				    .msg_control = control,
				    .msg_controllen = sizeof(control) };
		ssize_t n = guise_recvmsg(s, packet, &m, MSG_DONTWAIT | MSG_TRUNC);
		struct cmsghdr *c;
		struct timespec t;

		if (n < 0)
			return;
		/* The kernel's own note: the program may look later. */
		for (c = CMSG_FIRSTHDR(&m); c && n >= FULL; c = CMSG_NXTHDR(&m, c))
			if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_TIMESTAMPNS) {
				memcpy(&t, CMSG_DATA(c), sizeof(t));
				printf("%" PRIu64 " %zd\n",
				       (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec -
					       start,
				       n);
			}
	}
}

static uint64_t wall(struct guise_stack *s)
{
	/* Simulated wall time starts with the monotonic clock, at a fixed moment. */
	return 1700000000ull * 1000000000 + guise_clock(s);
}

static void place(struct guise_stack *s, int ns, const char *addr)
{
	must(guise_netns_enter(s, ns), "enter");
	must(guise_addr_add(s, "v", addr), "address");
	must(guise_link_offload(s, "v", 0), "offload");
	must(guise_link_set(s, "v", 1), "up");
}

int main(int argc, char **argv)
{
	struct guise_options opt = GUISE_OPTIONS_INIT;
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(5001) };
	int err, a, b, listener, out, in, packet, one = 1, room = 64 << 20;
	long bytes, sent = 0, got = 0, n;
	static char buf[65536];
	struct guise_stack *s;
	uint64_t start;

	if (argc < 4) {
		fprintf(stderr, "usage: shape QDISC CONGESTION-CONTROL BYTES [BYTES-A-SECOND]\n");
		return 2;
	}
	bytes = atol(argv[3]);
	opt.simulated = 1;
	opt.seed = 1;
	s = guise_create(&opt, &err);
	if (!s)
		must(err, "create");
	must(a = guise_netns_new(s), "namespace");
	must(b = guise_netns_new(s), "namespace");
	must(guise_veth_add(s, a, "v", b, "v"), "veth");
	place(s, b, "10.1.0.2/24");
	inet_pton(AF_INET, "10.1.0.2", &to.sin_addr);
	packet = must(guise_socket(s, AF_PACKET, SOCK_DGRAM, htons(ETH_P_IP)), "packet socket");
	must(guise_setsockopt(s, packet, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)), "room");
	must(guise_setsockopt(s, packet, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof(one)), "stamps");
	must(guise_qdisc_set(s, "v", "netem delay 10ms limit 10000"), "delay");
	listener = must(guise_socket(s, AF_INET, SOCK_STREAM, 0), "listener");
	must(guise_bind(s, listener, (struct sockaddr *)&to, sizeof(to)), "bind");
	must(guise_listen(s, listener, 1), "listen");
	place(s, a, "10.1.0.1/24");
	must(guise_qdisc_set(s, "v", argv[1]), argv[1]);
	out = must(guise_socket(s, AF_INET, SOCK_STREAM, 0), "socket");
	must(guise_setsockopt(s, out, IPPROTO_TCP, TCP_CONGESTION, argv[2],
			      (socklen_t)strlen(argv[2])),
	     argv[2]);
	if (argc > 4) {
		unsigned int rate = (unsigned int)atol(argv[4]);

		must(guise_setsockopt(s, out, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof(rate)),
		     "pacing rate");
	}
	must(guise_connect(s, out, (struct sockaddr *)&to, sizeof(to)), "connect");
	in = must(guise_accept4(s, listener, NULL, NULL, SOCK_NONBLOCK), "accept");
	start = wall(s);
	while (got < bytes) {
		struct pollfd p[2] = { { out, sent < bytes ? POLLOUT : 0, 0 }, { in, POLLIN, 0 } };

		must(guise_poll(s, p, 2, 120000) - 1, "poll (nothing for two minutes)");
		print_arrivals(s, packet, start);
		if (p[0].revents & POLLOUT) {
			n = bytes - sent < (long)sizeof(buf) ? bytes - sent : (long)sizeof(buf);
			n = guise_sendto(s, out, buf, (size_t)n, MSG_DONTWAIT, NULL, 0);
			if (n != -EAGAIN)
				sent += must(n, "send");
		}
		while ((n = guise_read(s, in, buf, sizeof(buf))) > 0)
			got += n;
		if (n != -EAGAIN)
			must(n - 1, "receive");
	}
	print_arrivals(s, packet, start);
	guise_leave(s);
	return 0;
}
