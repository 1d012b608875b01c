// SPDX-License-Identifier: GPL-2.0-only
/*
 * epoll.
 *
 * An epoll descriptor is a real one of the host. With its first private member
 * it gets a private half, an epoll inside the stack; its host members stay in
 * the host's. Both carry the program's own data in their events, so that those
 * need no translation. A descriptor that is closed leaves its half by itself.
 *
 * epoll_wait asks the halves that may have members: the host's alone, the
 * stack's alone, or both: then it calls the stack's epoll_wait, with the host's
 * epoll descriptor beside it while the thread sleeps, and asks the host's half as
 * well when that is ready, or when the thread did not have to sleep. The host's
 * half is asked before, too, when it was what ended the last wait, and when
 * there is no room for an event of each.
 *
 * An epoll that is itself waited for (nested, polled) or duplicated gets its
 * private half at once, so that a thread that waits watches both halves from
 * the beginning. There is one more case: thread A waits in one half only, and
 * thread B adds the first member of the other half. B then nudges A: it adds to A's
 * half a descriptor that is always readable, for one event; A drops that
 * event, looks again, and nudges the next thread while others wait in that half.
 * The nudge's data is the address of a variable of guise's own, which no program uses as
 * its data. Waiters are counted by descriptor; a count that is too high (a
 * handler that left epoll_wait by longjmp, numbers that are equal modulo the
 * table) costs some milliseconds, once.
 *
 * EPOLLONESHOT on a nested epoll holds for each of its halves.
 */
#include "preload/wait/cancel.h"
#include "host/probe.h"
#include "host/sys.h"
#include "preload/wait/waiting.h"

#include <string.h>
#include <sys/epoll.h>

#define NUDGED (-1000) /* only a nudge came: look again */

#define COUNTERS 4096
#define PASSES   100   /* of a nudge by one thread, at most */
#define PASS_NS  50000 /* for another one to take it */

/* Threads that wait in one half only, by the epoll's number. */
static uint16_t host_waiters[COUNTERS], stack_waiters[COUNTERS];
static char nudge_place;

struct wait {
	int ep, max;
	struct epoll_event *ev;
	bool precise; /* by timeout (NULL: for ever), else by ms */
	int ms;
	const struct timespec *timeout;
	const sigset_t *mask;
	unsigned int passes; /* nudges that this thread passed on */
};

#define NUDGE_DATA ((uint64_t)(uintptr_t)&nudge_place)

static void watch_nudge(int host_ep, int stack_ep)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLONESHOT, .data.u64 = NUDGE_DATA };
	struct guise_stack *s = preload.stack;
	long err;

	/* There from an earlier time: armed again. */
	if (host_ep >= 0) {
		err = host_sys(SYS_epoll_ctl, host_ep, EPOLL_CTL_ADD, preload.nudge, &ev);
		if (err == -EEXIST)
			host_sys(SYS_epoll_ctl, host_ep, EPOLL_CTL_MOD, preload.nudge, &ev);
	} else {
		err = guise_call(s, GUISE_NR_epoll_ctl, stack_ep, EPOLL_CTL_ADD,
				 preload.stack_nudge, (long)&ev, 0, 0);
		if (err == -EEXIST)
			guise_call(s, GUISE_NR_epoll_ctl, stack_ep, EPOLL_CTL_MOD,
				   preload.stack_nudge, (long)&ev, 0, 0);
	}
}

static uint16_t *waiters(uint16_t *half, int ep)
{
	return &half[(unsigned int)ep % COUNTERS];
}

void preload_epoll_forked(void)
{
	memset(host_waiters, 0, sizeof(host_waiters));
	memset(stack_waiters, 0, sizeof(stack_waiters));
}

/* A nudge was taken: other threads that wait in that half need one, too. */
static void pass_on(struct wait *w, uint16_t *half, int host_ep, int stack_ep)
{
	struct timespec moment = { .tv_nsec = PASS_NS };

	if (!__atomic_load_n(waiters(half, w->ep), __ATOMIC_SEQ_CST) || w->passes++ == PASSES)
		return;
	watch_nudge(host_ep, stack_ep);
	host_sys(SYS_nanosleep, &moment, 0);
}

/* Removes nudges from n > 0 events: how many are left, or NUDGED. */
static long drop_nudges(struct epoll_event *ev, long n)
{
	long kept = 0;

	for (long i = 0; i < n; i++)
		if (likely(ev[i].data.u64 != NUDGE_DATA))
			ev[kept++] = ev[i];
	return kept ? kept : NUDGED;
}

/* Whether fd is an epoll of the host: 0 or -errno. */
static long check_epoll(int fd)
{
	long ret = host_sys(SYS_epoll_ctl, fd, EPOLL_CTL_DEL, preload.placeholder, 0);

	return ret == -ENOENT ? 0 : ret;
}

/* Sets a flag of an epoll's entry: the entry then, 0 if it is gone. */
static uint32_t set_flag(int fd, uint32_t flag)
{
	uint32_t entry;

	do {
		entry = guise_fdmap_get(preload.map, fd);
		if (!(entry & GUISE_FD_EPOLL) || (entry & flag) == flag)
			return entry;
	} while (!guise_fdmap_change(preload.map, fd, entry, entry | flag));
	return entry | flag;
}

/* Gives fd a private half that it does not have: 0 or -errno. */
static long make_half(int fd, uint32_t entry)
{
	uint32_t whole = entry;
	long sep, err;

	if (!entry) {
		/* Made where no hook saw it; its members are not known. */
		whole = GUISE_FD_EPOLL | GUISE_FD_HOSTED;
		err = check_epoll(fd);
		if (!err)
			err = preload_map_room(fd);
		if (err)
			return err;
	}
	sep = guise_call(preload.stack, GUISE_NR_epoll_create1, 0, 0, 0, 0, 0, 0);
	if (sep < 0)
		return sep;
	whole |= GUISE_FD_HALF | (uint32_t)sep;
	if (!guise_fdmap_change(preload.map, fd, entry, whole)) {
		/* Another thread was first, or it was closed. */
		guise_call(preload.stack, GUISE_NR_close, sep, 0, 0, 0, 0, 0);
		return 0;
	}
	/* Either a thread that begins to wait sees the half, or we see it here. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(waiters(host_waiters, fd), __ATOMIC_RELAXED)) {
		set_flag(fd, GUISE_FD_HOSTED); /* that half is to be looked at for the nudge */
		watch_nudge(fd, -1);
	}
	return 0;
}

/* The entry of fd with a private half; 0 and errno if there can be none. */
static uint32_t with_half(int fd)
{
	uint32_t entry;
	long err;

	err = preload_stack() ? preload_prepare() : -EINVAL;
	while (!err) {
		entry = guise_fdmap_get(preload.map, fd);
		if (entry & GUISE_FD_HALF)
			return entry;
		err = entry & (GUISE_FD_PRIVATE | GUISE_FD_STALE) ? -EINVAL : make_half(fd, entry);
	}
	errno = (int)-err;
	return 0;
}

uint32_t preload_epoll_whole(int fd)
{
	uint32_t entry = guise_fdmap_get(preload.map, fd);

	if (!(entry & GUISE_FD_EPOLL) || !with_half(fd))
		return entry;
	return set_flag(fd, GUISE_FD_HOSTED);
}

/* ep has a member of the host, or is about to get its first. */
static void note_host_member(int ep)
{
	uint32_t entry = guise_fdmap_get(preload.map, ep);

	if (!(entry & GUISE_FD_EPOLL) || (entry & GUISE_FD_HOSTED))
		return;
	entry = set_flag(ep, GUISE_FD_HOSTED);
	/* As in make_half(), the other way round. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (entry & GUISE_FD_HALF && __atomic_load_n(waiters(stack_waiters, ep), __ATOMIC_RELAXED))
		watch_nudge(-1, (int)(entry & GUISE_FD_STACK));
}

static int control_private(int ep, int op, int sfd, struct epoll_event *ev)
{
	uint32_t entry = guise_fdmap_get(preload.map, ep);
	long err;

	if (op != EPOLL_CTL_DEL && guise_readable(ev, sizeof(*ev)))
		return (int)libc_result(-EFAULT);
	if (op == EPOLL_CTL_ADD) {
		entry = with_half(ep);
		if (!entry)
			return -1;
	}
	if (!(entry & GUISE_FD_HALF)) {
		err = entry & (GUISE_FD_PRIVATE | GUISE_FD_STALE) ? -EINVAL : check_epoll(ep);
		if (!err && op != EPOLL_CTL_DEL &&
		    (op != EPOLL_CTL_MOD || ev->events & EPOLLEXCLUSIVE))
			err = -EINVAL;
		return (int)libc_result(err ? err : -ENOENT);
	}
	return (int)inside(GUISE_NR_epoll_ctl, (int)(entry & GUISE_FD_STACK), op, sfd, (long)ev, 0,
			   0);
}

static int control_nested(int ep, int op, int fd, struct epoll_event *ev)
{
	uint32_t outer = guise_fdmap_get(preload.map, ep), inner = guise_fdmap_get(preload.map, fd);
	int ret;

	if (op == EPOLL_CTL_ADD && ep != fd) {
		inner = with_half(fd);
		outer = inner ? with_half(ep) : 0;
		if (!outer)
			return -1;
		note_host_member(ep);
		set_flag(ep, GUISE_FD_NESTED);
	}
	ret = HOST(epoll_ctl)(ep, op, fd, ev);
	if (ret || !(outer & GUISE_FD_HALF) || !(inner & GUISE_FD_HALF))
		return ret;
	ret = (int)inside(GUISE_NR_epoll_ctl, (int)(outer & GUISE_FD_STACK), op,
			  (int)(inner & GUISE_FD_STACK), (long)ev, 0, 0);
	if (ret && op == EPOLL_CTL_ADD) {
		int saved = errno;

		HOST(epoll_ctl)(ep, EPOLL_CTL_DEL, fd, NULL);
		errno = saved;
	}
	return ret;
}

HOOK int epoll_ctl(int ep, int op, int fd, struct epoll_event *ev)
{
	uint32_t entry = guise_fdmap_get(preload.map, fd);

	if (entry & GUISE_FD_STALE)
		return preload_stale(fd);
	if (entry & GUISE_FD_PRIVATE)
		return control_private(ep, op, (int)(entry & GUISE_FD_STACK), ev);
	if (entry & GUISE_FD_EPOLL)
		return control_nested(ep, op, fd, ev);
	if (op == EPOLL_CTL_ADD)
		note_host_member(ep);
	return HOST(epoll_ctl)(ep, op, fd, ev);
}

static int created(int fd)
{
	int err;

	if (fd < 0 || !preload.stack)
		return fd;
	err = preload_map_set(fd, GUISE_FD_EPOLL, 0);
	if (!err)
		return fd;
	HOST(close)(fd);
	return (int)libc_result(err);
}

HOOK int epoll_create(int size)
{
	return created(HOST(epoll_create)(size));
}

HOOK int epoll_create1(int flags)
{
	return created(HOST(epoll_create1)(flags));
}

/* ---- waiting -------------------------------------------------------------- */

static long look_at_host(struct wait *w, struct epoll_event *ev, int room)
{
	long n = host_sys(SYS_epoll_pwait, w->ep, ev, room, 0, 0, KERNEL_SIGSET);

	n = n > 0 ? drop_nudges(ev, n) : n;
	if (n != NUDGED)
		return n;
	pass_on(w, host_waiters, w->ep, -1);
	return 0;
}

static long look_at_stack(struct wait *w, int sep, struct epoll_event *ev, int room)
{
	long n = guise_call(preload.stack, GUISE_NR_epoll_pwait, sep, (long)ev, room, 0, 0,
			    KERNEL_SIGSET);

	n = n > 0 ? drop_nudges(ev, n) : n;
	if (n != NUDGED)
		return n;
	pass_on(w, stack_waiters, -1, sep);
	return 0;
}

/* A nested epoll that is ready in both halves is one event. */
static long merge(struct epoll_event *ev, long host, long stack)
{
	long kept = host;

	for (long i = host; i < host + stack; i++) {
		long twin = 0;

		while (twin < host && ev[twin].data.u64 != ev[i].data.u64)
			twin++;
		if (twin < host)
			ev[twin].events |= ev[i].events;
		else
			ev[kept++] = ev[i];
	}
	return kept;
}

/* Asks both halves, without waiting, each only once: an event that stays ready would come twice. */
static long look_at_both(struct wait *w, uint32_t entry)
{
	int sep = (int)(entry & GUISE_FD_STACK);
	static unsigned int turn;
	long host, stack;

	if (w->max == 1 && __atomic_fetch_add(&turn, 1, __ATOMIC_RELAXED) % 2) {
		stack = look_at_stack(w, sep, w->ev, 1);
		return stack ? stack : look_at_host(w, w->ev, 1);
	}
	host = look_at_host(w, w->ev, w->max - w->max / 2);
	if (host < 0 || host == w->max)
		return host;
	stack = look_at_stack(w, sep, w->ev + host, w->max - (int)host);
	if (stack < 0)
		return host ? host : stack;
	return entry & GUISE_FD_NESTED && host && stack ? merge(w->ev, host, stack) : host + stack;
}

static long wait_for_both(struct wait *w, uint32_t entry, const struct timespec *timeout)
{
	/* The host's half had something last time, and perhaps it has again. */
	static __thread bool host_first __attribute__((tls_model("initial-exec")));
	struct pollfd host_half = { .fd = w->ep, .events = POLLIN };
	bool at_once = timeout && !timeout->tv_sec && !timeout->tv_nsec;
	int ready = 0;
	long n, more;

	if (at_once || host_first || w->max == 1) {
		n = look_at_both(w, entry);
		if (n || at_once)
			return n;
	}
	/* Room is left for the host's. */
	n = guise_call_polling(preload.stack, &host_half, 1, &ready, GUISE_NR_epoll_pwait2,
			       entry & GUISE_FD_STACK, (long)w->ev,
			       w->max > 1 ? w->max - (w->max + 3) / 4 : 1, (long)timeout, 0,
			       KERNEL_SIGSET);
	host_first = ready > 0;
	if (n == -EINTR && ready > 0)
		n = 0;
	if (n < 0 || (!n && ready <= 0))
		return n;
	if (n > 0)
		n = drop_nudges(w->ev, n);
	if (n == NUDGED) {
		pass_on(w, stack_waiters, -1, (int)(entry & GUISE_FD_STACK));
		n = 0;
	}
	if (ready && n < w->max) {
		more = look_at_host(w, w->ev + n, w->max - (int)n);
		if (more > 0)
			n = entry & GUISE_FD_NESTED ? merge(w->ev, n, more) : n + more;
	}
	return n ? n : NUDGED;
}

static long wait_for_stack(struct wait *w, uint32_t entry, const struct timespec *timeout)
{
	int sep = (int)(entry & GUISE_FD_STACK);
	long n = NUDGED;

	__atomic_fetch_add(waiters(stack_waiters, w->ep), 1, __ATOMIC_SEQ_CST);
	if (!(guise_fdmap_get(preload.map, w->ep) & GUISE_FD_HOSTED))
		n = guise_call(preload.stack, GUISE_NR_epoll_pwait2, sep, (long)w->ev, w->max,
			       (long)timeout, 0, KERNEL_SIGSET);
	__atomic_fetch_sub(waiters(stack_waiters, w->ep), 1, __ATOMIC_SEQ_CST);
	if (n > 0) {
		n = drop_nudges(w->ev, n);
		if (n == NUDGED)
			pass_on(w, stack_waiters, -1, sep);
	}
	return n;
}

/* The epoll has a private half. */
static int wait_inside(struct wait *w, const struct timespec *timeout)
{
	struct preload_mask saved;
	struct timespec left;
	uint64_t deadline;
	uint32_t entry;
	long n;

	if ((timeout && guise_readable(timeout, sizeof(*timeout))) ||
	    (w->mask && guise_readable(w->mask, KERNEL_SIGSET)))
		return (int)libc_result(-EFAULT);
	if (w->max <= 0 || (timeout && !preload_valid_time(timeout)))
		return (int)libc_result(-EINVAL);
	cancel_begin();
	deadline = preload_deadline(timeout);
	preload_mask_on(&saved, w->mask);
	for (;;) {
		entry = guise_fdmap_get(preload.map, w->ep);
		if (!(entry & GUISE_FD_HALF))
			n = -EBADF;
		else if (entry & GUISE_FD_HOSTED)
			n = wait_for_both(w, entry, timeout);
		else
			n = wait_for_stack(w, entry, timeout);
		if (n != NUDGED)
			break;
		if (deadline != FOREVER) {
			left = preload_time_left(deadline);
			timeout = &left;
		}
	}
	preload_mask_off(&saved);
	cancel_end();
	return (int)libc_result(n);
}

static int wait_on_host(const struct wait *w)
{
	return w->precise ? HOST(epoll_pwait2)(w->ep, w->ev, w->max, w->timeout, w->mask)
			  : HOST(epoll_pwait)(w->ep, w->ev, w->max, w->ms, w->mask);
}

static int wait_epoll(struct wait *w)
{
	struct timespec t = { .tv_sec = w->ms / 1000, .tv_nsec = w->ms % 1000 * 1000000L };
	const struct timespec *timeout = w->timeout;
	uint64_t deadline = 0;
	long n;

	if (!preload.stack)
		return wait_on_host(w);
	if (!w->precise)
		timeout = w->ms < 0 ? NULL : &t;
	while (!(guise_fdmap_get(preload.map, w->ep) & GUISE_FD_HALF)) {
		if (timeout && guise_readable(timeout, sizeof(*timeout)))
			return wait_on_host(w);
		if (!deadline)
			deadline = preload_deadline(timeout);
		__atomic_fetch_add(waiters(host_waiters, w->ep), 1, __ATOMIC_SEQ_CST);
		n = NUDGED;
		if (!(guise_fdmap_get(preload.map, w->ep) & GUISE_FD_HALF))
			n = wait_on_host(w);
		__atomic_fetch_sub(waiters(host_waiters, w->ep), 1, __ATOMIC_SEQ_CST);
		if (n > 0) {
			n = drop_nudges(w->ev, n);
			if (n == NUDGED)
				pass_on(w, host_waiters, w->ep, -1);
		}
		if (n != NUDGED)
			return (int)n;
		if (deadline != FOREVER) {
			t = preload_time_left(deadline);
			timeout = &t;
			w->timeout = timeout;
			w->ms = (int)(t.tv_sec * 1000 + (t.tv_nsec + 999999) / 1000000);
		}
	}
	return wait_inside(w, timeout);
}

HOOK int epoll_wait(int ep, struct epoll_event *ev, int max, int timeout)
{
	return wait_epoll(&(struct wait){ .ep = ep, .ev = ev, .max = max, .ms = timeout });
}

HOOK int epoll_pwait(int ep, struct epoll_event *ev, int max, int timeout, const sigset_t *mask)
{
	return wait_epoll(
		&(struct wait){ .ep = ep, .ev = ev, .max = max, .ms = timeout, .mask = mask });
}

HOOK int epoll_pwait2(int ep, struct epoll_event *ev, int max, const struct timespec *timeout,
		      const sigset_t *mask)
{
	return wait_epoll(&(struct wait){ .ep = ep,
					  .ev = ev,
					  .max = max,
					  .precise = true,
					  .timeout = timeout,
					  .mask = mask });
}
