// SPDX-License-Identifier: GPL-2.0-only
/* Signals and cancellation, before, in and after calls of the stack. */
#include "case.h"

#include <sys/epoll.h>
#include <sys/select.h>

/* The obsolete calls are hooked, so they are tried. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static volatile sig_atomic_t caught, count, second;
static char buf[16];

static void catch(int sig)
{
	caught = sig;
	count++;
}

static void receive(void *data)
{
	long n;

	errno = 0;
	n = recv(*(int *)data, buf, 1, 0);
	printf("recv = %ld %s\n", n, n < 0 ? strerrorname_np(errno) : "");
}

CASE(signal_interrupts)
{
	struct sigaction act = { .sa_handler = catch }, old;
	struct sockaddr_in addr;
	struct worker w;
	int udp[2], l;

	datagram_pair(udp);
	SHOW(sigaction(SIGUSR1, &act, &old));
	SHOW(old.sa_handler == SIG_DFL);
	start_and_await(&w, receive, udp);
	MUST(!pthread_kill(w.thread, SIGUSR1));
	join(&w);
	SHOW(caught == SIGUSR1);
	SHOW(sigaction(SIGUSR1, NULL, &old));
	SHOW(old.sa_handler == catch);
	/* accept and connect, by an alarm. */
	l = bound(SOCK_STREAM, &addr);
	SHOW(sigaction(SIGALRM, &act, NULL));
	ualarm(20000, 20000); /* the first may come before accept() waits */
	SHOW(accept(l, NULL, NULL));
	ualarm(0, 0);
	SHOW(caught == SIGALRM);
	/* The number that accept had reserved is free again. */
	SHOW(socket(AF_INET, SOCK_STREAM, 0));
	SHOW(sigaction(SIGKILL, &act, NULL));
	SHOW(sigaction(0, &act, NULL));
	SHOW(sigaction(200, &act, NULL));
	alarm(60);
}

CASE(signal_restarts)
{
	struct worker w;
	int udp[2];

	datagram_pair(udp);
	SHOW(signal(SIGUSR1, catch) == SIG_DFL);
	SHOW(signal(SIGUSR1, catch) == catch);
	start_and_await(&w, receive, udp);
	MUST(!pthread_kill(w.thread, SIGUSR1));
	while (!caught)
		sched_yield();
	await_sleep(w.tid);
	MUST(send(udp[1], "x", 1, 0) == 1);
	join(&w);
	SHOW(signal(SIGUSR1, SIG_IGN) == catch);
	SHOW(signal(SIGUSR1, SIG_DFL) == SIG_IGN);
	SHOW(signal(SIGKILL, catch) == SIG_ERR);
}

static void on_info(int sig, siginfo_t *info, void *context)
{
	caught = sig;
	count = info->si_code == SI_QUEUE ? info->si_value.sival_int : -1;
	(void)context;
}

CASE(signal_forms)
{
	struct sigaction act = { .sa_sigaction = on_info, .sa_flags = SA_SIGINFO }, old;
	struct worker w;
	int udp[2];

	datagram_pair(udp);
	SHOW(sysv_signal(SIGUSR1, catch) == SIG_DFL);
	SHOW(raise(SIGUSR1));
	SHOW(count);
	SHOW(signal(SIGUSR1, SIG_IGN) == SIG_DFL);
	SHOW(sigset(SIGUSR2, catch) == SIG_DFL);
	SHOW(sigset(SIGUSR2, SIG_HOLD) == catch);
	SHOW(raise(SIGUSR2));
	SHOW(count);
	SHOW(sigset(SIGUSR2, catch) == SIG_HOLD);
	SHOW(count);
	SHOW(sigignore(SIGUSR2));
	SHOW(raise(SIGUSR2));
	SHOW(count);
	SHOW(siginterrupt(SIGUSR2, 1));
	SHOW(signal(SIGUSR2, catch) == SIG_IGN);
	SHOW(sigaction(SIGUSR2, NULL, &old));
	SHOW(old.sa_flags & SA_RESTART);
	start_and_await(&w, receive, udp);
	MUST(!pthread_kill(w.thread, SIGUSR2));
	join(&w);
	SHOW(siginterrupt(SIGUSR2, 0));
	SHOW(sigaction(SIGUSR2, NULL, &old));
	SHOW(!!(old.sa_flags & SA_RESTART));
	SHOW(sigaction(SIGRTMIN, &act, NULL));
	SHOW(sigqueue(getpid(), SIGRTMIN, (union sigval){ .sival_int = 77 }));
	SHOW(caught == SIGRTMIN);
	SHOW(count);
	count = 0;
	start_and_await(&w, receive, udp);
	MUST(!pthread_sigqueue(w.thread, SIGRTMIN, (union sigval){ .sival_int = 78 }));
	join(&w);
	SHOW(count);
}

/* A handler may use the socket that its thread waits for. */
static int handlers_socket;

static void answer_in_handler(int sig)
{
	caught = sig;
	if (send(handlers_socket, "h", 1, 0) == 1)
		count++;
}

CASE(signal_handler_calls)
{
	struct sigaction act = { .sa_handler = answer_in_handler, .sa_flags = SA_RESTART };
	struct worker w;
	int udp[2];

	datagram_pair(udp);
	handlers_socket = udp[1];
	MUST(!sigaction(SIGUSR1, &act, NULL));
	start_and_await(&w, receive, udp);
	MUST(!pthread_kill(w.thread, SIGUSR1));
	join(&w);
	SHOW(count);
}

CASE(broken_pipe)
{
	struct sigaction act = { .sa_handler = catch };
	int fd[2];

	stream_pair(fd);
	MUST(!sigaction(SIGPIPE, &act, NULL));
	MUST(!shutdown(fd[0], SHUT_WR));
	SHOW(send(fd[0], "x", 1, MSG_NOSIGNAL));
	SHOW(count);
	SHOW(write(fd[0], "x", 1));
	SHOW(count);
	SHOW(caught == SIGPIPE);
	signal(SIGPIPE, SIG_IGN);
	SHOW(send(fd[0], "x", 1, 0));
}

static void clean_up(void *what)
{
	printf("cleaned up after %s\n", (const char *)what);
}

static void *receive_cancelled(void *data)
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	while (!__atomic_load_n(&count, __ATOMIC_ACQUIRE))
		sched_yield();
	pthread_cleanup_push(clean_up, "recv");
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	recv(*(int *)data, buf, 1, 0);
	printf("not cancelled\n");
	pthread_cleanup_pop(0);
	return NULL;
}

/* A thread that was cancelled ends at its next call, also one that need not wait. */
CASE(cancel_pending)
{
	pthread_t thread;
	void *result;
	int udp[2];

	datagram_pair(udp);
	MUST(send(udp[1], "x", 1, 0) == 1);
	MUST(!pthread_create(&thread, NULL, receive_cancelled, &udp[0]));
	MUST(!pthread_cancel(thread));
	__atomic_store_n(&count, 1, __ATOMIC_RELEASE);
	MUST(!pthread_join(thread, &result));
	SHOW(result == PTHREAD_CANCELED);
	SHOW(recv(udp[0], buf, 1, MSG_DONTWAIT));
}

/* Its end may come anywhere, in a call or between two, and nothing may show where. */
static void *busy_sender(void *data)
{
	int type;

	MUST(!pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type));
	__atomic_add_fetch(&count, type == PTHREAD_CANCEL_DEFERRED, __ATOMIC_RELEASE);
	for (;;)
		send(*(int *)data, "x", 1, MSG_DONTWAIT);
}

static void *busy_computer(void *data)
{
	int type;

	(void)data;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	__atomic_add_fetch(&count, type == PTHREAD_CANCEL_ASYNCHRONOUS, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&second, __ATOMIC_ACQUIRE))
		;
	pthread_cleanup_push(clean_up, "nothing");
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	for (;;)
		__asm__ volatile("");
	pthread_cleanup_pop(0);
}

/* A thread that may be cancelled anywhere leaves the stack as it was. */
CASE(cancel_asynchronous)
{
	pthread_t thread;
	void *result;
	int udp[2], good = 0;

	SHOW(pthread_setcanceltype(77, NULL) == EINVAL);
	datagram_pair(udp);
	for (int i = 0; i < 300; i++) {
		__atomic_store_n(&count, 0, __ATOMIC_RELEASE);
		MUST(!pthread_create(&thread, NULL, busy_sender, &udp[0]));
		while (!__atomic_load_n(&count, __ATOMIC_ACQUIRE))
			sched_yield();
		usleep((unsigned int)i % 7 * 50);
		MUST(!pthread_cancel(thread));
		MUST(!pthread_join(thread, &result));
		good += result == PTHREAD_CANCELED;
	}
	SHOW(good);
	__atomic_store_n(&count, 0, __ATOMIC_RELEASE);
	MUST(!pthread_create(&thread, NULL, busy_computer, NULL));
	while (!__atomic_load_n(&count, __ATOMIC_ACQUIRE))
		sched_yield();
	MUST(!pthread_cancel(thread));
	__atomic_store_n(&second, 1, __ATOMIC_RELEASE);
	MUST(!pthread_join(thread, &result));
	SHOW(result == PTHREAD_CANCELED);
	while (recv(udp[1], buf, 1, MSG_DONTWAIT) == 1)
		;
	SHOW(send(udp[0], "y", 1, 0));
	SHOW(recv(udp[1], buf, 1, 0));
}

static int wait_fd[5]; /* UDP, listener, pipe, epoll, mixed epoll */

static void wait_by(const char *call)
{
	struct pollfd p[100];
	struct epoll_event ev;
	fd_set set;

	for (int i = 0; i < 100; i++)
		p[i] = (struct pollfd){ .fd = wait_fd[0], .events = POLLIN };
	FD_ZERO(&set);
	FD_SET(wait_fd[0], &set);
	FD_SET(wait_fd[2], &set);
	if (!strcmp(call, "recv")) {
		recv(wait_fd[0], buf, 1, 0);
	} else if (!strcmp(call, "accept")) {
		accept(wait_fd[1], NULL, NULL);
	} else if (!strcmp(call, "poll")) {
		poll(p, 1, -1);
	} else if (!strcmp(call, "poll of many")) {
		p[50].fd = wait_fd[2];
		poll(p, 100, -1);
	} else if (!strcmp(call, "select")) {
		select(wait_fd[2] + 1, &set, NULL, NULL, NULL);
	} else {
		epoll_wait(wait_fd[strcmp(call, "epoll_wait") ? 4 : 3], &ev, 1, -1);
	}
}

static void wait_cancelled(void *call)
{
	pthread_cleanup_push(clean_up, call);
	wait_by(call);
	printf("not cancelled\n");
	pthread_cleanup_pop(0);
}

CASE(cancel_waiting)
{
	static char *const calls[] = {
		"recv", "accept", "poll", "poll of many", "select", "epoll_wait", "mixed epoll_wait"
	};
	struct epoll_event ev = { .events = EPOLLIN };
	struct sockaddr_in addr;
	int udp[2], pipes[2];
	struct worker w;
	void *result;

	datagram_pair(udp);
	MUST(!pipe(pipes));
	wait_fd[0] = udp[0];
	wait_fd[1] = bound(SOCK_STREAM, &addr);
	wait_fd[2] = pipes[0];
	for (int i = 3; i < 5; i++) {
		wait_fd[i] = epoll_create1(0);
		MUST(!epoll_ctl(wait_fd[i], EPOLL_CTL_ADD, udp[0], &ev));
	}
	MUST(!epoll_ctl(wait_fd[4], EPOLL_CTL_ADD, pipes[0], &ev));
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
			start_and_await(&w, wait_cancelled, calls[i]);
			MUST(!pthread_cancel(w.thread));
			MUST(!pthread_join(w.thread, &result));
			SHOW(result == PTHREAD_CANCELED);
		}
		/* The program may well handle the first signal that would do. */
		signal(SIGURG, catch);
	}
	SHOW(count);
	SHOW(socket(AF_INET, SOCK_DGRAM, 0));
}
