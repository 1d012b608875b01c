// SPDX-License-Identifier: GPL-2.0-only
/*
 * One stream of messages of one size for some time, as netperf's TCP_STREAM (the client sends) and
 * TCP_MAERTS (the server does), over TCP or Multipath TCP. It knows nothing of guise.
 *
 *	stream serve tcp|mptcp PORT
 *	stream send|receive tcp|mptcp ADDRESS PORT SIZE MILLISECONDS
 *
 * The server says "listening", and serves one client after the other. The client prints what the
 * receiver has received, in how many nanoseconds from the first byte to the last, and what all
 * processors of the machine did meanwhile, as /proc/stat counts it: busy, and in all.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MPTCP        262 /* IPPROTO_MPTCP, which older headers of libc lack */
#define LARGEST      65507
#define READ_AT_ONCE (1 << 17)

/* What the client asks for; and what was received. Both ends are on one machine. */
struct request {
	uint64_t to_client, size, ms;
};

struct received {
	uint64_t bytes, ns;
};

static void die(const char *what)
{
	fprintf(stderr, "stream: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void send_messages(int fd, uint64_t size, uint64_t ms)
{
	static const char message[LARGEST];
	uint64_t end = now_ns() + ms * 1000000;

	while (now_ns() < end)
		for (uint64_t done = 0; done < size;) {
			ssize_t n = send(fd, message + done, size - done, MSG_NOSIGNAL);

			if (n < 0)
				die("send");
			done += (uint64_t)n;
		}
	if (shutdown(fd, SHUT_WR))
		die("shutdown");
}

static struct received receive_messages(int fd)
{
	static char buf[READ_AT_ONCE];
	struct received r = { 0 };
	uint64_t first = 0;
	ssize_t n;

	while ((n = read(fd, buf, sizeof(buf))) > 0) {
		uint64_t now = now_ns();

		if (first)
			r.bytes += (uint64_t)n;
		else
			first = now;
		r.ns = now - first;
	}
	if (n < 0)
		die("receive");
	return r;
}

static void read_all(int fd, void *buf, size_t size)
{
	if (recv(fd, buf, size, MSG_WAITALL) != (ssize_t)size)
		die("the other end is gone");
}

/* In ticks, since the machine started. */
static void read_processors(uint64_t *busy, uint64_t *all)
{
	uint64_t v[8] = { 0 };
	FILE *f = fopen("/proc/stat", "r");

	if (!f || fscanf(f,
			 "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
			 " %" SCNu64 " %" SCNu64,
			 &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7]) != 8)
		die("/proc/stat");
	fclose(f);
	*all = 0;
	for (int i = 0; i < 8; i++)
		*all += v[i];
	*busy = *all - v[3] - v[4]; /* idle, and idle until a disk answers */
}

/* One congestion control on both sides of the comparison: root may have it in any namespace. A host
 * without CUBIC keeps its own. */
static int make_socket(int protocol)
{
	int fd = socket(AF_INET, SOCK_STREAM, protocol);

	if (fd < 0)
		die("socket");
	setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "cubic", 5);
	return fd;
}

static int parse_protocol(const char *text)
{
	if (strcmp(text, "tcp") && strcmp(text, "mptcp")) {
		fprintf(stderr, "stream: \"%s\" is no protocol; expected tcp or mptcp\n", text);
		exit(2);
	}
	return strcmp(text, "tcp") ? MPTCP : 0;
}

static void serve(int protocol, int port)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	int fd = make_socket(protocol), one = 1;

	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    bind(fd, (struct sockaddr *)&any, sizeof(any)) || listen(fd, 4))
		die("listen");
	printf("listening\n");
	fflush(stdout);
	for (;;) {
		int client = accept(fd, NULL, NULL);
		struct request q;
		struct received r;

		if (client < 0)
			die("accept");
		read_all(client, &q, sizeof(q));
		if (q.size < 1 || q.size > LARGEST) {
			fprintf(stderr, "stream: a client asks for messages of no size\n");
		} else if (q.to_client) {
			send_messages(client, q.size, q.ms);
			(void)!read(client, &r, 1); /* the client has all */
		} else {
			r = receive_messages(client);
			if (write(client, &r, sizeof(r)) != sizeof(r))
				die("answer");
		}
		close(client);
	}
}

static void be_client(char **argv)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)atoi(argv[4])) };
	struct request q = { .to_client = !strcmp(argv[1], "receive"),
			     .size = strtoull(argv[5], NULL, 10),
			     .ms = strtoull(argv[6], NULL, 10) };
	uint64_t busy[2], all[2];
	struct received r;
	int fd = make_socket(parse_protocol(argv[2]));

	if (q.size < 1 || q.size > LARGEST) {
		fprintf(stderr, "stream: a size of %s; expected 1 to %d\n", argv[5], LARGEST);
		exit(2);
	}
	if (inet_pton(AF_INET, argv[3], &to.sin_addr) != 1) {
		fprintf(stderr, "stream: \"%s\" is no address of IPv4\n", argv[3]);
		exit(2);
	}
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)))
		die("connect");
	if (write(fd, &q, sizeof(q)) != sizeof(q))
		die("request");
	read_processors(&busy[0], &all[0]);
	if (q.to_client) {
		r = receive_messages(fd);
	} else {
		send_messages(fd, q.size, q.ms);
		read_all(fd, &r, sizeof(r));
	}
	read_processors(&busy[1], &all[1]);
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", r.bytes, r.ns,
	       busy[1] - busy[0], all[1] - all[0]);
	close(fd);
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "serve"))
		serve(parse_protocol(argv[2]), atoi(argv[3]));
	if (argc != 7 || (strcmp(argv[1], "send") && strcmp(argv[1], "receive"))) {
		fprintf(stderr,
			"usage: stream serve tcp|mptcp PORT\n"
			"       stream send|receive tcp|mptcp ADDRESS PORT SIZE MILLISECONDS\n");
		return 2;
	}
	be_client(argv);
	return 0;
}
