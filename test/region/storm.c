// SPDX-License-Identifier: GPL-2.0-only
/*
 * A transfer over lo under a storm of signals, a thousand a second; the
 * handler sends, too. Links nothing of guise: runs on the host and, with the
 * preload library, on a stack.
 *
 *	storm again	handlers with SA_RESTART: no call may fail
 *	storm never	without it: EINTR is expected, and the call made again
 *
 * Prints whether every byte came, whether there was an EINTR, and whether the
 * handler's datagrams came.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define SIGNALS 500
#define LEAST   (16l << 20)

static int in, out, datagrams;
static atomic_long signals, sent_by_handler, interrupted;

static void fail(const char *what)
{
	fprintf(stderr, "storm: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void on_alarm(int number)
{
	int kept = errno;

	(void)number;
	atomic_fetch_add(&signals, 1);
	if (send(datagrams, "x", 1, MSG_DONTWAIT) == 1)
		atomic_fetch_add(&sent_by_handler, 1);
	errno = kept;
}

static char byte_at(long at)
{
	return (char)((at * 31 + at / 4096) % 253);
}

static void *sender(void *unused)
{
	static char buf[50000];
	long sent = 0;
	ssize_t n;

	(void)unused;
	while (sent < LEAST || atomic_load(&signals) < SIGNALS) {
		for (long i = 0; i < (long)sizeof(buf); i++)
			buf[i] = byte_at(sent + i);
		for (long done = 0; done < (long)sizeof(buf); done += n) {
			n = send(out, buf + done, sizeof(buf) - (size_t)done, 0);
			if (n < 0 && errno == EINTR) {
				atomic_fetch_add(&interrupted, 1);
				n = 0;
			} else if (n < 0) {
				fail("send");
			}
		}
		sent += (long)sizeof(buf);
	}
	shutdown(out, SHUT_WR);
	return (void *)sent;
}

static long receiver(long *right)
{
	static char buf[65536];
	long got = 0;
	ssize_t n;

	*right = 0;
	for (;;) {
		n = recv(in, buf, sizeof(buf), 0);
		if (n < 0 && errno == EINTR) {
			atomic_fetch_add(&interrupted, 1);
			continue;
		}
		if (n < 0)
			fail("recv");
		if (!n)
			return got;
		for (long i = 0; i < n; i++)
			*right += buf[i] == byte_at(got + i);
		got += n;
	}
}

static void make_sockets(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t len = sizeof(a);

	if (bind(listener, (struct sockaddr *)&a, sizeof(a)) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&a, &len))
		fail("listen");
	out = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(out, (struct sockaddr *)&a, sizeof(a)))
		fail("connect");
	in = accept(listener, NULL, NULL);
	datagrams = socket(AF_INET, SOCK_DGRAM, 0);
	a.sin_port = 0;
	if (bind(datagrams, (struct sockaddr *)&a, sizeof(a)) ||
	    getsockname(datagrams, (struct sockaddr *)&a, &len) ||
	    connect(datagrams, (struct sockaddr *)&a, sizeof(a)))
		fail("datagrams");
}

/* What the handler sent to itself, as far as its buffer held. */
static long count_datagrams(void)
{
	char c[2];
	long n = 0;

	while (recv(datagrams, c, sizeof(c), MSG_DONTWAIT) == 1)
		n++;
	return n;
}

int main(int argc, char **argv)
{
	struct itimerval storm = { { 0, 1000 }, { 0, 1000 } }, calm = { 0 };
	bool again = argc > 1 && !strcmp(argv[1], "again");
	struct sigaction act = { .sa_handler = on_alarm, .sa_flags = again ? SA_RESTART : 0 };
	long got, right;
	pthread_t thread;
	void *sent;

	if (argc != 2) {
		fprintf(stderr, "usage: storm again|never\n");
		return 2;
	}
	make_sockets();
	sigaction(SIGALRM, &act, NULL);
	setitimer(ITIMER_REAL, &storm, NULL);
	if (pthread_create(&thread, NULL, sender, NULL))
		fail("thread");
	got = receiver(&right);
	pthread_join(thread, &sent);
	setitimer(ITIMER_REAL, &calm, NULL);
	printf("all received %d, all right %d\n", got == (long)sent, right == got);
	printf("interrupted %d\n", atomic_load(&interrupted) > 0);
	printf("handler sent %d, received %d\n", atomic_load(&sent_by_handler) > 0,
	       count_datagrams() > 0);
	return 0;
}
