/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Twin cases: small programs that print what each call returned. pytest runs
 * every case on the host and on guise, and the two must print the same. So a
 * case prints nothing that differs between two runs on one machine: no port,
 * no time, no address of memory.
 *
 * A program is a file with cases; `PROGRAM CASE` runs one.
 */
#ifndef GUISE_TEST_PRELOAD_CASE_H
#define GUISE_TEST_PRELOAD_CASE_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct test_case {
	const char *name;
	void (*run)(void);
	struct test_case *next;
};

static struct test_case *test_cases;

#define CASE(which)                                                           \
	static void which(void);                                              \
	__attribute__((constructor)) static void register_##which(void)       \
	{                                                                     \
		static struct test_case c = { .name = #which, .run = which }; \
		c.next = test_cases;                                          \
		test_cases = &c;                                              \
	}                                                                     \
	static void which(void)

/* Prints a call as it stands there, its result, and errno where it failed. */
#define SHOW(call)                                                           \
	do {                                                                 \
		long show_;                                                  \
		errno = 0;                                                   \
		show_ = (long)(call);                                        \
		printf("%s = %ld%s%s\n", #call, show_, show_ < 0 ? " " : "", \
		       show_ < 0 ? strerrorname_np(errno) : "");             \
	} while (0)

/* What a case needs before it comes to its point. */
#define MUST(condition)                                                                     \
	do {                                                                                \
		if (!(condition)) {                                                         \
			printf("line %d: %s: %s\n", __LINE__, #condition, strerror(errno)); \
			exit(1);                                                            \
		}                                                                           \
	} while (0)

__attribute__((unused)) static struct sockaddr_in loopback(int port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr = { htonl(INADDR_LOOPBACK) },
	};
}

/* A bound socket, listening where it can; its address. */
__attribute__((unused)) static int bound(int type, struct sockaddr_in *addr)
{
	socklen_t len = sizeof(*addr);
	int fd = socket(AF_INET, type, 0);

	*addr = loopback(0);
	MUST(fd >= 0);
	MUST(!bind(fd, (struct sockaddr *)addr, len));
	MUST((type & 0xf) != SOCK_STREAM || !listen(fd, 16));
	MUST(!getsockname(fd, (struct sockaddr *)addr, &len));
	return fd;
}

/* Two ends of a TCP connection over lo. */
__attribute__((unused)) static void stream_pair(int fd[2])
{
	struct sockaddr_in addr;
	int listener = bound(SOCK_STREAM, &addr);

	fd[0] = socket(AF_INET, SOCK_STREAM, 0);
	MUST(fd[0] >= 0);
	MUST(!connect(fd[0], (struct sockaddr *)&addr, sizeof(addr)));
	fd[1] = accept(listener, NULL, NULL);
	MUST(fd[1] >= 0);
	MUST(!close(listener));
}

/* Two UDP sockets that are connected to each other. */
__attribute__((unused)) static void datagram_pair(int fd[2])
{
	struct sockaddr_in addr[2];

	for (int i = 0; i < 2; i++)
		fd[i] = bound(SOCK_DGRAM, &addr[i]);
	for (int i = 0; i < 2; i++)
		MUST(!connect(fd[i], (struct sockaddr *)&addr[!i], sizeof(addr[0])));
}

__attribute__((unused)) static bool readable(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

__attribute__((unused)) static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Whether a thread of this process sleeps in a call just now; not, when it has ended. */
__attribute__((unused)) static bool sleeps(pid_t tid)
{
	char path[64], text[256], *state = NULL;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	f = fopen(path, "re");
	if (f) {
		state = fgets(text, sizeof(text), f) ? strrchr(text, ')') : NULL;
		fclose(f);
	}
	return state && state[2] == 'S';
}

/* Waits until it does. */
__attribute__((unused)) static void await_sleep(pid_t tid)
{
	const struct timespec moment = { .tv_nsec = 2000000 };
	double deadline = now() + 20;
	int asleep = 0;

	while (asleep < 5) {
		MUST(!syscall(SYS_tgkill, getpid(), tid, 0)); /* it is there */
		asleep = sleeps(tid) ? asleep + 1 : 0;
		MUST(now() < deadline);
		nanosleep(&moment, NULL);
	}
}

/* A thread that says its number before it does its work. */
struct worker {
	pthread_t thread;
	pid_t tid;
	void (*work)(void *);
	void *data;
};

__attribute__((unused)) static void *worker_begins(void *data)
{
	struct worker *w = data;

	__atomic_store_n(&w->tid, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	w->work(w->data);
	return NULL;
}

/* Starts it, and returns when it sleeps. */
__attribute__((unused)) static void start_and_await(struct worker *w, void (*work)(void *),
						    void *data)
{
	w->tid = 0;
	w->work = work;
	w->data = data;
	MUST(!pthread_create(&w->thread, NULL, worker_begins, w));
	while (!__atomic_load_n(&w->tid, __ATOMIC_ACQUIRE))
		sched_yield();
	await_sleep(w->tid);
}

__attribute__((unused)) static void join(struct worker *w)
{
	MUST(!pthread_join(w->thread, NULL));
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	/* A case that hangs is a failure, not a wait; an emulated processor takes its time. */
	alarm(getenv("CASE_SECONDS") ? (unsigned int)atoi(getenv("CASE_SECONDS")) : 60);
	for (struct test_case *c = test_cases; c; c = c->next) {
		if (argc == 1)
			puts(c->name);
		else if (!strcmp(c->name, argv[1])) {
			c->run();
			return 0;
		}
	}
	return argc == 1 ? 0 : 2;
}

#endif
