// SPDX-License-Identifier: GPL-2.0-only
/*
 * select and pselect.
 *
 * As poll (see poll.c), with sets in place of arrays: the program's three sets
 * become three for the host, with the same numbers, and three for the stack,
 * with the stack's numbers. Both sides are then asked by their own select, so
 * that what counts as readable or exceptional stays theirs to say.
 *
 * While the thread sleeps the host's descriptors are watched by poll, which
 * also reports what select would not (a hang-up where only exceptions were
 * asked for): such a descriptor is not watched again in this call.
 *
 * A program that passes a number above FD_SETSIZE may have larger sets, or may just pass
 * getdtablesize(): the kernel reads no further than its table of descriptors is long, a
 * power of two. guise's own descriptors make that table longer; so such a number is reduced
 * to the length that the table would have without them.
 */
#include "preload/wait/cancel.h"
#include "host/memory.h"
#include "host/probe.h"
#include "host/sys.h"
#include "preload/wait/waiting.h"

#include <string.h>
#include <sys/select.h>

#define BITS     (8 * (int)sizeof(long))
#define WORDS(n) (((n) + BITS - 1) / BITS)
#define KINDS    3 /* read, write, except */
#define FEW      FD_SETSIZE

static const short kind_events[KINDS] = {
	POLLIN | POLLRDNORM | POLLRDBAND,
	POLLOUT | POLLWRNORM | POLLWRBAND,
	POLLPRI,
};
/* What poll may report that makes select report that kind. */
static const short kind_reports[KINDS] = {
	POLLIN | POLLRDNORM | POLLRDBAND | POLLHUP | POLLERR,
	POLLOUT | POLLWRNORM | POLLWRBAND | POLLERR,
	POLLPRI,
};

/* Three sets for one side: what was asked for, and what is ready of it. */
struct side {
	int n; /* numbers are below this */
	unsigned long *asked[KINDS], *ready[KINDS];
};

struct sets {
	int n;
	unsigned long *set[KINDS]; /* the program's; NULL if not given */
	struct side host, stack;
	struct pollfd *watched; /* the host's, for the sleep */
	unsigned int n_watched;
	bool stale;
};

static bool bit(const unsigned long *set, int n)
{
	return set && set[n / BITS] >> (n % BITS) & 1;
}

static void set_bit(unsigned long *set, int n)
{
	set[n / BITS] |= 1UL << (n % BITS);
}

static bool in_any(const struct sets *s, int fd)
{
	return bit(s->set[0], fd) || bit(s->set[1], fd) || bit(s->set[2], fd);
}

static bool is_inside(uint32_t entry)
{
	return entry & (GUISE_FD_PRIVATE | GUISE_FD_HALF);
}

static bool is_hosts(uint32_t entry)
{
	return !(entry & (GUISE_FD_PRIVATE | GUISE_FD_STALE));
}

static bool is_open(int fd)
{
	return !preload_own_fd(fd) && host_sys(SYS_fcntl, fd, F_GETFD) >= 0;
}

/* How much of the sets the kernel would look at. */
static int true_length(const struct sets *s)
{
	int length, fd = s->n < GUISE_FDMAP_MAX ? s->n : GUISE_FDMAP_MAX;

	if (fd <= FD_SETSIZE || preload.ticket < 0)
		return s->n;
	while (--fd >= FD_SETSIZE) {
		unsigned long word = 0;

		for (int k = 0; k < KINDS; k++)
			if (s->set[k] && !guise_readable(&s->set[k][fd / BITS], sizeof(long)))
				word |= s->set[k][fd / BITS];
		if (!word)
			fd -= fd % BITS;
		else if (word >> (fd % BITS) & 1 && is_open(fd))
			break;
	}
	for (length = FD_SETSIZE; length <= fd; length *= 2)
		;
	return length < s->n ? length : s->n;
}

static bool bad_sets(const struct sets *s)
{
	for (int k = 0; k < KINDS; k++)
		if (s->set[k] && guise_writable(s->set[k], WORDS(s->n) * sizeof(long)))
			return true;
	return false;
}

/* Counts what each side gets: the stack's highest number, the host's total.
 * False: the host's call alone answers, also for what is bad. */
static bool measure(struct sets *s)
{
	s->n = true_length(s);
	if (s->n <= 0 || preload.ticket < 0 || bad_sets(s))
		return false;
	for (int fd = 0; fd < s->n; fd++) {
		uint32_t entry;

		/* Most words of the sets are empty. */
		if (fd % BITS == 0 && !(s->set[0] ? s->set[0][fd / BITS] : 0) &&
		    !(s->set[1] ? s->set[1][fd / BITS] : 0) &&
		    !(s->set[2] ? s->set[2][fd / BITS] : 0)) {
			fd += BITS - 1;
			continue;
		}
		if (!in_any(s, fd))
			continue;
		entry = preload_epoll_whole(fd);
		if (is_inside(entry) && (int)(entry & GUISE_FD_STACK) >= s->stack.n)
			s->stack.n = (int)(entry & GUISE_FD_STACK) + 1;
		if (entry & GUISE_FD_STALE) {
			preload_stale(fd);
			s->stale = true;
		} else if (is_hosts(entry)) {
			s->host.n = fd + 1;
			s->n_watched++;
		}
	}
	return s->stack.n || s->stale;
}

static unsigned long *give_sets(struct side *side, unsigned long *memory)
{
	for (int k = 0; k < KINDS; k++) {
		side->asked[k] = memory;
		side->ready[k] = memory + WORDS(side->n);
		memory += 2 * WORDS(side->n);
	}
	return memory;
}

/* Another thread may have changed the table since it was measured. */
static void split_up(struct sets *s)
{
	unsigned int room = s->n_watched;

	s->n_watched = 0;
	for (int fd = 0; fd < s->n; fd++) {
		uint32_t entry;
		short events = 0;

		if (!in_any(s, fd))
			continue;
		entry = guise_fdmap_get(preload.map, fd);
		for (int k = 0; k < KINDS; k++) {
			if (!bit(s->set[k], fd))
				continue;
			events |= kind_events[k];
			if (is_inside(entry) && (int)(entry & GUISE_FD_STACK) < s->stack.n)
				set_bit(s->stack.asked[k], (int)(entry & GUISE_FD_STACK));
			if (is_hosts(entry) && fd < s->host.n)
				set_bit(s->host.asked[k], fd);
		}
		if (is_hosts(entry) && s->n_watched < room)
			s->watched[s->n_watched++] = (struct pollfd){ .fd = fd, .events = events };
	}
}

static void ask_again(struct side *side)
{
	for (int k = 0; k < KINDS; k++)
		memcpy(side->ready[k], side->asked[k], WORDS(side->n) * sizeof(long));
}

static long look_at_host(struct side *side)
{
	struct timespec now = { 0 };

	if (!side->n)
		return 0;
	ask_again(side);
	return host_sys(SYS_pselect6, side->n, side->ready[0], side->ready[1], side->ready[2], &now,
			0);
}

static void nothing_ready(struct side *side)
{
	for (int k = 0; k < KINDS; k++)
		memset(side->ready[k], 0, WORDS(side->n) * sizeof(long));
}

/* time NULL: for ever; written to. */
static long ask_stack(struct side *side, struct timespec *time)
{
	if (!side->n)
		return 0;
	ask_again(side);
	return guise_call(preload.stack, GUISE_NR_pselect6, side->n, (long)side->ready[0],
			  (long)side->ready[1], (long)side->ready[2], (long)time, 0);
}

/* Forgets watched descriptors whose news select does not report. */
static void drop_idle_news(struct sets *s)
{
	for (unsigned int i = 0; i < s->n_watched; i++) {
		struct pollfd *p = &s->watched[i];

		for (int k = 0; k < KINDS; k++)
			if (p->fd >= 0 && bit(s->host.asked[k], p->fd) &&
			    p->revents & kind_reports[k])
				p->revents = 0;
		if (p->revents)
			p->fd = -1;
	}
}

/* Positive: the ready sets are filled; 0: the time is up; -errno. */
static long wait_for_both(struct sets *s, uint64_t deadline)
{
	struct timespec left;
	long host, stack;
	int ready;

	for (;;) {
		host = look_at_host(&s->host);
		if (host < 0)
			return host;
		left = (struct timespec){ 0 };
		stack = ask_stack(&s->stack, &left);
		if (stack || host)
			return stack < 0 ? stack : stack + host;
		left = preload_time_left(deadline);
		if (!left.tv_sec && !left.tv_nsec)
			return 0;
		ask_again(&s->stack);
		ready = 0;
		stack = guise_call_polling(preload.stack, s->watched, s->n_watched, &ready,
					   GUISE_NR_pselect6, s->stack.n, (long)s->stack.ready[0],
					   (long)s->stack.ready[1], (long)s->stack.ready[2],
					   deadline == FOREVER ? 0 : (long)&left, 0);
		if (stack == -EINTR && ready > 0) {
			drop_idle_news(s);
			continue;
		}
		if (stack > 0 && look_at_host(&s->host) < 0)
			nothing_ready(&s->host);
		return stack;
	}
}

static int report(struct sets *s)
{
	int total = 0;

	for (int k = 0; k < KINDS; k++) {
		/* As in the kernel, the rest of the last word is cleared, too. */
		for (int fd = 0; s->set[k] && fd < WORDS(s->n) * BITS; fd++) {
			uint32_t entry;

			if (!bit(s->set[k], fd))
				continue;
			if (fd >= s->n) {
				s->set[k][fd / BITS] &= ~(1UL << (fd % BITS));
				continue;
			}
			entry = guise_fdmap_get(preload.map, fd);
			if ((fd < s->host.n && bit(s->host.ready[k], fd)) ||
			    (is_inside(entry) && (int)(entry & GUISE_FD_STACK) < s->stack.n &&
			     bit(s->stack.ready[k], (int)(entry & GUISE_FD_STACK))))
				total++;
			else
				s->set[k][fd / BITS] &= ~(1UL << (fd % BITS));
		}
	}
	return total;
}

static int select_private(struct sets *s, const struct timespec *timeout, const sigset_t *mask,
			  struct timespec *left)
{
	unsigned long few[KINDS * 4 * WORDS(FEW)], *memory = few;
	size_t longs = (size_t)KINDS * 2 * (size_t)(WORDS(s->host.n) + WORDS(s->stack.n));
	struct pollfd few_watched[FEW / 16];
	struct preload_mask saved;
	struct timespec copy;
	struct guise_room room = { 0 };
	uint64_t deadline;
	long ret;

	if (s->stale)
		return (int)libc_result(-EBADF);
	s->watched = few_watched;
	if (longs > sizeof(few) / sizeof(*few) || s->n_watched > FEW / 16) {
		room.bytes = longs * sizeof(long) + s->n_watched * sizeof(*s->watched);
		room.at = guise_room_take(room.bytes);
		if (!room.at)
			return (int)libc_result(-ENOMEM);
		memory = room.at;
		s->watched = (struct pollfd *)(memory + longs);
	}
	memset(memory, 0, longs * sizeof(long));
	give_sets(&s->stack, give_sets(&s->host, memory));
	split_up(s);

	deadline = preload_deadline(timeout);
	if (timeout)
		copy = *timeout;
	pthread_cleanup_push(guise_room_leave, &room);
	cancel_begin();
	preload_mask_on(&saved, mask);
	if (s->n_watched)
		ret = wait_for_both(s, deadline);
	else
		ret = ask_stack(&s->stack, timeout ? &copy : NULL);
	preload_mask_off(&saved);
	cancel_end();
	if (ret >= 0)
		ret = report(s);
	pthread_cleanup_pop(1);
	if (left && timeout)
		*left = preload_time_left(deadline);
	return (int)libc_result(ret);
}

bool preload_selects_stack(int *n, fd_set *in, fd_set *out, fd_set *except)
{
	struct sets s = {
		.n = *n,
		.set = { (unsigned long *)in, (unsigned long *)out, (unsigned long *)except },
	};
	bool stack = measure(&s);

	*n = s.n;
	return stack;
}

HOOK int select(int n, fd_set *in, fd_set *out, fd_set *except, struct timeval *timeout)
{
	struct sets s = {
		.n = n,
		.set = { (unsigned long *)in, (unsigned long *)out, (unsigned long *)except },
	};
	struct timespec t = { 0 }, left = { 0 };
	int ret;

	if (!measure(&s))
		return HOST(select)(s.n, in, out, except, timeout);
	if (timeout && guise_writable(timeout, sizeof(*timeout)))
		return (int)libc_result(-EFAULT);
	if (timeout) {
		if (timeout->tv_sec < 0 || timeout->tv_usec < 0)
			return (int)libc_result(-EINVAL);
		/* The kernel, too, takes more than a second's worth. */
		t.tv_sec = timeout->tv_sec + timeout->tv_usec / 1000000;
		t.tv_nsec = timeout->tv_usec % 1000000 * 1000;
	}
	ret = select_private(&s, timeout ? &t : NULL, NULL, &left);
	if (timeout)
		*timeout =
			(struct timeval){ .tv_sec = left.tv_sec, .tv_usec = left.tv_nsec / 1000 };
	return ret;
}

HOOK int __select(int n, fd_set *in, fd_set *out, fd_set *except, struct timeval *timeout)
	SAME_AS(select);

HOOK int pselect(int n, fd_set *in, fd_set *out, fd_set *except, const struct timespec *timeout,
		 const sigset_t *mask)
{
	struct sets s = {
		.n = n,
		.set = { (unsigned long *)in, (unsigned long *)out, (unsigned long *)except },
	};

	if (!measure(&s))
		return HOST(pselect)(s.n, in, out, except, timeout, mask);
	if ((timeout && guise_readable(timeout, sizeof(*timeout))) ||
	    (mask && guise_readable(mask, KERNEL_SIGSET)))
		return (int)libc_result(-EFAULT);
	if (timeout && !preload_valid_time(timeout))
		return (int)libc_result(-EINVAL);
	return select_private(&s, timeout, mask, NULL);
}
