// SPDX-License-Identifier: GPL-2.0-only
/*
 * The servant's side of a ring (ring.h): a direct member of the stack makes the calls of a program
 * that is not one. It has a thread for each lane, made when the lane is first used, and one that
 * waits at the ring's bell: it makes these threads, and ends calls that the program no longer
 * waits for, by a signal to the thread that makes them.
 *
 * All of the ring may change at any moment, by a program with other rights. So each of its words
 * is read once into memory of the servant's own; from there the number of the call is looked up
 * in the table of calls for served programs (shapes.c), and its arguments go to the port as they
 * are. The port lets the call use memory of the ring only (asm/uaccess.h), so that no pointer is
 * followed here. What a program can do with a ring is what it could do by calls alone.
 *
 * A servant has no more threads on the stack than are left (slot.h): a program that takes all that
 * it gets leaves as many to the others as it has. Its further threads get EAGAIN.
 *
 * Limits: a program that rings in vain makes its servant look through its lanes in vain; both are
 * counted as time of one user's processes.
 */
#include "served/servant.h"

#include "host/fd.h"
#include "host/memory.h"
#include "host/signal.h"
#include "host/sys.h"
#include "region/call.h"
#include "region/slot.h"
#include "region/vcpu.h"
#include "served/mirror.h"
#include "served/shapes.h"

#include <errno.h>
#include <pthread.h>
#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>

#define INTERRUPT   SIGURG
#define THREAD_SIZE (256ul << 10)
#define COUNT_MAX   (1u << 20) /* what one program can add to a summary */

static uint32_t word(const uint32_t *at)
{
	return __atomic_load_n(at, __ATOMIC_SEQ_CST);
}

struct guise_servant *guise_servant_make(struct guise_stack *s)
{
	struct guise_servant *v = guise_pages(sizeof(*v));
	int err = 0;

	if (!v) {
		guise_fail(ENOMEM, "no memory");
		return NULL;
	}
	v->stack = s;
	memset(v->bell, -1, sizeof(v->bell));
	/* Cut short by the program it would end the servant. */
	v->fd = guise_fd_shared("guise-ring", GUISE_RING_SIZE);
	if (v->fd < 0)
		err = v->fd;
	for (int i = 0; i < GUISE_LANE_BELLS && !err; i++) {
		v->bell[i] =
			(int)host_sys(SYS_eventfd2, 0, EFD_SEMAPHORE | EFD_CLOEXEC | EFD_NONBLOCK);
		if (v->bell[i] < 0)
			err = v->bell[i];
	}
	if (!err)
		err = guise_ring_map(v->fd, &v->ring);
	if (err) {
		guise_fail(-err, "no memory to share with a served program: %s",
			   strerrordesc_np(-err));
		guise_servant_free(v);
		return NULL;
	}
	v->ring->magic = GUISE_RING_MAGIC;
	v->ring->abi = GUISE_ABI;
	return v;
}

void guise_servant_free(struct guise_servant *v)
{
	if (v->ring)
		guise_ring_unmap(v->ring);
	for (int i = 0; i < GUISE_LANE_BELLS; i++)
		if (v->bell[i] >= 0)
			host_sys(SYS_close, v->bell[i]);
	if (v->fd >= 0)
		host_sys(SYS_close, v->fd);
	guise_pages_free(v, sizeof(*v));
}

/* The number of the next call, after `done`. */
static uint32_t await_call(struct guise_lane *lane, uint32_t done, struct guise_lane_spin *spin)
{
	if (!guise_lane_spin(spin, &lane->asked, done, true)) {
		__atomic_store_n(&lane->servant_sleeps, 1, __ATOMIC_SEQ_CST);
		while (word(&lane->asked) == done)
			guise_futex_wait(&lane->asked, done, ~0ull);
		__atomic_store_n(&lane->servant_sleeps, 0, __ATOMIC_RELAXED);
		guise_lane_slept(spin);
	}
	return word(&lane->asked);
}

static void make_call(struct guise_servant *v, struct guise_lane *lane, uint32_t number)
{
	struct guise_foreign_call call = {
		.nr = __atomic_load_n(&lane->nr, __ATOMIC_RELAXED),
		.window = (uint64_t)v->ring,
		.window_from = __atomic_load_n(&v->ring->address, __ATOMIC_RELAXED),
		.window_size = GUISE_RING_SIZE,
		.interrupt = &lane->interrupt,
		.signal = INTERRUPT,
		.number = number,
	};

	struct guise_outcome o = { .ret = -ENOSYS };

	for (int i = 0; i < 6; i++)
		call.arg[i] = __atomic_load_n(&lane->arg[i], __ATOMIC_RELAXED);
	guise_mirrors_turn();
	if (!guise_slot_find(v->stack) && !guise_slots_are_left(v->stack))
		o.ret = -EAGAIN;
	else if (guise_shape_allows(call.nr, call.arg))
		o = guise_call_foreign(v->stack, &call);
	guise_mirrors_turn();
	lane->ret = o.ret;
	lane->signals = o.signals;
	lane->restart = o.restart;
}

void guise_servant_count(struct guise_servant *v)
{
	for (unsigned int i = 0; i < GUISE_COUNTS; i++) {
		uint64_t now = __atomic_load_n(&v->ring->count[i], __ATOMIC_RELAXED);
		uint64_t before = __atomic_load_n(&v->counted[i], __ATOMIC_RELAXED);

		now = now < COUNT_MAX ? now : COUNT_MAX;
		while (before < now &&
		       !__atomic_compare_exchange_n(&v->counted[i], &before, now, true,
						    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			;
		if (before < now)
			guise_count(v->stack, i, now - before);
	}
}

static void answer(struct guise_lane *lane, int bell, uint32_t number)
{
	__atomic_store_n(&lane->answered, number, __ATOMIC_SEQ_CST);
	guise_lane_ring(lane, bell);
	if (word(&lane->program_sleeps))
		guise_futex_wake(&lane->event, 1);
}

static void *serve_lane(void *arg)
{
	struct guise_servant_lane *own = arg;
	struct guise_servant *v = own->of;
	unsigned int i = (unsigned int)(own - v->lane);
	struct guise_lane *lane = guise_ring_lane(v->ring, i);
	struct guise_lane_spin spin = GUISE_LANE_SPIN;
	uint32_t number = 0;

	__atomic_store_n(&own->tid, (uint32_t)host_sys(SYS_gettid), __ATOMIC_RELEASE);
	for (;;) {
		number = await_call(lane, number, &spin);
		__atomic_store_n(&own->busy, number, __ATOMIC_SEQ_CST);
		make_call(v, lane, number);
		guise_servant_count(v);
		__atomic_store_n(&own->busy, 0, __ATOMIC_SEQ_CST);
		answer(lane, v->bell[i % GUISE_LANE_BELLS], number);
	}
	return NULL;
}

static void begin_lane(struct guise_servant *v, unsigned int i)
{
	struct guise_servant_lane *own = &v->lane[i];
	pthread_attr_t attr;
	pthread_t thread;

	own->of = v;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, THREAD_SIZE);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	own->begun = !pthread_create(&thread, &attr, serve_lane, own);
	pthread_attr_destroy(&attr);
}

static void interrupt_lane(struct guise_servant *v, unsigned int i)
{
	struct guise_servant_lane *own = &v->lane[i];
	uint32_t busy = __atomic_load_n(&own->busy, __ATOMIC_SEQ_CST);

	if (busy && busy == word(&guise_ring_lane(v->ring, i)->interrupt))
		host_sys(SYS_tgkill, host_sys(SYS_getpid),
			 __atomic_load_n(&own->tid, __ATOMIC_ACQUIRE), INTERRUPT);
}

/* Its arrival is all: a call that waits ends by it. */
static void interrupted(int sig)
{
	(void)sig;
}

/*
 * The host's kernel marks the ring's word when the thread has ended, however it does: so the
 * program needs no system call to see it. The list of robust futexes lies here, where the program
 * cannot change it; libc's own of this thread is not used.
 */
void guise_servant_lives(struct guise_servant *v)
{
	static struct robust_list node;
	static struct robust_list_head head;

	v->ring->servant = (uint32_t)host_sys(SYS_gettid);
	node.next = &head.list;
	head.list.next = &node;
	head.futex_offset = (long)((uintptr_t)&v->ring->servant - (uintptr_t)&node);
	host_sys(SYS_set_robust_list, &head, sizeof(head));
}

void guise_servant_run(struct guise_servant *v)
{
	const struct sigaction act = { .sa_handler = interrupted };

	guise_signal_action(INTERRUPT, &act, NULL);
	for (;;) {
		uint32_t bell = word(&v->ring->bell), lanes = word(&v->ring->lanes);

		if (lanes > GUISE_LANES)
			lanes = GUISE_LANES;
		for (unsigned int i = 0; i < lanes; i++) {
			if (!v->lane[i].begun)
				begin_lane(v, i);
			else
				interrupt_lane(v, i);
		}
		guise_futex_wait(&v->ring->bell, bell, ~0ull);
	}
}
