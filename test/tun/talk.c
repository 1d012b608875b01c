// SPDX-License-Identifier: GPL-2.0-only
/*
 * Linked statically by its test: a client and a server without a loader.
 *
 *	talk serve PORT		answers one connection with what it hears, then ends
 *	talk ask ADDR PORT WORD	says WORD, ends its half, prints what it hears
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int copy(int from, int to)
{
	char buf[65536];
	ssize_t n;

	while ((n = read(from, buf, sizeof(buf))) > 0)
		if (write(to, buf, (size_t)n) != n)
			return 1;
	return n != 0;
}

static int serve(const char *port)
{
	struct sockaddr_in6 a = { .sin6_family = AF_INET6,
				  .sin6_port = htons((uint16_t)atoi(port)) };
	int s = socket(AF_INET6, SOCK_STREAM, 0), one = 1, c;

	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(s, (struct sockaddr *)&a, sizeof(a)) || listen(s, 1)) {
		perror("listen");
		return 1;
	}
	puts("listening");
	fflush(stdout);
	c = accept(s, NULL, NULL);
	return c < 0 || copy(c, c);
}

static int ask(const char *addr, const char *port, const char *word)
{
	struct sockaddr_in6 a6 = { .sin6_family = AF_INET6,
				   .sin6_port = htons((uint16_t)atoi(port)) };
	struct sockaddr_in a4 = { .sin_family = AF_INET, .sin_port = a6.sin6_port };
	int v6 = inet_pton(AF_INET6, addr, &a6.sin6_addr) == 1;
	int s = socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM, 0);

	inet_pton(AF_INET, addr, &a4.sin_addr);
	if (connect(s, v6 ? (struct sockaddr *)&a6 : (struct sockaddr *)&a4,
		    v6 ? sizeof(a6) : sizeof(a4))) {
		printf("%s\n", strerror(errno));
		return 1;
	}
	if (write(s, word, strlen(word)) != (ssize_t)strlen(word) || shutdown(s, SHUT_WR))
		return 1;
	return copy(s, 1);
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "serve"))
		return serve(argv[2]);
	if (argc == 5 && !strcmp(argv[1], "ask"))
		return ask(argv[2], argv[3], argv[4]);
	fputs("usage: talk serve PORT | ask ADDR PORT WORD\n", stderr);
	return 2;
}
