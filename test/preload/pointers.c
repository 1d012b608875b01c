// SPDX-License-Identifier: GPL-2.0-only
/* Bad pointers to calls that wait, and sets that are longer or shorter than said. */
#include "case.h"

#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>

#define BAD ((void *)8)

static int udp[2], pipes[2];

static void prepare(void)
{
	datagram_pair(udp);
	MUST(!pipe(pipes));
}

#define PAGE 65536 /* of any host */

/* A page that can be read and not written, with something at its end. */
static void *read_only(const void *content, size_t bytes)
{
	char *page =
		mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	MUST(page != MAP_FAILED);
	memcpy(page + PAGE - bytes, content, bytes);
	MUST(!mprotect(page, PAGE, PROT_READ));
	MUST(!mprotect(page + PAGE, PAGE, PROT_NONE));
	return page + PAGE - bytes;
}

CASE(poll_bad_pointers)
{
	struct timespec none = { 0 };
	struct pollfd p[2], *end;
	sigset_t mask;

	prepare();
	sigemptyset(&mask);
	p[0] = (struct pollfd){ .fd = udp[0], .events = POLLOUT };
	p[1] = (struct pollfd){ .fd = pipes[1], .events = POLLOUT };
	SHOW(poll(BAD, 1, 0));
	SHOW(poll(BAD, 0, 0));
	SHOW(poll((void *)-8, 5, 0));
	/* libc itself reads the times: a bad one is the program's end there. */
	SHOW(syscall(SYS_ppoll, p, 2, BAD, NULL, 8));
	SHOW(syscall(SYS_ppoll, p, 2, &none, BAD, 8));
	SHOW(ppoll(p, 2, &none, &mask));
	end = read_only(p, sizeof(p[0]));
	SHOW(poll(end, 1, 0));
	SHOW(poll(end, 2, 0));
	SHOW(poll(p, 2, 0));
}

CASE(select_bad_pointers)
{
	struct timeval none = { 0 };
	struct timespec nothing = { 0 };
	struct {
		void *mask;
		size_t size;
	} six = { NULL, 8 };
	fd_set set;

	prepare();
	FD_ZERO(&set);
	FD_SET(udp[0], &set);
	FD_SET(pipes[1], &set);
	SHOW(select(20, BAD, NULL, NULL, &none));
	SHOW(select(20, NULL, BAD, &set, &none));
#ifdef SYS_select
	SHOW(syscall(SYS_select, 20, NULL, &set, NULL, BAD));
#endif
	SHOW(syscall(SYS_pselect6, 20, NULL, &set, NULL, BAD, NULL));
	SHOW(syscall(SYS_pselect6, 20, NULL, &set, NULL, &nothing, BAD));
	six.mask = BAD;
	SHOW(syscall(SYS_pselect6, 20, NULL, &set, NULL, &nothing, &six));
	SHOW(select(20, NULL, read_only(&set, sizeof(set)), NULL, &none));
	SHOW(select(0, BAD, NULL, NULL, &none));
	SHOW(select(20, NULL, &set, NULL, &none));
}

CASE(epoll_bad_pointers)
{
	int ep = epoll_create1(0), host_only = epoll_create1(0);
	struct epoll_event ev = { .events = EPOLLOUT };
	struct timespec none = { 0 };

	prepare();
	SHOW(epoll_ctl(ep, EPOLL_CTL_ADD, udp[0], BAD));
	SHOW(epoll_ctl(ep, EPOLL_CTL_ADD, udp[0], &ev));
	SHOW(epoll_wait(ep, BAD, 1, 0));
	SHOW(epoll_pwait2(ep, &ev, 1, BAD, NULL));
	SHOW(epoll_pwait(ep, &ev, 1, 0, BAD));
	SHOW(epoll_ctl(ep, EPOLL_CTL_ADD, pipes[1], BAD));
	SHOW(epoll_ctl(ep, EPOLL_CTL_ADD, pipes[1], &ev));
	SHOW(epoll_wait(ep, BAD, 2, 0));
	SHOW(epoll_pwait2(ep, &ev, 1, &none, BAD));
	SHOW(epoll_ctl(ep, EPOLL_CTL_MOD, udp[0], BAD));
	SHOW(epoll_pwait2(ep, &ev, 1, &none, NULL));
	SHOW(epoll_pwait2(host_only, &ev, 1, BAD, NULL));
}

/* The number of descriptors that a process may have, and a set of the usual size. */
CASE(select_many)
{
	struct rlimit limit = { 65536, 65536 };
	struct timeval none = { 0 };
	unsigned long big[256] = { 0 };
	int high = 9000, n;
	struct {
		fd_set set;
		unsigned char behind[9000];
	} s;

	prepare();
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max < 10000 ? limit.rlim_max : 10000;
	MUST(!setrlimit(RLIMIT_NOFILE, &limit));
	memset(&s, 0, sizeof(s));
	memset(s.behind, 0xff, sizeof(s.behind));
	FD_SET(udp[0], &s.set);
	FD_SET(pipes[1], &s.set);
	SHOW(select(9000, NULL, &s.set, NULL, &none));
	SHOW(FD_ISSET(udp[0], &s.set) && FD_ISSET(pipes[1], &s.set));
	FD_ZERO(&s.set);
	FD_SET(pipes[1], &s.set);
	SHOW(select(9000, NULL, &s.set, NULL, &none));
	/* Descriptors beyond FD_SETSIZE. */
	for (n = 0; n < 3; n++) {
		SHOW(dup2(n == 1 ? pipes[1] : udp[0], high - n));
		big[(high - n) / 64] |= 1ul << ((high - n) % 64);
	}
	SHOW(select(high + 1, NULL, (fd_set *)big, NULL, &none));
	SHOW(close(high));
	SHOW(select(high + 1, NULL, (fd_set *)big, NULL, &none));
}
