// SPDX-License-Identifier: GPL-2.0-only
/*
 * A bulk transfer between two namespaces over a veth pair with delay and loss, in simulated
 * time. Prints a line for every packet that the receiving
 * interface saw (time, length, hash of its bytes), and at the end what the
 * transfer took, by which congestion control. The same seed must print the same, whatever the
 * machine does.
 *
 * With a file for them, the monitor records events, of all kinds; its records are written there,
 * and the counters of both namespaces to FILE.a and FILE.b.
 *
 * Usage: transfer SEED [CONGESTION-CONTROL [BYTES [NETEM-SPEC [EVENTS-FILE [KINDS]]]]]
 */
#include "guise/guise.h"
#include "guise/syscall.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PORT 5001

static void check(long ret, const char *what)
{
	if (ret >= 0)
		return;
	fprintf(stderr, "transfer: %s: %s (%s)\n", what, strerror((int)-ret), guise_error());
	exit(1);
}

static uint64_t fnv1a(const unsigned char *p, size_t n)
{
	uint64_t h = 0xcbf29ce484222325ull;

	while (n--)
		h = (h ^ *p++) * 0x100000001b3ull;
	return h;
}

/* Every packet that lies in the capture socket by now. */
static void print_packets(struct guise_stack *s, int packet)
{
	static unsigned char frame[65536];
	struct sockaddr_ll from;
	socklen_t len = sizeof(from);
	ssize_t n;

	while ((n = guise_recvfrom(s, packet, frame, sizeof(frame), MSG_DONTWAIT,
				   (struct sockaddr *)&from, &len)) > 0) {
		printf("%" PRIu64 " %d %zd %016" PRIx64 "\n", guise_clock(s), from.sll_pkttype, n,
		       fnv1a(frame, (size_t)n));
		len = sizeof(from);
	}
}

static int open_file(struct guise_stack *s, const char *path, int flags)
{
	return (int)guise_call(s, GUISE_NR_openat, AT_FDCWD, (long)path, flags, 0, 0, 0);
}

static void copy(struct guise_stack *s, int from, FILE *to)
{
	static char text[65536];
	ssize_t n;

	while ((n = guise_read(s, from, text, sizeof(text))) > 0)
		fwrite(text, 1, (size_t)n, to);
	check(n, "read");
}

static FILE *result(const char *file, const char *suffix)
{
	char path[4096];
	FILE *to;

	snprintf(path, sizeof(path), "%s%s", file, suffix);
	to = fopen(path, "w");
	if (!to)
		check(-errno, path);
	return to;
}

/* Returns the file of the records. */
static int record(struct guise_stack *s, const char *what)
{
	int kinds, events;

	check(kinds = open_file(s, "/proc/net/guise/kinds", O_WRONLY), "kinds");
	check(guise_write(s, kinds, what, strlen(what)), what);
	guise_close(s, kinds);
	check(events = open_file(s, "/proc/net/guise/events", O_RDONLY), "events");
	return events;
}

static void write_counters(struct guise_stack *s, int namespace, const char *file,
			   const char *suffix)
{
	static const char *const from[] = { "/proc/thread-self/net/snmp",
					    "/proc/thread-self/net/netstat" };
	FILE *to = result(file, suffix);

	check(guise_netns_enter(s, namespace), "enter");
	for (int i = 0; i < 2; i++) {
		int fd;

		check(fd = open_file(s, from[i], O_RDONLY), from[i]);
		copy(s, fd, to);
		guise_close(s, fd);
	}
	fclose(to);
}

int main(int argc, char **argv)
{
	struct guise_options opt = GUISE_OPTIONS_INIT;
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	const char *cc = argc > 2 ? argv[2] : "cubic";
	long bytes = argc > 3 ? atol(argv[3]) : 4000000, sent = 0, got = 0;
	const char *netem =
		argc > 4 ? argv[4] : "delay 10ms loss 0.2% rate 100mbit limit 1000 seed 9876543210";
	static char buf[65536];
	struct guise_stack *s;
	struct tcp_info info;
	socklen_t len = sizeof(info), named = 15;
	char spec[256], used[16] = "";
	int err, a, b, listener, out, in, packet, events = -1, sndbuf = 4 << 20;
	uint64_t start;

	if (argc < 2) {
		fprintf(stderr,
			"usage: transfer SEED [CC [BYTES [NETEM [EVENTS-FILE [KINDS]]]]]\n");
		return 2;
	}
	opt.simulated = 1;
	opt.seed = strtoull(argv[1], NULL, 0);
	s = guise_create(&opt, &err);
	if (!s) {
		fprintf(stderr, "transfer: %s\n", guise_error());
		return 1;
	}
	if (argc > 5)
		events = record(s, argc > 6 ? argv[6] : "all");
	check(a = guise_netns_new(s), "namespace a");
	check(b = guise_netns_new(s), "namespace b");
	check(guise_veth_add(s, a, "v", b, "v"), "veth");
	snprintf(spec, sizeof(spec), "netem %s", netem);

	check(guise_netns_enter(s, b), "enter b");
	check(guise_addr_add(s, "v", "10.1.0.2/24"), "address b");
	check(guise_link_offload(s, "v", 0), "offload b");
	check(guise_link_set(s, "v", 1), "up b");
	check(guise_qdisc_set(s, "v", spec), "netem b");
	check(packet = guise_socket(s, AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, htons(ETH_P_ALL)),
	      "packet socket");
	guise_setsockopt(s, packet, SOL_SOCKET, SO_RCVBUFFORCE, &sndbuf, sizeof(sndbuf));
	check(listener = guise_socket(s, AF_INET, SOCK_STREAM, 0), "listener");
	to.sin_addr.s_addr = htonl(INADDR_ANY);
	check(guise_bind(s, listener, (struct sockaddr *)&to, sizeof(to)), "bind");
	check(guise_setsockopt(s, listener, IPPROTO_TCP, TCP_CONGESTION, cc, (socklen_t)strlen(cc)),
	      cc);
	check(guise_listen(s, listener, 1), "listen");

	check(guise_netns_enter(s, a), "enter a");
	check(guise_addr_add(s, "v", "10.1.0.1/24"), "address a");
	check(guise_link_offload(s, "v", 0), "offload a");
	check(guise_link_set(s, "v", 1), "up a");
	check(guise_qdisc_set(s, "v", spec), "netem a");
	check(out = guise_socket(s, AF_INET, SOCK_STREAM, 0), "socket");
	check(guise_setsockopt(s, out, IPPROTO_TCP, TCP_CONGESTION, cc, (socklen_t)strlen(cc)), cc);
	inet_pton(AF_INET, "10.1.0.2", &to.sin_addr);
	start = guise_clock(s);
	check(guise_connect(s, out, (struct sockaddr *)&to, sizeof(to)), "connect");
	check(in = guise_accept4(s, listener, NULL, NULL, SOCK_NONBLOCK), "accept");
	while (got < bytes) {
		struct pollfd p[3] = { { out, sent < bytes ? POLLOUT : 0, 0 },
				       { in, POLLIN, 0 },
				       { packet, POLLIN, 0 } };
		ssize_t n;

		check(guise_poll(s, p, 3, 120000) - 1, "poll (nothing for two minutes)");
		print_packets(s, packet);
		if (p[0].revents & POLLOUT) {
			n = bytes - sent < (long)sizeof(buf) ? bytes - sent : (long)sizeof(buf);
			n = guise_sendto(s, out, buf, (size_t)n, MSG_DONTWAIT, NULL, 0);
			if (n != -EAGAIN)
				check(n, "send");
			sent += n > 0 ? n : 0;
		}
		while ((n = guise_read(s, in, buf, sizeof(buf))) > 0)
			got += n;
		if (n != -EAGAIN)
			check(n - 1, "receive");
	}
	print_packets(s, packet);
	memset(&info, 0, sizeof(info));
	check(guise_getsockopt(s, out, IPPROTO_TCP, TCP_INFO, &info, &len), "TCP_INFO");
	check(guise_getsockopt(s, out, IPPROTO_TCP, TCP_CONGESTION, used, &named),
	      "TCP_CONGESTION");
	printf("done %s bytes %ld ns %" PRIu64 " retransmits %u cwnd %u\n", used, got,
	       guise_clock(s) - start, info.tcpi_total_retrans, info.tcpi_snd_cwnd);
	if (events >= 0) {
		FILE *file = result(argv[5], "");

		copy(s, events, file);
		fclose(file);
		write_counters(s, a, argv[5], ".a");
		write_counters(s, b, argv[5], ".b");
	}
	guise_leave(s);
	return 0;
}
