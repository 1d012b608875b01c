// SPDX-License-Identifier: GPL-2.0-only
/*
 * An echo server on a network stack of its own, which nobody else has: Linux's
 * TCP in this process, with BBR whatever the host's kernel knows.
 *
 *	echo tap0		as root: a tap of the host, the server is 192.0.2.2
 *	ip addr add 192.0.2.1/24 dev tap0; ip link set tap0 up
 *	nc 192.0.2.2 7
 */
#include <guise/guise.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>

static int die(const char *what)
{
	/* Every failure has a sentence; the functions return negative errnos. */
	fprintf(stderr, "echo: %s: %s\n", what, guise_error());
	return 1;
}

int main(int argc, char **argv)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(7) };
	struct guise_options options = GUISE_OPTIONS_INIT;
	struct guise_stack *s;
	char buf[65536], link[64];
	int err, listener, fd;
	ssize_t n;

	if (argc != 2) {
		fprintf(stderr, "usage: echo TAP\n");
		return 2;
	}

	/* A stack: a Linux network stack booted into memory of this process. */
	options.name = "echo";
	s = guise_create(&options, &err);
	if (!s)
		return die("create");

	/* Its interface eth0 is the other end of the tap; configured as with ip. */
	snprintf(link, sizeof(link), "tap:%s", argv[1]);
	if (guise_link_add(s, "eth0", link) < 0 || guise_addr_add(s, "eth0", "192.0.2.2/24") ||
	    guise_link_set(s, "eth0", 1) || guise_route_add(s, "default", "192.0.2.1", NULL, 0) ||
	    guise_sysctl_set(s, "net.ipv4.tcp_congestion_control", "bbr"))
		return die("configure");

	/* From here on: sockets as everywhere. */
	listener = guise_socket(s, AF_INET, SOCK_STREAM, 0);
	if (listener < 0 || guise_bind(s, listener, (struct sockaddr *)&any, sizeof(any)) ||
	    guise_listen(s, listener, 16))
		return die("listen");
	while ((fd = guise_accept4(s, listener, NULL, NULL, 0)) >= 0) {
		while ((n = guise_read(s, fd, buf, sizeof(buf))) > 0)
			if (guise_write(s, fd, buf, (size_t)n) != n)
				break;
		guise_close(s, fd);
	}
	return die("accept");
}
