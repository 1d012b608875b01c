// SPDX-License-Identifier: GPL-2.0-only
/*
 * Datagrams of Mote, the protocol of extensions/mote, by an ordinary program: it calls nothing of
 * guise, and runs on a stack whose kernel has the extension.
 *
 * Usage:
 *	mote serve PORT			answers each datagram, until one says "end"
 *	mote ask ADDRESS PORT TEXT...	sends each TEXT, prints its answer, and how many were lost
 *	mote refused ADDRESS PORT	sends to a port that nobody has
 *	mote socket			only opens a socket
 */
#include "../../extensions/mote/mote.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static void check(long ret, const char *what)
{
	if (ret >= 0)
		return;
	printf("%s: %s\n", what, strerrorname_np(errno));
	exit(1);
}

static struct sockaddr_mote address_of(const char *address, const char *port)
{
	struct sockaddr_mote a = { .family = AF_MOTE, .port = htons((unsigned short)atoi(port)) };

	inet_pton(AF_INET, address, &a.address);
	return a;
}

static int serve(int fd, const char *port)
{
	struct sockaddr_mote own = address_of("0.0.0.0", port), from;
	char text[2048];

	check(bind(fd, (struct sockaddr *)&own, sizeof(own)), "bind");
	printf("ready\n");
	fflush(stdout);
	for (;;) {
		socklen_t len = sizeof(from);
		ssize_t n = recvfrom(fd, text, sizeof(text), 0, (struct sockaddr *)&from, &len);

		check(n, "recvfrom");
		check(sendto(fd, text, (size_t)n, 0, (struct sockaddr *)&from, len), "sendto");
		if (n == 3 && !memcmp(text, "end", 3))
			return 0;
	}
}

static void await(int fd)
{
	struct pollfd p = { fd, POLLIN, 0 };

	if (poll(&p, 1, 20000) == 1)
		return;
	printf("no answer within 20 s\n");
	exit(1);
}

static int ask(int fd, struct sockaddr_mote to, char **texts)
{
	socklen_t len = sizeof(to);
	char text[2048];
	ssize_t n;
	int lost;

	check(connect(fd, (struct sockaddr *)&to, sizeof(to)), "connect");
	for (; *texts; texts++) {
		check(send(fd, *texts, strlen(*texts), 0), "send");
		await(fd);
		n = recv(fd, text, sizeof(text), 0);
		check(n, "recv");
		printf("%.*s\n", (int)n, text);
	}
	check(getpeername(fd, (struct sockaddr *)&to, &len), "getpeername");
	len = sizeof(lost);
	check(getsockopt(fd, SOL_MOTE, MOTE_LOST, &lost, &len), "getsockopt");
	printf("peer's port %d, %d lost\n", ntohs(to.port), lost);
	return 0;
}

/* The peer's kernel says so by ICMP, and the next call has the error. */
static int refused(int fd, struct sockaddr_mote to)
{
	check(connect(fd, (struct sockaddr *)&to, sizeof(to)), "connect");
	check(send(fd, "x", 1, 0), "send");
	await(fd);
	check(recv(fd, &to, 1, 0), "recv");
	return 0;
}

int main(int argc, char **argv)
{
	int fd;

	if (argc < 2)
		return 2;
	fd = socket(AF_MOTE, SOCK_DGRAM, 0);
	check(fd, "socket");
	if (argc == 3 && !strcmp(argv[1], "serve"))
		return serve(fd, argv[2]);
	if (argc > 4 && !strcmp(argv[1], "ask"))
		return ask(fd, address_of(argv[2], argv[3]), argv + 4);
	if (argc == 4 && !strcmp(argv[1], "refused"))
		return refused(fd, address_of(argv[2], argv[3]));
	return strcmp(argv[1], "socket") ? 2 : 0;
}
