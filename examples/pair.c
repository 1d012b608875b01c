// SPDX-License-Identifier: GPL-2.0-only
/*
 * Two network stacks in one process, with a pair (a link of shared memory) between them. One
 * sends a hundred megabytes to the other, with a congestion control that may
 * be named on the command line; at the end the connection says how it went.
 *
 *	pair [bbr]
 */
#include <guise/guise.h>

#include <arpa/inet.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES (100L * 1000 * 1000)

static void check(long result, const char *what)
{
	if (result >= 0)
		return;
	fprintf(stderr, "pair: %s: %s\n", what, guise_error());
	exit(1);
}

/* A stack with interface eth0 at the given address, for one end of the pair. */
static struct guise_stack *make(const char *name)
{
	struct guise_options options = GUISE_OPTIONS_INIT;
	struct guise_stack *s;
	int err = 0;

	options.name = name;
	options.memory = 64 << 20;
	s = guise_create(&options, &err);
	check(s ? 0 : err, name);
	return s;
}

static void configure(struct guise_stack *s, const char *address)
{
	check(guise_addr_add(s, "eth0", address), "address");
	check(guise_link_set(s, "eth0", 1), "up");
}

struct receiver {
	struct guise_stack *s;
	int listener;
	long received;
};

/* The receiver's thread: its calls go to its stack. */
static void *receive(void *arg)
{
	struct receiver *r = arg;
	static char buf[1 << 20];
	int fd = guise_accept4(r->s, r->listener, NULL, NULL, 0);
	ssize_t n;

	check(fd, "accept");
	while ((n = guise_read(r->s, fd, buf, sizeof(buf))) > 0)
		r->received += n;
	check(n, "read");
	guise_close(r->s, fd);
	return NULL;
}

int main(int argc, char **argv)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(5001) };
	struct guise_stack *left = make("left"), *right = make("right");
	struct receiver r = { .s = right };
	struct tcp_info info = { 0 };
	static char buf[1 << 20];
	char cc[16] = "";
	socklen_t len;
	pthread_t thread;
	uint64_t began;
	long sent;
	int fd;

	/* A pair between the two, and an address at each end. */
	check(guise_pair(left, "eth0", right, "eth0"), "pair");
	configure(left, "192.0.2.1/24");
	configure(right, "192.0.2.2/24");
	if (argc > 1)
		check(guise_sysctl_set(left, "net.ipv4.tcp_congestion_control", argv[1]),
		      "congestion control");

	inet_pton(AF_INET, "192.0.2.2", &to.sin_addr);
	r.listener = guise_socket(right, AF_INET, SOCK_STREAM, 0);
	check(r.listener, "socket");
	check(guise_bind(right, r.listener, (struct sockaddr *)&to, sizeof(to)), "bind");
	check(guise_listen(right, r.listener, 1), "listen");
	if (pthread_create(&thread, NULL, receive, &r))
		return 1;

	fd = guise_socket(left, AF_INET, SOCK_STREAM, 0);
	check(fd, "socket");
	check(guise_connect(left, fd, (struct sockaddr *)&to, sizeof(to)), "connect");
	memset(buf, 'g', sizeof(buf));
	began = guise_clock(left);
	for (sent = 0; sent < BYTES;) {
		size_t part = BYTES - sent < (long)sizeof(buf) ? (size_t)(BYTES - sent)
							       : sizeof(buf);
		ssize_t n = guise_write(left, fd, buf, part);

		check(n, "write");
		sent += n;
	}
	check(guise_shutdown(left, fd, SHUT_WR), "shutdown");
	pthread_join(thread, NULL);

	len = sizeof(cc);
	check(guise_getsockopt(left, fd, IPPROTO_TCP, TCP_CONGESTION, cc, &len), "TCP_CONGESTION");
	len = sizeof(info);
	check(guise_getsockopt(left, fd, IPPROTO_TCP, TCP_INFO, &info, &len), "TCP_INFO");
	printf("%ld bytes sent, %ld received, %s, %.0f Mbit/s, %u retransmitted\n", sent,
	       r.received, cc, (double)sent * 8e3 / (double)(guise_clock(left) - began),
	       (unsigned int)info.tcpi_total_retrans);
	guise_close(left, fd);
	guise_close(right, r.listener);
	guise_leave(left);
	guise_leave(right);
	return r.received == sent ? 0 : 1;
}
