// SPDX-License-Identifier: GPL-2.0-only
/*
 * Connections that come and go on one stack for a long time.
 *
 *	churn SECONDS
 *
 * In each round a listener, 50 connections that each carry data both ways,
 * half of them ended by a reset; a UDP echo; an epoll that watches them. After
 * each tenth of the time everything is closed and the stack's free memory is
 * read: "FREE_KIB CONNECTIONS" in ten lines. It joins by itself (run it with
 * GUISE_PRELOAD=off).
 */
#include "guise/guise.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>

#define CONNECTIONS 50
#define BYTES       20000

static struct guise_stack *s;

static long must(long ret, const char *what)
{
	if (ret >= 0)
		return ret;
	fprintf(stderr, "churn: %s: %s (%s)\n", what, strerror((int)-ret), guise_error());
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* All of a buffer in one direction, byte for byte. */
static void carry(int from, int to)
{
	static char sent[BYTES], got[BYTES];
	size_t n = 0;

	for (size_t i = 0; i < BYTES; i++)
		sent[i] = (char)rand();
	must(guise_write(s, from, sent, BYTES) - BYTES, "write");
	while (n < BYTES) {
		long part = must(guise_read(s, to, got + n, BYTES - n), "read");

		if (!part)
			must(-EPIPE, "read");
		n += (size_t)part;
	}
	if (memcmp(sent, got, BYTES))
		must(-EBADMSG, "what arrived is not what was sent");
}

static void datagrams(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);
	int fd = (int)must(guise_socket(s, AF_INET, SOCK_DGRAM, 0), "socket");
	char word[100] = "datagram";

	must(guise_bind(s, fd, (struct sockaddr *)&at, sizeof(at)), "bind");
	must(guise_getsockname(s, fd, (struct sockaddr *)&at, &len), "getsockname");
	for (int i = 0; i < 20; i++) {
		must(guise_sendto(s, fd, word, sizeof(word), 0, (struct sockaddr *)&at, len),
		     "sendto");
		must(guise_read(s, fd, word, sizeof(word)), "read");
	}
	/* The last one is left in the queue. */
	must(guise_sendto(s, fd, word, sizeof(word), 0, (struct sockaddr *)&at, len), "sendto");
	guise_close(s, fd);
}

static int one_round(void)
{
	struct sockaddr_in6 at = { .sin6_family = AF_INET6 };
	const struct linger reset = { 1, 0 };
	int listener, ep, client[CONNECTIONS], server[CONNECTIONS];
	struct epoll_event event = { .events = EPOLLIN | EPOLLRDHUP };
	socklen_t len = sizeof(at);

	must(listener = guise_socket(s, AF_INET6, SOCK_STREAM, 0), "socket");
	must(guise_bind(s, listener, (struct sockaddr *)&at, sizeof(at)), "bind");
	must(guise_listen(s, listener, CONNECTIONS), "listen");
	must(guise_getsockname(s, listener, (struct sockaddr *)&at, &len), "getsockname");
	at.sin6_addr = in6addr_loopback;
	must(ep = guise_epoll_create(s, 0), "epoll_create");
	for (int i = 0; i < CONNECTIONS; i++) {
		must(client[i] = guise_socket(s, AF_INET6, SOCK_STREAM, 0), "socket");
		must(guise_connect(s, client[i], (struct sockaddr *)&at, sizeof(at)), "connect");
		must(server[i] = guise_accept4(s, listener, NULL, NULL, 0), "accept");
		event.data.fd = server[i];
		must(guise_epoll_ctl(s, ep, EPOLL_CTL_ADD, server[i], &event), "epoll_ctl");
		carry(client[i], server[i]);
		carry(server[i], client[i]);
		/* The client that is reset has no TIME_WAIT. */
		must(guise_setsockopt(s, client[i], SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)),
		     "SO_LINGER");
	}
	for (int i = 0; i < CONNECTIONS; i++) {
		guise_close(s, client[i]);
		must(guise_epoll_wait(s, ep, &event, 1, 20000) - 1, "the end is not heard of");
		guise_close(s, event.data.fd);
	}
	guise_close(s, ep);
	guise_close(s, listener);
	return CONNECTIONS;
}

static long free_kib(void)
{
	char text[4096], *line;
	long n = guise_read_file(s, "/proc/meminfo", text, sizeof(text) - 1);

	must(n, "/proc/meminfo");
	text[n] = '\0';
	line = strstr(text, "MemFree:");
	return line ? strtol(line + strlen("MemFree:"), NULL, 10) : must(-ENODATA, "MemFree");
}

int main(int argc, char **argv)
{
	const char *ticket = getenv("GUISE_STACK");
	double seconds = argc == 2 ? strtod(argv[1], NULL) : 0;
	int err;

	if (seconds <= 0 || !ticket) {
		fprintf(stderr, "usage: guise run -- env GUISE_PRELOAD=off churn SECONDS\n");
		return 2;
	}
	s = guise_join(atoi(ticket), &err);
	if (!s)
		must(err, "join");
	for (int tenth = 0; tenth < 10; tenth++) {
		double end = now() + seconds / 10;
		long connections = 0;

		do {
			connections += one_round();
			datagrams();
		} while (now() < end);
		printf("%ld %ld\n", free_kib(), connections);
		fflush(stdout);
	}
	guise_leave(s);
	return 0;
}
