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
 * Limits: a program that rings in vain makes its servant look through its lanes in vain; both are
 * counted as time of one user's processes.
 */
#include "served/servant.h"

#include "host/fd.h"
#include "host/memory.h"
#include "host/signal.h"
#include "host/sys.h"
#include "isa/isa.h"
#include "region/call.h"
#include "region/vcpu.h"
#include "served/parcel.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#define INTERRUPT   SIGURG
#define THREAD_SIZE (256ul << 10)
#define SPIN_NS     20000u
#define LOOKS       64

static uint32_t word(const uint32_t *at)
{
	return __atomic_load_n(at, __ATOMIC_SEQ_CST);
}

struct guise_servant *guise_servant_make(struct guise_stack *s)
{
	struct guise_servant *v = guise_pages(sizeof(*v));
	long at, fd;

	if (!v) {
		guise_fail(ENOMEM, "no memory");
		return NULL;
	}
	v->stack = s;
	memset(v->bell, -1, sizeof(v->bell));
	/* Cut short by the program it would end the servant. */
	fd = v->fd = guise_fd_shared("guise-ring", GUISE_RING_SIZE);
	for (int i = 0; i < GUISE_LANE_BELLS && fd >= 0; i++)
		fd = v->bell[i] =
			(int)host_sys(SYS_eventfd2, 0, EFD_SEMAPHORE | EFD_CLOEXEC | EFD_NONBLOCK);
	at = fd < 0 ? fd
		    : host_sys(SYS_mmap, 0, GUISE_RING_SIZE, PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_NORESERVE, v->fd, 0);
	if (at < 0) {
		guise_fail((int)-at, "no memory to share with a served program: %s",
			   strerrordesc_np((int)-at));
		guise_servant_free(v);
		return NULL;
	}
	v->ring = (struct guise_ring *)at;
	v->ring->magic = GUISE_RING_MAGIC;
	v->ring->abi = GUISE_ABI;
	return v;
}

void guise_servant_free(struct guise_servant *v)
{
	if (v->ring)
		host_sys(SYS_munmap, v->ring, GUISE_RING_SIZE);
	for (int i = 0; i < GUISE_LANE_BELLS; i++)
		if (v->bell[i] >= 0)
			host_sys(SYS_close, v->bell[i]);
	if (v->fd >= 0)
		host_sys(SYS_close, v->fd);
	guise_pages_free(v, sizeof(*v));
}

/* The next call's number; false: the servant is to end. */
static bool await_call(struct guise_servant *v, struct guise_lane *lane, uint32_t done,
		       uint32_t *number, uint32_t *spin)
{
	uint64_t until = guise_host_now() + *spin;

	do {
		for (int i = 0; i < LOOKS; i++) {
			*number = word(&lane->asked);
			if (*number != done) {
				if (*spin < SPIN_NS)
					*spin *= 2;
				return true;
			}
			guise_isa_relax();
		}
	} while (guise_host_now() < until);
	if (*spin > SPIN_NS / 32)
		*spin /= 2;
	for (;;) {
		__atomic_store_n(&lane->servant_sleeps, 1, __ATOMIC_SEQ_CST);
		*number = word(&lane->asked);
		if (*number == done && !word(&v->stop))
			guise_futex_wait(&lane->asked, done, ~0ull);
		__atomic_store_n(&lane->servant_sleeps, 0, __ATOMIC_RELAXED);
		if (word(&v->stop))
			return false;
		*number = word(&lane->asked);
		if (*number != done)
			return true;
	}
}

static void make_call(struct guise_servant *v, struct guise_lane *lane, uint32_t number)
{
	struct guise_foreign_call call = {
		.nr = __atomic_load_n(&lane->nr, __ATOMIC_RELAXED),
		.window = (uint64_t)v->ring,
		.window_from = __atomic_load_n(&v->ring->address, __ATOMIC_RELAXED),
		.window_size = GUISE_RING_SIZE,
		.interrupt = &lane->interrupt,
		.stop = &v->stop,
		.signal = INTERRUPT,
		.number = number,
	};

	for (int i = 0; i < 6; i++)
		call.arg[i] = __atomic_load_n(&lane->arg[i], __ATOMIC_RELAXED);
	if (guise_parcel_knows(call.nr))
		guise_call_foreign(v->stack, &call);
	else
		call.ret = -ENOSYS;
	lane->ret = call.ret;
	lane->signals = call.signals;
	lane->restart = call.restart;
}

static void answer(struct guise_servant *v, unsigned int i, struct guise_lane *lane,
		   uint32_t number)
{
	const uint64_t one = 1;
	uint32_t polls = GUISE_LANE_SLEEPS;

	__atomic_store_n(&lane->answered, number, __ATOMIC_SEQ_CST);
	__atomic_add_fetch(&lane->event, 1, __ATOMIC_SEQ_CST);
	if (word(&lane->program_sleeps))
		guise_futex_wake(&lane->event, 1);
	if (__atomic_compare_exchange_n(&lane->polls, &polls, GUISE_LANE_RUNG, false,
					__ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		host_sys(SYS_write, v->bell[i % GUISE_LANE_BELLS], &one, sizeof(one));
}

static void *serve_lane(void *arg)
{
	struct guise_servant_lane *own = arg;
	struct guise_servant *v = own->of;
	unsigned int i = (unsigned int)(own - v->lane);
	struct guise_lane *lane = guise_ring_lane(v->ring, i);
	uint32_t done = 0, number, spin = SPIN_NS;

	__atomic_store_n(&own->tid, (uint32_t)host_sys(SYS_gettid), __ATOMIC_RELEASE);
	while (await_call(v, lane, done, &number, &spin)) {
		__atomic_store_n(&own->busy, number, __ATOMIC_SEQ_CST);
		make_call(v, lane, number);
		__atomic_store_n(&own->busy, 0, __ATOMIC_SEQ_CST);
		answer(v, i, lane, number);
		done = number;
	}
	return NULL;
}

static void begin_lane(struct guise_servant *v, unsigned int i)
{
	struct guise_servant_lane *own = &v->lane[i];
	pthread_attr_t attr;

	own->of = v;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, THREAD_SIZE);
	own->begun = !pthread_create(&own->thread, &attr, serve_lane, own);
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

void guise_servant_run(struct guise_servant *v)
{
	const struct sigaction act = { .sa_handler = interrupted };

	guise_signal_action(INTERRUPT, &act, NULL);
	while (!word(&v->stop)) {
		uint32_t bell = word(&v->ring->bell), lanes = word(&v->ring->lanes);

		if (lanes > GUISE_LANES)
			lanes = GUISE_LANES;
		for (unsigned int i = 0; i < lanes; i++) {
			if (!v->lane[i].begun)
				begin_lane(v, i);
			else
				interrupt_lane(v, i);
		}
		if (!word(&v->stop))
			guise_futex_wait(&v->ring->bell, bell, ~0ull);
	}
	__atomic_store_n(&v->ring->gone, 1, __ATOMIC_SEQ_CST);
	for (unsigned int i = 0; i < GUISE_LANES; i++) {
		struct guise_lane *lane = guise_ring_lane(v->ring, i);

		if (!v->lane[i].begun)
			continue;
		host_sys(SYS_tgkill, host_sys(SYS_getpid),
			 __atomic_load_n(&v->lane[i].tid, __ATOMIC_ACQUIRE), INTERRUPT);
		__atomic_add_fetch(&lane->asked, 1, __ATOMIC_SEQ_CST);
		guise_futex_wake(&lane->asked, 1);
		guise_futex_wake(&lane->event, 1);
		pthread_join(v->lane[i].thread, NULL);
	}
}

void guise_servant_stop(struct guise_servant *v)
{
	__atomic_store_n(&v->stop, 1, __ATOMIC_SEQ_CST);
	__atomic_add_fetch(&v->ring->bell, 1, __ATOMIC_SEQ_CST);
	guise_futex_wake(&v->ring->bell, 1);
}
