// SPDX-License-Identifier: GPL-2.0-only
/* signalfd, eventfd and timerfd beside sockets: in poll, select and epoll, ready and waited for. */
#include "call.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>

static struct source {
	const char *name;
	int fd;
	void (*ring)(int fd);
} sources[4];

static void ring_event(int fd)
{
	MUST(!eventfd_write(fd, 2));
}

static void ring_timer(int fd)
{
	MUST(!timerfd_settime(fd, 0, &(struct itimerspec){ .it_value = { 0, 1000000 } }, NULL));
}

static void ring_signal(int fd)
{
	(void)fd;
	MUST(!kill(getpid(), SIGUSR2));
}

static void make_sources(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	MUST(!pthread_sigmask(SIG_BLOCK, &set, NULL));
	sources[0] = (struct source){ "eventfd", eventfd(0, 0), ring_event };
	sources[1] = (struct source){ "semaphore", eventfd(0, EFD_SEMAPHORE), ring_event };
	sources[2] = (struct source){ "timerfd", timerfd_create(CLOCK_MONOTONIC, 0), ring_timer };
	sources[3] = (struct source){ "signalfd", signalfd(-1, &set, 0), ring_signal };
	for (size_t i = 0; i < COUNT(sources); i++)
		MUST(sources[i].fd >= 0);
}

/* Earlier events are there. */
static void ring_and_wait(const struct source *s)
{
	s->ring(s->fd);
	await(s->fd, POLLIN);
}

static void tell_source(const struct source *s)
{
	struct signalfd_siginfo info;
	uint64_t count;
	long n;

	if (!strcmp(s->name, "signalfd")) {
		n = read(s->fd, &info, sizeof(info));
		printf("signalfd: %ld bytes, signal %d\n", n, info.ssi_signo == SIGUSR2);
	} else {
		n = read(s->fd, &count, sizeof(count));
		printf("%s: %ld bytes, %ld\n", s->name, n, (long)count);
	}
}

/* The ways to ask: each reports the source and the socket, and their order if there is one. */
static long ask_poll(int source, int fd, int timeout)
{
	struct pollfd p[] = { { source, POLLIN | POLLOUT, 0 }, { fd, POLLIN, 0 } };
	long n = poll(p, 2, timeout);

	return n < 0 ? n : p[0].revents << 16 | p[1].revents << 4 | n;
}

static long ask_select(int source, int fd, int timeout)
{
	struct timeval t = { timeout / 1000, timeout % 1000 * 1000 };
	fd_set in, out;
	long n;

	FD_ZERO(&in);
	FD_ZERO(&out);
	FD_SET(source, &in);
	FD_SET(fd, &in);
	FD_SET(source, &out);
	n = select((source > fd ? source : fd) + 1, &in, &out, NULL, timeout < 0 ? NULL : &t);
	return n < 0 ? n
		     : FD_ISSET(source, &in) << 16 | FD_ISSET(source, &out) << 12 |
			       FD_ISSET(fd, &in) << 4 | n;
}

static int epoll;

static long ask_epoll(int source, int fd, int timeout)
{
	struct epoll_event ev[4];
	long n = epoll_wait(epoll, ev, 4, timeout), said = n;

	for (long i = 0; i < n; i++) {
		if (ev[i].data.fd == source)
			said |= (long)ev[i].events << 16;
		if (ev[i].data.fd == fd)
			said |= (long)ev[i].events << 4;
	}
	return said;
}

static void watch(int source, int fd, uint32_t events)
{
	if (epoll)
		close(epoll);
	MUST((epoll = epoll_create1(0)) >= 0);
	MUST(!epoll_ctl(epoll, EPOLL_CTL_ADD, source,
			&(struct epoll_event){ .events = events, .data.fd = source }));
	MUST(!epoll_ctl(epoll, EPOLL_CTL_ADD, fd,
			&(struct epoll_event){ .events = events, .data.fd = fd }));
}

static const struct way {
	const char *name;
	long (*ask)(int source, int fd, int timeout);
	uint32_t events; /* of an epoll */
} ways[] = {
	{ "poll", ask_poll, 0 },
	{ "select", ask_select, 0 },
	{ "epoll", ask_epoll, EPOLLIN },
	{ "epoll of edges", ask_epoll, EPOLLIN | EPOLLET },
	{ "epoll for once", ask_epoll, EPOLLIN | EPOLLONESHOT },
};

CASE(source_states)
{
	char byte;
	int fd[2];

	make_sources();
	stream_pair(fd);
	for (size_t w = 0; w < COUNT(ways); w++)
		for (size_t i = 0; i < COUNT(sources); i++) {
			const struct source *s = &sources[i];
			const struct way *way = &ways[w];

#define ASK(state) printf("%s, %s, %s: %lx\n", way->name, s->name, state, way->ask(s->fd, fd[0], 0))
			if (way->events)
				watch(s->fd, fd[0], way->events);
			ASK("neither");
			ring_and_wait(s);
			ASK("the source");
			ASK("the source, again");
			MUST(send(fd[1], "x", 1, 0) == 1);
			await(fd[0], POLLIN);
			ASK("both");
			ASK("both, again");
			tell_source(s);
			ASK("the socket");
			MUST(recv(fd[0], &byte, 1, 0) == 1);
			ASK("the socket is read");
			if (!strcmp(s->name, "semaphore"))
				tell_source(s);
			ASK("nothing is left");
		}
}

static long wait_for_both(struct attempt *a)
{
	const struct way *way = a->data;
	struct source *s = &sources[a->fd >> 16];
	int fd = a->fd & 0xffff;

	/* An eventfd has room at once: only what is to be read is waited for. */
	if (way->ask == ask_poll)
		return poll((struct pollfd[]){ { s->fd, POLLIN, 0 }, { fd, POLLIN, 0 } }, 2, -1);
	if (way->ask == ask_select) {
		fd_set in;

		FD_ZERO(&in);
		FD_SET(s->fd, &in);
		FD_SET(fd, &in);
		return select((s->fd > fd ? s->fd : fd) + 1, &in, NULL, NULL, NULL);
	}
	return way->ask(s->fd, fd, -1);
}

CASE(source_wakes)
{
	char what[64], byte;
	int fd[2];

	make_sources();
	stream_pair(fd);
	for (size_t w = 0; w < COUNT(ways); w++)
		for (size_t i = 0; i < COUNT(sources); i++) {
			struct attempt a = { .call = wait_for_both, .data = (void *)&ways[w] };

			a.fd = (int)i << 16 | fd[0];
			if (ways[w].events)
				watch(sources[i].fd, fd[0], ways[w].events);
			snprintf(what, sizeof(what), "%s, %s", ways[w].name, sources[i].name);
			WAITS(&a, what, sources[i].ring(sources[i].fd));
			tell_source(&sources[i]);
			if (!strcmp(sources[i].name, "semaphore"))
				tell_source(&sources[i]);
			WAITS(&a, what, MUST(send(fd[1], "x", 1, 0) == 1));
			MUST(recv(fd[0], &byte, 1, 0) == 1);
		}
}
