// SPDX-License-Identifier: GPL-2.0-only
/* Signals in every call that waits: interrupted, restarted, with a timeout; cancellation. */
#include "call.h"

#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>

static volatile sig_atomic_t caught;

static void catch(int sig)
{
	(void)sig;
	caught++;
}

struct waiting {
	const char *name;
	long (*call)(struct attempt *a);
	bool writes; /* waits for room and not for data */
};

static long call_read(struct attempt *a)
{
	char buf[8];

	return read(a->fd, buf, 8);
}

static long call_recv(struct attempt *a)
{
	char buf[8];

	return recv(a->fd, buf, 8, 0);
}

static long call_recvmsg(struct attempt *a)
{
	return recvmsg(a->fd, &(struct msghdr){ 0 }, 0);
}

static long call_recvmmsg(struct attempt *a)
{
	struct mmsghdr m = { 0 };

	return recvmmsg(a->fd, &m, 1, 0, NULL);
}

static long call_readv(struct attempt *a)
{
	char buf[8];

	return readv(a->fd, &(struct iovec){ buf, 8 }, 1);
}

static long call_poll(struct attempt *a)
{
	struct pollfd p = { a->fd, POLLIN, 0 };

	return poll(&p, 1, -1);
}

static long call_select(struct attempt *a)
{
	fd_set in;

	FD_ZERO(&in);
	FD_SET(a->fd, &in);
	return select(a->fd + 1, &in, NULL, NULL, NULL);
}

static long call_epoll(struct attempt *a)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int ep = epoll_create1(0);
	long ret;

	epoll_ctl(ep, EPOLL_CTL_ADD, a->fd, &ev);
	ret = epoll_wait(ep, &ev, 1, -1);
	close(ep);
	return ret;
}

static const struct waiting waiting[] = {
	{ "read()", call_read, false },       { "recv()", call_recv, false },
	{ "recvmsg()", call_recvmsg, false }, { "recvmmsg()", call_recvmmsg, false },
	{ "readv()", call_readv, false },     { "poll()", call_poll, false },
	{ "select()", call_select, false },   { "epoll_wait()", call_epoll, false },
};

static void handle(int flags)
{
	struct sigaction act = { .sa_handler = catch, .sa_flags = flags };

	MUST(!sigaction(SIGUSR1, &act, NULL));
}

/* A signal to a thread that waits; if that does not end the wait, data do. */
static void interrupt(const struct waiting *w, int fd, int peer, const char *how)
{
	struct timespec moment = { .tv_nsec = 2000000 };
	struct attempt a = { .call = w->call, .fd = fd };
	char what[64];
	int before = caught;

	MUST(attempt_waits(&a));
	MUST(!pthread_kill(a.thread, SIGUSR1));
	while (caught == before)
		nanosleep(&moment, NULL);
	/* Waits on: asleep for a while. One about to return may not get a processor for long. */
	for (int asleep = 0; asleep < 50 && !__atomic_load_n(&a.done, __ATOMIC_ACQUIRE);) {
		asleep = sleeps(a.tid) ? asleep + 1 : 0;
		nanosleep(&moment, NULL);
	}
	printf("%s, %s: %s\n", w->name, how,
	       __atomic_load_n(&a.done, __ATOMIC_ACQUIRE) ? "ended" : "waits on");
	MUST(send(peer, "x", 1, 0) == 1);
	snprintf(what, sizeof(what), "%.*s%s)", (int)strlen(w->name) - 1, w->name, how);
	attempt_ends(&a, what);
	while (recv(fd, what, sizeof(what), MSG_DONTWAIT) > 0)
		;
}

CASE(signal_ends_or_restarts)
{
	struct timeval late = { 30, 0 };
	int fd[2], udp[2];

	stream_pair(fd);
	datagram_pair(udp);
	for (size_t i = 0; i < COUNT(waiting); i++) {
		handle(0);
		interrupt(&waiting[i], udp[0], udp[1], "datagram");
		interrupt(&waiting[i], fd[0], fd[1], "stream");
		handle(SA_RESTART);
		interrupt(&waiting[i], udp[0], udp[1], "datagram, restart");
		interrupt(&waiting[i], fd[0], fd[1], "stream, restart");
	}
	/* With a timeout nothing is restarted. */
	MUST(!setsockopt(udp[0], SOL_SOCKET, SO_RCVTIMEO, &late, sizeof(late)));
	for (size_t i = 0; i < 5; i++)
		interrupt(&waiting[i], udp[0], udp[1], "timeout, restart");
}

static long call_accept(struct attempt *a)
{
	return accept(a->fd, NULL, NULL) < 0 ? -1 : 0;
}

CASE(signal_in_accept)
{
	struct timespec moment = { .tv_nsec = 2000000 };
	struct attempt a = { .call = call_accept };
	struct sockaddr_in addr;
	int c;

	a.fd = bound(SOCK_STREAM, &addr);
	handle(0);
	WAITS(&a, "accept()", {
		MUST(!pthread_kill(a.thread, SIGUSR1));
		while (!caught)
			nanosleep(&moment, NULL);
	});
	handle(SA_RESTART);
	caught = 0;
	WAITS(&a, "accept(restart)", {
		MUST(!pthread_kill(a.thread, SIGUSR1));
		while (!caught)
			nanosleep(&moment, NULL);
		c = socket(AF_INET, SOCK_STREAM, 0);
		MUST(!connect(c, (void *)&addr, sizeof(addr)));
	});
}

static long call_send(struct attempt *a)
{
	static char much[1 << 22];

	return send(a->fd, much, sizeof(much), 0) > 0;
}

/* What was sent before the signal counts. */
CASE(signal_in_send)
{
	struct timespec moment = { .tv_nsec = 2000000 };
	struct attempt a = { .call = call_send };
	int fd[2];

	for (int flags = 0; flags <= SA_RESTART; flags += SA_RESTART) {
		stream_pair(fd);
		handle(flags);
		caught = 0;
		a.fd = fd[0];
		WAITS(&a, "send(much)", {
			MUST(!pthread_kill(a.thread, SIGUSR1));
			while (!caught)
				nanosleep(&moment, NULL);
		});
	}
}

/* Ignored, stopped and continued: nothing is interrupted. */
CASE(signal_without_handler)
{
	int udp[2];
	struct attempt a = { .call = call_recv };

	datagram_pair(udp);
	a.fd = udp[0];
	signal(SIGUSR2, SIG_IGN);
	WAITS(&a, "recv(an ignored signal)", {
		MUST(!pthread_kill(a.thread, SIGUSR2));
		MUST(!pthread_kill(a.thread, SIGURG));
		MUST(!pthread_kill(a.thread, SIGCHLD));
		MUST(!pthread_kill(a.thread, SIGCONT));
		send(udp[1], "x", 1, 0);
	});
}

static void *canceled(void *data)
{
	struct attempt *a = data;

	__atomic_store_n(&a->tid, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	a->ret = a->call(a);
	return NULL;
}

static void wait_asleep(struct attempt *a)
{
	while (!__atomic_load_n(&a->tid, __ATOMIC_ACQUIRE))
		sched_yield();
	await_sleep(a->tid);
}

CASE(signal_cancels)
{
	int udp[2];
	void *end;

	datagram_pair(udp);
	for (size_t i = 0; i < COUNT(waiting); i++) {
		struct attempt a = { .call = waiting[i].call, .fd = udp[0] };

		MUST(!pthread_create(&a.thread, NULL, canceled, &a));
		wait_asleep(&a);
		SHOW(pthread_cancel(a.thread));
		MUST(!pthread_join(a.thread, &end));
		printf("%s: %s\n", waiting[i].name, end == PTHREAD_CANCELED ? "canceled" : "not");
	}
	/* The socket is as before. */
	SHOW(send(udp[1], "x", 1, 0));
	SHOW(recv(udp[0], &end, 1, 0));
}

static volatile sig_atomic_t last;

static void note(int sig)
{
	last = sig;
}

/* What a socket sends by itself: SIGIO for any news, SIGURG for what is urgent. */
CASE(signal_from_a_socket)
{
	struct timespec moment = { .tv_nsec = 5000000 };
	int fd[2], on = 1;

	stream_pair(fd);
	signal(SIGIO, note);
	signal(SIGURG, note);
	SHOW(fcntl(fd[0], F_SETOWN, getpid()));
	SHOW(send(fd[1], "!", 1, MSG_OOB));
	for (int i = 0; i < 200 && last != SIGURG; i++)
		nanosleep(&moment, NULL);
	SHOW(last == SIGURG);
	SHOW(fcntl(fd[0], F_SETFL, O_ASYNC));
	SHOW(fcntl(fd[0], F_GETFL));
	SHOW(send(fd[1], "x", 1, 0));
	for (int i = 0; i < 200 && last != SIGIO; i++)
		nanosleep(&moment, NULL);
	SHOW(last == SIGIO);
	SHOW(fcntl(fd[0], F_SETFL, 0));
	SHOW(ioctl(fd[0], FIOASYNC, &on));
	SHOW(fcntl(fd[0], F_GETFL));
}
