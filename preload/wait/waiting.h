/* SPDX-License-Identifier: GPL-2.0-only */
/* What poll, select and epoll share: times, and signal masks for a wait. */
#ifndef GUISE_PRELOAD_WAITING_H
#define GUISE_PRELOAD_WAITING_H

#include "preload/preload.h"

#include <signal.h>
#include <time.h>

#define FOREVER UINT64_MAX

static inline bool preload_valid_time(const struct timespec *t)
{
	return t->tv_sec >= 0 && t->tv_nsec >= 0 && t->tv_nsec < 1000000000;
}

/* When a wait of that length (NULL: for ever) ends, by the stack's clock. */
static inline uint64_t preload_deadline(const struct timespec *length)
{
	if (!length || length->tv_sec > INT32_MAX)
		return FOREVER;
	if (!length->tv_sec && !length->tv_nsec)
		return 0;
	return guise_clock(preload.stack) + (uint64_t)length->tv_sec * 1000000000 +
	       (uint64_t)length->tv_nsec;
}

/* What is left until then; zero when it has passed. */
static inline struct timespec preload_time_left(uint64_t deadline)
{
	uint64_t now = guise_clock(preload.stack), left = deadline > now ? deadline - now : 0;

	return (struct timespec){
		.tv_sec = (time_t)(left / 1000000000),
		.tv_nsec = (long)(left % 1000000000),
	};
}

/* poll.c, select.c: whether the stack is to be asked; else the host's call alone answers, also
 * for what is bad. select's n becomes how much of the sets the kernel is to look at. */
bool preload_polls_stack(struct pollfd *fds, nfds_t n);
bool preload_selects_stack(int *n, fd_set *in, fd_set *out, fd_set *except);

#define KERNEL_SIGSET 8 /* bytes of a signal set in system calls */

/* sigmask.c: set, or a copy of it without the signals that guise needs. */
const sigset_t *preload_allowed_mask(const sigset_t *set, sigset_t *copy);

/* mask.c: the mask of ppoll, pselect and epoll_pwait. */
struct preload_mask {
	bool on;
	sigset_t before;
};

/* Installs mask (NULL: nothing happens) for a wait inside the stack: a signal
 * that arrives from here on makes the wait end with -EINTR, even if it has
 * not begun. Its handler runs in preload_mask_off(), before the old mask is
 * back. */
void preload_mask_on(struct preload_mask *saved, const sigset_t *mask);
void preload_mask_off(struct preload_mask *saved);

#endif
