// SPDX-License-Identifier: GPL-2.0-only
/*
 * The program's side of a served stack (ring.h): each thread takes a lane at its first call, and
 * makes its calls in it, one at a time.
 *
 * A call is packed, handed over, waited for, and unpacked, with handlers of signals held back
 * (host/signal.h): a handler may make calls of its own in the same lane. A held signal
 * interrupts the call as it would interrupt the host's: the servant is asked to end it, and its
 * answer is awaited, for the call may have been done. The rules for repeating it are
 * those of a direct call (region/call.c).
 *
 * Limits: GUISE_LANES threads. A thread looks each GONE_NS whether the servant is still there.
 */
#include "served/client.h"

#include "host/fd.h"
#include "host/memory.h"
#include "host/signal.h"
#include "host/sys.h"
#include "region/call.h"
#include "region/slot.h"
#include "region/vcpu.h"
#include "served/parcel.h"

#include "guise/syscall.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#define NO_MEMORY 125 /* exit status: the tool failed, not the program */
#define GONE_NS   1000000000ull

struct mine {
	struct guise_stack *of;
	struct guise_lane *lane;
	unsigned int number;
	struct guise_lane_spin spin;
};
static __thread struct mine mine __attribute__((tls_model("initial-exec")));

struct guise_served *guise_served_open(int fd)
{
	struct guise_served *v = guise_pages(sizeof(*v));
	int err = v ? guise_ring_map(fd, &v->ring) : -ENOMEM;

	host_sys(SYS_close, fd);
	if (err) {
		guise_fail(-err,
			   "join: the memory that a served program shares with its "
			   "servant cannot be mapped (%lu MiB of addresses): %s",
			   (unsigned long)(GUISE_RING_SIZE >> 20), strerrordesc_np(-err));
		guise_pages_free(v, sizeof(*v));
		return NULL;
	}
	if (v->ring->magic != GUISE_RING_MAGIC || v->ring->abi != GUISE_ABI) {
		guise_fail(EPROTO, "join: the stack was made by another version of guise");
		guise_served_close(v);
		return NULL;
	}
	v->ring->address = (uint64_t)v->ring;
	return v;
}

void guise_served_lose(struct guise_stack *s)
{
	struct guise_served *v = guise_pages(sizeof(*v));
	long at = host_sys(SYS_mmap, 0, GUISE_RING_SIZE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	/* It must not go on with what it had. */
	if (!v || at < 0) {
		host_sys(SYS_exit_group, NO_MEMORY);
		__builtin_unreachable();
	}
	v->ring = (struct guise_ring *)at; /* for its counters */
	v->lost = true;
	s->served = v;
}

void guise_served_close(struct guise_served *v)
{
	if ((uintptr_t)mine.lane - (uintptr_t)v->ring < GUISE_RING_SIZE)
		guise_served_thread_ends();
	guise_ring_unmap(v->ring);
	guise_pages_free(v, sizeof(*v));
}

void guise_served_thread_ends(void)
{
	const struct mine was = mine;

	if (!was.of)
		return;
	memset(&mine, 0, sizeof(mine));
	if (guise_slots_ending(was.of))
		__atomic_fetch_and(&was.of->served->used[was.number / 32], ~(1u << was.number % 32),
				   __ATOMIC_RELEASE);
	guise_slots_ended(was.of);
}

void guise_served_forked(void)
{
	memset(&mine, 0, sizeof(mine));
}

static bool take_lane(struct guise_stack *s)
{
	struct guise_served *v = s->served;

	if (mine.of == s)
		return true;
	guise_served_thread_ends();
	for (unsigned int i = 0; i < GUISE_LANES; i++) {
		uint32_t bit = 1u << i % 32;

		if (__atomic_load_n(&v->used[i / 32], __ATOMIC_RELAXED) & bit ||
		    __atomic_fetch_or(&v->used[i / 32], bit, __ATOMIC_ACQUIRE) & bit)
			continue;
		__atomic_add_fetch(&s->known, 1, __ATOMIC_RELAXED);
		mine = (struct mine){ s, guise_ring_lane(v->ring, i), i, GUISE_LANE_SPIN };
		guise_slots_at_end();
		if (i >= __atomic_load_n(&v->ring->lanes, __ATOMIC_RELAXED)) {
			uint32_t old = __atomic_load_n(&v->ring->lanes, __ATOMIC_RELAXED);

			while (old <= i &&
			       !__atomic_compare_exchange_n(&v->ring->lanes, &old, i + 1, true,
							    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
				;
			guise_ring_call_servant(v->ring);
		}
		return true;
	}
	return false;
}

char *guise_served_room(struct guise_stack *s, uint32_t *lane)
{
	if (!take_lane(s))
		return NULL;
	*lane = mine.number;
	return guise_ring_room(s->served->ring, mine.number);
}

static int bell_of_lane(void)
{
	return mine.of->bell[mine.number % GUISE_LANE_BELLS];
}

void guise_served_wake(void)
{
	if (mine.lane)
		guise_lane_ring(mine.lane, bell_of_lane());
}

static bool answered(const struct guise_lane *lane, uint32_t number)
{
	return __atomic_load_n(&lane->answered, __ATOMIC_ACQUIRE) == number;
}

/* Whether the servant has ended. */
static bool gone(const struct guise_stack *s)
{
	return __atomic_load_n(&s->served->ring->servant, __ATOMIC_ACQUIRE) & FUTEX_OWNER_DIED;
}

/* Waits for the answer to the call that follows `last`, without sleeping. */
static void spin_on(struct guise_served *v, struct guise_lane *lane, uint32_t last)
{
	bool yields;

	__atomic_store_n(&lane->yields, 1, __ATOMIC_SEQ_CST);
	yields = !__atomic_load_n(&v->sandboxed, __ATOMIC_SEQ_CST);
	if (!yields)
		__atomic_store_n(&lane->yields, 0, __ATOMIC_RELEASE);
	guise_lane_spin(&mine.spin, &lane->answered, last, yields);
	__atomic_store_n(&lane->yields, 0, __ATOMIC_RELEASE);
}

/* Sleeps until there is an answer, a signal or a descriptor, or for GONE_NS. */
static void sleep_on(struct guise_lane *lane, uint32_t number, struct guise_pollset *ps)
{
	uint32_t event = __atomic_load_n(&lane->event, __ATOMIC_SEQ_CST);
	const struct timespec while_ = { .tv_sec = (time_t)(GONE_NS / 1000000000) };
	int bell = bell_of_lane();
	struct pollfd *fds;
	uint64_t one;
	long n;

	if (!ps) {
		__atomic_store_n(&lane->program_sleeps, 1, __ATOMIC_SEQ_CST);
		if (!answered(lane, number) && !guise_signals_deferred())
			guise_futex_wait(&lane->event, event, GONE_NS);
		__atomic_store_n(&lane->program_sleeps, 0, __ATOMIC_RELAXED);
		return;
	}
	fds = guise_room_take((ps->n + 1) * sizeof(*fds));
	if (!fds) {
		ps->ready = 0;
		return;
	}
	memcpy(fds, ps->fds, ps->n * sizeof(*fds));
	fds[ps->n] = (struct pollfd){ .fd = bell, .events = POLLIN };
	__atomic_store_n(&lane->polls, GUISE_LANE_SLEEPS, __ATOMIC_SEQ_CST);
	n = 0;
	if (!answered(lane, number) && !guise_signals_deferred())
		n = host_sys(SYS_ppoll, fds, ps->n + 1, &while_, NULL, 0);
	if (__atomic_exchange_n(&lane->polls, GUISE_LANE_AWAKE, __ATOMIC_SEQ_CST) ==
	    GUISE_LANE_RUNG)
		host_sys(SYS_read, bell, &one, sizeof(one));
	ps->ready = 0;
	for (unsigned int i = 0; n > 0 && i < ps->n; i++) {
		ps->fds[i].revents = fds[i].revents;
		ps->ready += fds[i].revents != 0;
	}
	guise_room_give(fds, (ps->n + 1) * sizeof(*fds));
}

/* Hands the packed call over and waits for its answer; false: the servant is gone. */
static bool exchange(struct guise_stack *s, struct guise_pollset *ps, uint64_t nr,
		     const uint64_t arg[6])
{
	struct guise_lane *lane = mine.lane;
	uint32_t last = lane->asked, number = last + 1;
	bool interrupted = false;

	lane->nr = nr;
	memcpy(lane->arg, arg, sizeof(lane->arg));
	__atomic_store_n(&lane->asked, number, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&lane->servant_sleeps, __ATOMIC_SEQ_CST))
		guise_futex_wake(&lane->asked, 1);
	for (;;) {
		if (!ps)
			spin_on(s->served, lane, last);
		if (answered(lane, number))
			return true;
		sleep_on(lane, number, interrupted ? NULL : ps);
		if (answered(lane, number)) {
			guise_lane_slept(&mine.spin);
			return true;
		}
		if (!interrupted && (guise_signals_deferred() || (ps && ps->ready > 0))) {
			__atomic_store_n(&lane->interrupt, number, __ATOMIC_SEQ_CST);
			guise_ring_call_servant(s->served->ring);
			interrupted = true;
		}
		if (gone(s))
			return answered(lane, number);
	}
}

/* Inside: packs the call, and has it made. */
static struct guise_outcome once(struct guise_stack *s, struct guise_pollset *ps,
				 struct guise_parcel *p, uint64_t nr, const uint64_t arg[6],
				 size_t skip, bool piecemeal)
{
	struct guise_lane *lane = mine.lane;
	struct guise_outcome o = { 0 };

	o.ret = guise_parcel_pack(p, guise_ring_room(s->served->ring, mine.number), GUISE_LANE_ROOM,
				  nr, arg, skip, piecemeal);
	if (o.ret)
		return o;
	if (!exchange(s, ps, nr, p->arg)) {
		o.ret = -ENETDOWN;
		return o;
	}
	o = (struct guise_outcome){ lane->ret, lane->signals,
				    lane->restart && lane->ret == -EINTR };
	if (guise_parcel_unpack(p, o.ret))
		o.ret = -EFAULT;
	return o;
}

static long make_call(struct guise_stack *s, struct guise_pollset *ps, struct guise_parcel *p,
		      uint64_t nr, const uint64_t arg[6], size_t skip, bool piecemeal)
{
	struct guise_outcome o;

	do {
		guise_inside_enter();
		o = once(s, ps, p, nr, arg, skip, piecemeal);
		guise_inside_leave();
	} while (guise_call_again(&o, ps));
	return o.ret;
}

static bool is_transfer(uint64_t nr)
{
	return nr == GUISE_NR_write || nr == GUISE_NR_writev || nr == GUISE_NR_sendto ||
	       nr == GUISE_NR_sendmsg;
}

/* What is no socket, and a socket of a stream, takes its data in pieces. */
static bool is_stream(struct guise_stack *s, struct guise_parcel *p, uint64_t fd)
{
	int type = SOCK_STREAM;
	socklen_t length = sizeof(type);
	const uint64_t arg[6] = { fd, SOL_SOCKET, SO_TYPE, (uintptr_t)&type, (uintptr_t)&length };

	return make_call(s, NULL, p, GUISE_NR_getsockopt, arg, 0, false) || type == SOCK_STREAM;
}

/* Memory that members have in the region; here the program's own. */
static long memory(uint64_t nr, const uint64_t arg[6])
{
	void *pages;

	if (nr == GUISE_NR_FREE) {
		guise_pages_free((void *)(uintptr_t)arg[0], arg[1]);
		return 0;
	}
	pages = guise_pages(arg[0]);
	return pages ? (long)pages : -ENOMEM;
}

long guise_served_call(struct guise_stack *s, struct guise_pollset *ps, uint64_t nr,
		       const uint64_t arg[6])
{
	struct guise_parcel *p;
	size_t done = 0;
	bool piecemeal;
	long ret;

	if (nr == GUISE_NR_ALLOC || nr == GUISE_NR_FREE)
		return memory(nr, arg);
	if (s->served->lost)
		return -ENETDOWN;
	if (nr == GUISE_NR_IDENTIFY)
		return guise_served_identify(s);
	if (nr == GUISE_NR_GIVE)
		return guise_served_pass(s, GUISE_JOIN_GIVE, (int)arg[0], (int)arg[2]);
	if (nr == GUISE_NR_TAKE)
		return guise_served_pass(s, GUISE_JOIN_TAKE, (int)arg[1], (int)arg[2]);

	if (!take_lane(s)) {
		guise_fail(EAGAIN, "a served program has %d threads on its stack at most",
			   GUISE_LANES);
		return -EAGAIN;
	}
	p = guise_room_take(sizeof(*p));
	if (!p)
		return -ENOMEM;
	ret = make_call(s, ps, p, nr, arg, 0, false);
	if (ret == -ENOBUFS && p->err == -ENOBUFS && is_transfer(nr)) {
		piecemeal = is_stream(s, p, arg[0]);
		ret = -EMSGSIZE;
		while (piecemeal) {
			ret = make_call(s, ps, p, nr, arg, done, true);
			if (ret > 0)
				done += (size_t)ret;
			if (ret <= 0 || !p->more || (size_t)ret < p->data)
				break;
		}
		if (done)
			ret = (long)done;
	}
	guise_room_give(p, sizeof(*p));
	return ret;
}
