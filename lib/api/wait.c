// SPDX-License-Identifier: GPL-2.0-only
/* Waiting inside a stack: poll, epoll, sleep. */
#include "api/error.h"
#include "guise/guise.h"
#include "guise/syscall.h"

int guise_poll(struct guise_stack *s, struct pollfd *fds, unsigned int n, int timeout_ms)
{
	struct timespec t = {
		.tv_sec = timeout_ms / 1000,
		.tv_nsec = timeout_ms % 1000 * 1000000L,
	};

	return (int)guise_result("poll", guise_call(s, GUISE_NR_ppoll, (long)fds, n,
						    timeout_ms < 0 ? 0 : (long)&t, 0, 0, 0));
}

int guise_epoll_create(struct guise_stack *s, int flags)
{
	return (int)guise_result("epoll_create",
				 guise_call(s, GUISE_NR_epoll_create1, flags, 0, 0, 0, 0, 0));
}

int guise_epoll_ctl(struct guise_stack *s, int ep, int op, int fd, struct epoll_event *ev)
{
	return (int)guise_result("epoll_ctl",
				 guise_call(s, GUISE_NR_epoll_ctl, ep, op, fd, (long)ev, 0, 0));
}

int guise_epoll_wait(struct guise_stack *s, int ep, struct epoll_event *ev, int max, int timeout_ms)
{
	return (int)guise_result("epoll_wait", guise_call(s, GUISE_NR_epoll_pwait, ep, (long)ev,
							  max, timeout_ms, 0, 0));
}

int guise_nanosleep(struct guise_stack *s, uint64_t ns)
{
	struct timespec t = {
		.tv_sec = (time_t)(ns / 1000000000),
		.tv_nsec = (long)(ns % 1000000000),
	};

	return (int)guise_result("nanosleep", guise_call(s, GUISE_NR_clock_nanosleep,
							 CLOCK_MONOTONIC, 0, (long)&t, 0, 0, 0));
}
