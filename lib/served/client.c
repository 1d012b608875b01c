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
 * Before it sleeps, a thread spins for as long as that has been worth it lately, at most SPIN_NS:
 * the servant's thread is then on another processor and answers within microseconds.
 *
 * Limits: GUISE_LANES threads. A thread looks each GONE_NS whether the servant is still there.
 */
#include "served/client.h"

#include "host/fd.h"
#include "host/memory.h"
#include "host/signal.h"
#include "host/sys.h"
#include "isa/isa.h"
#include "region/slot.h"
#include "region/vcpu.h"
#include "served/parcel.h"

#include "guise/syscall.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#define GONE_NS 1000000000ull
#define SPIN_NS 20000u
#define LOOKS   64 /* between two looks at the clock */

struct mine {
	struct guise_served *of;
	struct guise_lane *lane;
	unsigned int number;
	uint32_t spin; /* ns */
};
static __thread struct mine mine __attribute__((tls_model("initial-exec")));

struct guise_served *guise_served_open(int fd, const int bell[GUISE_LANE_BELLS], int channel)
{
	struct guise_served *v = guise_pages(sizeof(*v));
	long at;

	if (!v) {
		guise_fail(ENOMEM, "no memory");
		return NULL;
	}
	at = host_sys(SYS_mmap, 0, GUISE_RING_SIZE, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (at < 0) {
		guise_fail((int)-at,
			   "join: the memory that a served program shares with its "
			   "servant cannot be mapped (%lu MiB of addresses): %s",
			   (unsigned long)(GUISE_RING_SIZE >> 20), strerrordesc_np((int)-at));
		guise_pages_free(v, sizeof(*v));
		return NULL;
	}
	v->ring = (struct guise_ring *)at;
	if (v->ring->magic != GUISE_RING_MAGIC || v->ring->abi != GUISE_ABI) {
		guise_fail(EPROTO, "join: the stack was made by another version of guise");
		host_sys(SYS_munmap, at, GUISE_RING_SIZE);
		guise_pages_free(v, sizeof(*v));
		return NULL;
	}
	v->ring->address = (uint64_t)at;
	v->channel = channel;
	memcpy(v->bell, bell, sizeof(v->bell));
	host_sys(SYS_close, fd);
	return v;
}

void guise_served_close(struct guise_served *v)
{
	host_sys(SYS_munmap, v->ring, GUISE_RING_SIZE);
	for (int i = 0; i < GUISE_LANE_BELLS; i++)
		host_sys(SYS_close, v->bell[i]);
	if (v->channel >= 0)
		host_sys(SYS_close, v->channel);
	guise_pages_free(v, sizeof(*v));
}

int guise_served_fd(const struct guise_served *v, unsigned int i)
{
	if (i < GUISE_LANE_BELLS)
		return v->bell[i];
	return i == GUISE_LANE_BELLS ? v->channel : -1;
}

void guise_served_thread_ends(void)
{
	if (mine.lane)
		__atomic_fetch_and(&mine.of->used[mine.number / 32], ~(1u << mine.number % 32),
				   __ATOMIC_RELEASE);
	memset(&mine, 0, sizeof(mine));
}

void guise_served_forked(void)
{
	memset(&mine, 0, sizeof(mine));
}

/* The servant looks at its bell. */
static void call_servant(struct guise_ring *ring)
{
	__atomic_add_fetch(&ring->bell, 1, __ATOMIC_SEQ_CST);
	guise_futex_wake(&ring->bell, 1);
}

static bool take_lane(struct guise_served *v)
{
	if (mine.of == v)
		return true;
	guise_served_thread_ends();
	for (unsigned int i = 0; i < GUISE_LANES; i++) {
		uint32_t bit = 1u << i % 32;

		if (__atomic_load_n(&v->used[i / 32], __ATOMIC_RELAXED) & bit ||
		    __atomic_fetch_or(&v->used[i / 32], bit, __ATOMIC_ACQUIRE) & bit)
			continue;
		mine = (struct mine){ v, guise_ring_lane(v->ring, i), i, SPIN_NS };
		guise_slots_at_end();
		if (i >= __atomic_load_n(&v->ring->lanes, __ATOMIC_RELAXED)) {
			uint32_t old = __atomic_load_n(&v->ring->lanes, __ATOMIC_RELAXED);

			while (old <= i &&
			       !__atomic_compare_exchange_n(&v->ring->lanes, &old, i + 1, true,
							    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
				;
			call_servant(v->ring);
		}
		return true;
	}
	return false;
}

char *guise_served_room(struct guise_served *v, uint32_t *lane)
{
	if (!take_lane(v))
		return NULL;
	*lane = mine.number;
	return guise_ring_room(v->ring, mine.number);
}

void guise_served_wake(void)
{
	struct guise_lane *lane = mine.lane;
	uint32_t polls = GUISE_LANE_SLEEPS;

	if (!lane)
		return;
	__atomic_add_fetch(&lane->event, 1, __ATOMIC_SEQ_CST);
	if (__atomic_compare_exchange_n(&lane->polls, &polls, GUISE_LANE_RUNG, false,
					__ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
		const uint64_t one = 1;

		host_sys(SYS_write, mine.of->bell[mine.number % GUISE_LANE_BELLS], &one,
			 sizeof(one));
	}
}

static bool answered(const struct guise_lane *lane, uint32_t number)
{
	return __atomic_load_n(&lane->answered, __ATOMIC_ACQUIRE) == number;
}

/* Whether the servant has ended. */
static bool gone(struct guise_served *v)
{
	struct pollfd p = { .fd = v->channel };
	const struct timespec now = { 0 };

	if (__atomic_load_n(&v->ring->gone, __ATOMIC_ACQUIRE))
		return true;
	return v->channel >= 0 && host_sys(SYS_ppoll, &p, 1, &now, NULL, 0) > 0 &&
	       p.revents & (POLLHUP | POLLERR);
}

static bool spin(struct guise_lane *lane, uint32_t number)
{
	uint64_t until = guise_host_now() + mine.spin;

	do {
		for (int i = 0; i < LOOKS; i++) {
			if (answered(lane, number)) {
				if (mine.spin < SPIN_NS)
					mine.spin *= 2;
				return true;
			}
			guise_isa_relax();
		}
	} while (guise_host_now() < until && !guise_signals_deferred());
	if (mine.spin > SPIN_NS / 32)
		mine.spin /= 2;
	return false;
}

/* Sleeps until there is an answer, a signal or a descriptor, or for GONE_NS. */
static void sleep_on(struct guise_served *v, struct guise_lane *lane, uint32_t number,
		     struct guise_pollset *ps)
{
	uint32_t event = __atomic_load_n(&lane->event, __ATOMIC_SEQ_CST);
	const struct timespec while_ = { .tv_sec = (time_t)(GONE_NS / 1000000000) };
	int bell = v->bell[mine.number % GUISE_LANE_BELLS];
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
static bool exchange(struct guise_served *v, struct guise_lane *lane, struct guise_pollset *ps,
		     uint64_t nr, const uint64_t arg[6])
{
	uint32_t number = lane->asked + 1;
	bool interrupted = false;

	lane->nr = nr;
	memcpy(lane->arg, arg, sizeof(lane->arg));
	__atomic_store_n(&lane->asked, number, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&lane->servant_sleeps, __ATOMIC_SEQ_CST))
		guise_futex_wake(&lane->asked, 1);
	for (;;) {
		if (answered(lane, number))
			return true;
		if (!ps && spin(lane, number))
			return true;
		sleep_on(v, lane, number, interrupted ? NULL : ps);
		if (answered(lane, number))
			return true;
		if (!interrupted && (guise_signals_deferred() || (ps && ps->ready > 0))) {
			__atomic_store_n(&lane->interrupt, number, __ATOMIC_SEQ_CST);
			call_servant(v->ring);
			interrupted = true;
		}
		if (gone(v))
			return answered(lane, number);
	}
}

static long make_call(struct guise_served *v, struct guise_pollset *ps, struct guise_parcel *p,
		      uint64_t nr, const uint64_t arg[6], size_t skip, bool piecemeal)
{
	struct guise_lane *lane = mine.lane;
	uint64_t signals = 0;
	bool restart, there;
	long ret;

	do {
		restart = false;
		guise_inside_enter();
		ret = guise_parcel_pack(p, guise_ring_room(v->ring, mine.number), GUISE_LANE_ROOM,
					nr, arg, skip, piecemeal);
		if (!ret) {
			there = exchange(v, lane, ps, nr, p->arg);
			ret = there ? lane->ret : -ENETDOWN;
			restart = there && lane->restart && ret == -EINTR;
			signals = there ? lane->signals : 0;
			if (there && guise_parcel_unpack(p, ret))
				ret = -EFAULT;
		}
		guise_inside_leave();
		if (guise_signals_deferred()) {
			restart = restart && guise_signals_restart();
			guise_signals_deliver();
		} else if (ps && ps->ready > 0) {
			restart = false;
		}
		for (; signals; signals &= signals - 1)
			guise_signal_raise(__builtin_ctzll(signals) + 1);
	} while (restart);
	return ret;
}

static bool is_transfer(uint64_t nr)
{
	return nr == GUISE_NR_write || nr == GUISE_NR_writev || nr == GUISE_NR_sendto ||
	       nr == GUISE_NR_sendmsg;
}

/* What is no socket, and a socket of a stream, takes its data in pieces. */
static bool is_stream(struct guise_served *v, struct guise_parcel *p, uint64_t fd)
{
	int type = SOCK_STREAM;
	socklen_t length = sizeof(type);
	const uint64_t arg[6] = { fd, SOL_SOCKET, SO_TYPE, (uintptr_t)&type, (uintptr_t)&length };

	return make_call(v, NULL, p, GUISE_NR_getsockopt, arg, 0, false) || type == SOCK_STREAM;
}

/* Memory that members have in the region; here the program's own. */
static long memory(uint64_t nr, const uint64_t arg[6])
{
	if (nr == GUISE_NR_FREE)
		return host_sys(SYS_munmap, arg[0], arg[1]);
	return host_sys(SYS_mmap, 0, arg[0], PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);
}

long guise_served_call(struct guise_served *v, struct guise_pollset *ps, uint64_t nr,
		       const uint64_t arg[6])
{
	struct guise_parcel *p;
	size_t done = 0;
	bool piecemeal;
	long ret;

	if (nr == GUISE_NR_ALLOC || nr == GUISE_NR_FREE)
		return memory(nr, arg);
	if (v->lost)
		return -ENETDOWN;
	if (nr == GUISE_NR_GIVE)
		return guise_served_pass(v, GUISE_JOIN_GIVE, (int)arg[0], (int)arg[2]);
	if (nr == GUISE_NR_TAKE)
		return guise_served_pass(v, GUISE_JOIN_TAKE, (int)arg[1], (int)arg[2]);

	if (!take_lane(v)) {
		guise_fail(EAGAIN, "a served program has %d threads on its stack at most",
			   GUISE_LANES);
		return -EAGAIN;
	}
	p = guise_room_take(sizeof(*p));
	if (!p)
		return -ENOMEM;
	ret = make_call(v, ps, p, nr, arg, 0, false);
	if (ret == -ENOBUFS && p->err == -ENOBUFS && is_transfer(nr)) {
		piecemeal = is_stream(v, p, arg[0]);
		ret = -EMSGSIZE;
		while (piecemeal) {
			ret = make_call(v, ps, p, nr, arg, done, true);
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
