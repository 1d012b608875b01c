// SPDX-License-Identifier: GPL-2.0-only
/*
 * poll and ppoll.
 *
 * The program's array is split in two: the stack's descriptors and the
 * host's; an epoll stands in both. When one part is
 * empty the other's call does everything. For a mixture the thread calls the
 * stack's ppoll, and while it sleeps guise_call_polling() watches the host's
 * descriptors; afterwards the side that did not end the sleep is looked at once more,
 * so that all that is ready is reported, as on a host. Both are looked at before, too,
 * when the call is not to wait, and when one of the host's ended the last one.
 *
 * Time is the stack's: in simulated time a timeout is simulated, too.
 */
#include "preload/wait/cancel.h"
#include "host/memory.h"
#include "host/probe.h"
#include "host/sys.h"
#include "preload/wait/waiting.h"

#include <sys/resource.h>

#define FEW 48 /* descriptors for which the stack will do: 1.2 kB */

/* One side's share of the program's array. */
struct part {
	struct pollfd *fds;
	unsigned int *index; /* the place of each in the program's array */
	unsigned int n;
};

struct split {
	struct part host, stack;
	bool stale; /* one at least is neither's: POLLNVAL */
};

static void add(struct part *part, const struct pollfd *of, int fd, unsigned int index)
{
	part->fds[part->n] = (struct pollfd){ .fd = fd, .events = of->events };
	part->index[part->n++] = index;
}

static void split_up(struct split *split, struct pollfd *fds, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		uint32_t entry = preload_epoll_whole(fds[i].fd);

		fds[i].revents = 0;
		if (fds[i].fd < 0)
			continue;
		if (entry & (GUISE_FD_PRIVATE | GUISE_FD_HALF))
			add(&split->stack, &fds[i], (int)(entry & GUISE_FD_STACK), i);
		if (entry & GUISE_FD_STALE) {
			preload_stale(fds[i].fd);
			fds[i].revents = POLLNVAL;
			split->stale = true;
		} else if (!(entry & GUISE_FD_PRIVATE)) {
			add(&split->host, &fds[i], fds[i].fd, i);
		}
	}
}

static void report(const struct part *part, struct pollfd *fds)
{
	for (unsigned int i = 0; i < part->n; i++)
		fds[part->index[i]].revents |= part->fds[i].revents;
}

static int count(const struct pollfd *fds, unsigned int n)
{
	int ready = 0;

	for (unsigned int i = 0; i < n; i++)
		ready += fds[i].revents != 0;
	return ready;
}

static long look_at_host(const struct part *part)
{
	struct timespec now = { 0 };

	return part->n ? host_sys(SYS_ppoll, part->fds, part->n, &now, 0, 0) : 0;
}

static long ask_stack(const struct part *part, const struct timespec *timeout)
{
	struct timespec copy;

	if (!part->n)
		return 0;
	if (timeout)
		copy = *timeout; /* the kernel writes into it what time is left */
	return guise_call(preload.stack, GUISE_NR_ppoll, (long)part->fds, part->n,
			  timeout ? (long)&copy : 0, 0, 0, 0);
}

/* Positive: fds has revents; 0: the time is up; -errno. */
static long wait_for_both(struct split *split, const struct timespec *timeout)
{
	/* One of the host's was ready last time, and perhaps it is again. */
	static __thread bool host_first __attribute__((tls_model("initial-exec")));
	static const struct timespec now = { 0 };
	bool at_once = timeout && !timeout->tv_sec && !timeout->tv_nsec;
	struct timespec copy;
	long host, stack;
	int ready = 0;

	if (at_once || host_first || split->stale) {
		host = look_at_host(&split->host);
		if (host < 0)
			return host;
		host_first = host;
		stack = ask_stack(&split->stack, &now);
		if (stack || host || split->stale || at_once)
			return stack < 0 ? stack : stack || host || split->stale;
	}
	if (timeout)
		copy = *timeout;
	stack = guise_call_polling(preload.stack, split->host.fds, split->host.n, &ready,
				   GUISE_NR_ppoll, (long)split->stack.fds, split->stack.n,
				   timeout ? (long)&copy : 0, 0, 0, 0);
	host_first = ready > 0;
	if (stack == -EINTR && ready > 0)
		return ready;
	if (stack > 0 && ready <= 0)
		look_at_host(&split->host);
	return stack < 0 ? stack : stack > 0 || ready > 0;
}

static long wait_split(struct split *split, struct pollfd *fds, const struct timespec *timeout)
{
	long ret;

	if (timeout && !preload_valid_time(timeout))
		return -EINVAL;
	if (split->host.n || split->stale)
		ret = wait_for_both(split, timeout);
	else
		ret = ask_stack(&split->stack, timeout);
	if (ret > 0) {
		report(&split->host, fds);
		report(&split->stack, fds);
	}
	return ret;
}

/* Gives the room back also when the thread is cancelled. */
static long wait_in_room(struct split *split, struct pollfd *fds, const struct timespec *timeout,
			 const sigset_t *mask, struct guise_room *room)
{
	struct preload_mask saved;
	long ret;

	pthread_cleanup_push(guise_room_leave, room);
	cancel_begin();
	preload_mask_on(&saved, mask);
	ret = wait_split(split, fds, timeout);
	preload_mask_off(&saved);
	cancel_end();
	pthread_cleanup_pop(1);
	return ret;
}

/* Some descriptor of fds is not the host's alone. */
static int poll_private(struct pollfd *fds, unsigned int n, const struct timespec *timeout,
			const sigset_t *mask)
{
	struct pollfd few[2 * FEW], *copies = few;
	unsigned int few_index[2 * FEW], *index = few_index;
	struct split split = { 0 };
	struct guise_room room = { 0 };
	long ret;

	if ((timeout && guise_readable(timeout, sizeof(*timeout))) ||
	    (mask && guise_readable(mask, KERNEL_SIGSET)) || guise_writable(fds, n * sizeof(*fds)))
		return (int)libc_result(-EFAULT);
	if (n > FEW) {
		struct rlimit most;

		/* Each part alone would be below it. */
		if (!host_sys(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, &most) && n > most.rlim_cur)
			return (int)libc_result(-EINVAL);
		room.bytes = (size_t)n * 2 * (sizeof(*copies) + sizeof(*index));
		room.at = guise_room_take(room.bytes);
		if (!room.at)
			return (int)libc_result(-ENOMEM);
		copies = room.at;
		index = (unsigned int *)(copies + 2 * n);
	}
	split.host = (struct part){ .fds = copies, .index = index };
	split.stack = (struct part){ .fds = copies + n, .index = index + n };
	split_up(&split, fds, n);
	ret = wait_in_room(&split, fds, timeout, mask, &room);
	return ret > 0 ? count(fds, n) : (int)libc_result(ret);
}

/* Bad pointers are the host's to refuse. */
bool preload_polls_stack(struct pollfd *fds, nfds_t n)
{
	if (!n || n > GUISE_FDMAP_MAX || preload.ticket < 0 ||
	    guise_readable(fds, n * sizeof(*fds)))
		return false;
	for (nfds_t i = 0; i < n; i++)
		if (guise_fdmap_get(preload.map, fds[i].fd))
			return true;
	return false;
}

HOOK int poll(struct pollfd *fds, nfds_t n, int timeout)
{
	struct timespec t = {
		.tv_sec = timeout / 1000,
		.tv_nsec = timeout % 1000 * 1000000L,
	};

	if (!preload_polls_stack(fds, n))
		return HOST(poll)(fds, n, timeout);
	return poll_private(fds, (unsigned int)n, timeout < 0 ? NULL : &t, NULL);
}

HOOK int __poll(struct pollfd *fds, nfds_t n, int timeout) SAME_AS(poll);

HOOK int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
	if (!preload_polls_stack(fds, n))
		return HOST(ppoll)(fds, n, timeout, mask);
	return poll_private(fds, (unsigned int)n, timeout, mask);
}

HOOK int __poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t room)
{
	return room / sizeof(*fds) < n ? HOST(__poll_chk)(fds, n, timeout, room)
				       : poll(fds, n, timeout);
}

HOOK int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
		     const sigset_t *mask, size_t room)
{
	return room / sizeof(*fds) < n ? HOST(__ppoll_chk)(fds, n, timeout, mask, room)
				       : ppoll(fds, n, timeout, mask);
}
