/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What twin cases of calls share, beside ../preload/case.h: lines of a
 * transcript with arguments in words, bad pointers of every kind, and whether
 * a call waits.
 *
 * A line begins with the call as a program would write it, so that
 * errors.toml can say which errors of which call were seen on both kernels.
 */
#ifndef GUISE_TEST_CALL_H
#define GUISE_TEST_CALL_H

#include "../preload/case.h"

#include <netinet/tcp.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* Prints "text = result", with the name of errno if the call failed. */
__attribute__((unused, format(printf, 2, 3))) static void tell_result(long ret, const char *format,
								      ...)
{
	int err = errno;
	va_list ap;

	va_start(ap, format);
	vprintf(format, ap);
	va_end(ap);
	printf(" = %ld%s%s\n", ret, ret < 0 ? " " : "", ret < 0 ? strerrorname_np(err) : "");
}

/* Makes the call and prints it: TELL(listen(fd, 1), "listen(%s, 1)", word). */
#define TELL(call, ...)                            \
	({                                         \
		long told_;                        \
		errno = 0;                         \
		told_ = (long)(call);              \
		tell_result(told_, ##__VA_ARGS__); \
		told_;                             \
	})

/* ---- pointers that no kernel may follow ------------------------------------ */

struct bad_pointer {
	const char *name;
	void *at;
};

#define BAD_POINTERS 6

/* The last is readable and not writable; write_only leaves it out. */
__attribute__((unused)) static const struct bad_pointer *bad_pointers(void)
{
	static struct bad_pointer bad[BAD_POINTERS] = {
		{ "NULL", NULL },
		{ "low", (void *)8 },
		{ "kernel", (void *)0xffff888000001000 },
		{ "hole", (void *)0x8000000000001000 },
		{ "no access", NULL },
		{ "read only", NULL },
	};

	if (!bad[4].at) {
		bad[4].at = mmap(NULL, 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		bad[5].at = mmap(NULL, 65536, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		MUST(bad[4].at != MAP_FAILED && bad[5].at != MAP_FAILED);
	}
	return bad;
}

#define EACH_BAD_POINTER(p) \
	for (const struct bad_pointer *p = bad_pointers(), *end_ = p + BAD_POINTERS; p < end_; p++)

/* n bytes that end where memory ends. */
__attribute__((unused)) static char *before_the_edge(size_t n)
{
	static char *edge;
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (!edge) {
		char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		MUST(pages != MAP_FAILED);
		edge = pages + page;
		MUST(!mprotect(edge, page, PROT_NONE));
	}
	return edge - n;
}

/* ---- whether a call waits --------------------------------------------------- */

/* Of one piece; until the next. */
__attribute__((unused)) static struct msghdr *message(void *data, size_t n)
{
	static struct iovec iov;
	static struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	iov = (struct iovec){ data, n };
	return &m;
}

/* Likewise. */
__attribute__((unused)) static fd_set *set_of(int fd)
{
	static fd_set set;

	FD_ZERO(&set);
	FD_SET(fd, &set);
	return &set;
}

/* A call that a thread of its own makes. */
struct attempt {
	long (*call)(struct attempt *a);
	int fd;
	void *data;
	long ret;
	int err, done;
	pid_t tid;
	pthread_t thread;
};

__attribute__((unused)) static void *attempt_begins(void *data)
{
	struct attempt *a = data;

	__atomic_store_n(&a->tid, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	errno = 0;
	a->ret = a->call(a);
	a->err = errno;
	__atomic_store_n(&a->done, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* Starts it; true when it sleeps, false when it has returned. */
__attribute__((unused)) static bool attempt_waits(struct attempt *a)
{
	struct timespec moment = { .tv_nsec = 2000000 };
	double deadline = now() + 30;
	int asleep = 0;

	a->tid = 0;
	a->done = 0;
	MUST(!pthread_create(&a->thread, NULL, attempt_begins, a));
	while (!__atomic_load_n(&a->tid, __ATOMIC_ACQUIRE))
		sched_yield();
	while (asleep < 10 && !__atomic_load_n(&a->done, __ATOMIC_ACQUIRE)) {
		asleep = sleeps(a->tid) ? asleep + 1 : 0;
		MUST(now() < deadline);
		nanosleep(&moment, NULL);
	}
	return !__atomic_load_n(&a->done, __ATOMIC_ACQUIRE);
}

__attribute__((unused)) static void attempt_ends(struct attempt *a, const char *what)
{
	MUST(!pthread_join(a->thread, NULL));
	errno = a->err;
	tell_result(a->ret, "%s", what);
}

/*
 * Makes the call, says whether it waits, does what ends the wait (which must
 * be harmless where it did not), and tells the result.
 */
#define WAITS(attempt, what, ...)                                            \
	do {                                                                 \
		bool waits_ = attempt_waits(attempt);                        \
		printf("%s %s\n", what, waits_ ? "waits" : "does not wait"); \
		if (waits_) {                                                \
			__VA_ARGS__;                                         \
		}                                                            \
		attempt_ends(attempt, what);                                 \
	} while (0)

/* ---- sockets ---------------------------------------------------------------- */

__attribute__((unused)) static struct sockaddr_in6 loopback6(int port)
{
	return (struct sockaddr_in6){
		.sin6_family = AF_INET6,
		.sin6_port = htons((uint16_t)port),
		.sin6_addr = IN6ADDR_LOOPBACK_INIT,
	};
}

/* Waits until there is something to read, or an error. */
__attribute__((unused)) static void await(int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };

	MUST(poll(&p, 1, 20000) == 1);
}

/*
 * Two connected TCP sockets with small buffers, of which fd[0] is to be filled, and with small
 * segments: a window that opens a little is used at once, and not only when it is probed.
 */
__attribute__((unused)) static void small_pair(int fd[2])
{
	const int small = 4096, segment = 536;
	struct sockaddr_in addr;
	int listener = bound(SOCK_STREAM, &addr);

	fd[0] = socket(AF_INET, SOCK_STREAM, 0);
	MUST(!setsockopt(fd[0], IPPROTO_TCP, TCP_MAXSEG, &segment, sizeof(segment)));
	MUST(!setsockopt(fd[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)));
	MUST(!setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)));
	MUST(!connect(fd[0], (struct sockaddr *)&addr, sizeof(addr)));
	MUST((fd[1] = accept(listener, NULL, NULL)) >= 0);
	MUST(!close(listener));
}

/*
 * Until nothing was taken for four retransmission timeouts: what is on its way makes room when
 * it arrives, and so may the first probes of a window that is closed, after one and three.
 */
__attribute__((unused)) static void fill(int fd)
{
	const struct timespec moment = { .tv_nsec = 20000000 };
	static const char bytes[65536];
	int flags = fcntl(fd, F_GETFL);
	struct tcp_info info = { 0 };
	socklen_t size = sizeof(info);
	double taken = now();

	MUST(!fcntl(fd, F_SETFL, flags | O_NONBLOCK));
	do {
		while (write(fd, bytes, sizeof(bytes)) > 0)
			taken = now();
		MUST(!getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size));
		nanosleep(&moment, NULL);
	} while (now() < taken + 4e-6 * info.tcpi_rto);
	MUST(!fcntl(fd, F_SETFL, flags));
}

#endif
