// SPDX-License-Identifier: GPL-2.0-only
/*
 * Slots. A host thread gets one, and a kernel task with it, at its first call into a
 * stack, and gives both back when it ends (a pthread key's destructor). A thread that uses
 * several stacks has a slot in each; the one used last is found in two loads.
 *
 * The child of a fork has copies of its parent's slots, which it must not use. Handlers of
 * pthread_atfork() see most forks; the preload library reports others
 * (guise_slots_forked()). A child that was made by a system call that neither saw is
 * recognised here, by a word that is 0 in it (guise_own_word()). Its calls give EBADF, and
 * a function that guise_slots_unseen() was given may abandon the parent's stack.
 *
 * A thread may end after another one has left the stack, or at the same time. So the
 * stack's structure stays while a thread still refers to it, and a thread that leaves the
 * stack waits for others that are giving back their slots.
 *
 * While a slot is taken, found or given back no handler of the program may run, because a
 * handler may make calls of its own.
 */
#include "region/slot.h"

#include "host/locks.h"
#include "host/memory.h"
#include "host/signal.h"
#include "host/sys.h"
#include "region/call.h"
#include "region/gate.h"
#include "region/vcpu.h"
#include "served/client.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define GUISE_STACKS_PER_THREAD 8
#define PATIENCE_NS             1000000000ull

_Static_assert(sizeof(struct guise_slot) == 256, "slots are indexed by 256 bytes");
_Static_assert(GUISE_OFF_HEADER + sizeof(struct guise_region) <= GUISE_OFF_SLOTS,
	       "the header runs into the slots");
_Static_assert(GUISE_OFF_SLOTS + GUISE_MAX_SLOTS * sizeof(struct guise_slot) <= GUISE_OFF_TEXT,
	       "the slots run into the text");

struct thread_slots {
	unsigned int n;
	struct guise_here at[GUISE_STACKS_PER_THREAD];
};

__thread struct guise_here guise_here __attribute__((tls_model("initial-exec")));
static __thread struct thread_slots mine __attribute__((tls_model("initial-exec")));
static const uint32_t always = 1;
static const uint32_t *same_process = &always; /* 0 in a child that was not seen */
static void (*unseen_child)(void);
static __thread bool unseen;
static pthread_key_t exit_key;
static bool begun;

void guise_slots_drop(struct guise_stack *s)
{
	if (!__atomic_fetch_sub(&s->known, 1, __ATOMIC_ACQ_REL))
		guise_pages_free(s, sizeof(*s));
}

static bool is_left(const struct guise_stack *s)
{
	return __atomic_load_n(&s->left, __ATOMIC_SEQ_CST);
}

void guise_slots_leave(struct guise_stack *s)
{
	uint32_t n;

	__atomic_store_n(&s->left, 1, __ATOMIC_SEQ_CST);
	while ((n = __atomic_load_n(&s->threads_ending, __ATOMIC_SEQ_CST)))
		guise_futex_wait(&s->threads_ending, n, ~0ull);
}

/* Inside, as is who asks: then it stays so until the thread leaves. */
static bool is_direct(struct guise_stack *s)
{
	while (__atomic_load_n(&s->route, __ATOMIC_SEQ_CST) == GUISE_ROUTE_CHANGES) {
		guise_inside_leave();
		guise_gate_pass(s);
		guise_inside_enter();
	}
	return s->route == GUISE_DIRECT;
}

bool guise_slots_ending(struct guise_stack *s)
{
	__atomic_add_fetch(&s->threads_ending, 1, __ATOMIC_SEQ_CST);
	return !is_left(s);
}

void guise_slots_ended(struct guise_stack *s)
{
	if (!__atomic_sub_fetch(&s->threads_ending, 1, __ATOMIC_SEQ_CST) && is_left(s))
		guise_futex_wake(&s->threads_ending, 1);
	guise_slots_drop(s);
}

static void give_up(struct guise_stack *s, struct guise_slot *slot)
{
	if (guise_slots_ending(s) && is_direct(s)) {
		guise_call_exit(s, slot);
		guise_slot_give(s, slot);
	}
	guise_slots_ended(s);
}

static void thread_ends(void *unused)
{
	(void)unused;
	guise_inside_enter();
	for (unsigned int i = 0; i < mine.n; i++)
		give_up(mine.at[i].stack, mine.at[i].slot);
	memset(&mine, 0, sizeof(mine));
	memset(&guise_here, 0, sizeof(guise_here));
	guise_served_thread_ends();
	guise_inside_leave();
	guise_signals_deliver();
	guise_room_end();
}

void guise_slots_forked(void)
{
	for (struct guise_stack *s = guise_stacks(); s; s = s->next)
		s->known = s->threads_ending = 0;
	memset(&mine, 0, sizeof(mine));
	memset(&guise_here, 0, sizeof(guise_here));
	guise_served_forked();
	*guise_own_word() = 1;
}

void guise_slots_at_end(void)
{
	guise_slots_begin();
	pthread_setspecific(exit_key, &mine);
}

void guise_slots_unseen(void (*child)(void))
{
	unseen_child = child;
}

static struct guise_slot *fail_unseen(void)
{
	unseen = true;
	guise_fail(EBADF, "this process was made by a system call that guise has not seen: it has "
			  "no sockets of its parent");
	if (unseen_child) {
		guise_slots_forked();
		unseen_child();
	}
	return NULL;
}

bool guise_slots_seen(void)
{
	return __builtin_expect(*same_process, 1) || fail_unseen();
}

long guise_slot_error(struct guise_stack *s)
{
	if (unseen) {
		unseen = false;
		return -EBADF;
	}
	if (s->route != GUISE_DIRECT)
		return -ERESTART;
	return s->region->dead ? -ENETDOWN : -EAGAIN;
}

static void forked(void)
{
	guise_slots_forked();
	guise_own_fork_child();
}

static void begin(void)
{
	pthread_key_create(&exit_key, thread_ends);
	pthread_atfork(guise_own_fork_prepare, guise_own_fork_parent, forked);
	same_process = guise_own_word();
}

void guise_slots_begin(void)
{
	guise_own_once(GUISE_LOCK_BEGIN, &begun, begin);
}

/* Searches through the slots end here. To be set before the slot is marked as used. */
static void note_end(struct guise_region *r, uint32_t end)
{
	uint32_t old = __atomic_load_n(&r->slots_end, __ATOMIC_RELAXED);

	while (old < end && !__atomic_compare_exchange_n(&r->slots_end, &old, end, true,
							 __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		;
}

struct guise_slot *guise_slot_take(struct guise_stack *s, unsigned int proc)
{
	unsigned int i;

	for (i = 1; i < GUISE_MAX_SLOTS; i++) {
		struct guise_slot *slot = &s->slots[i];
		uint32_t free_ = 0;

		if (slot->used)
			continue;
		note_end(s->region, i + 1);
		if (!__atomic_compare_exchange_n(&slot->used, &free_, proc + 1, 0, __ATOMIC_ACQ_REL,
						 __ATOMIC_RELAXED))
			continue;
		memset((char *)slot + sizeof(slot->word) + sizeof(slot->used), 0,
		       sizeof(*slot) - sizeof(slot->word) - sizeof(slot->used));
		slot->word = GUISE_WORD_AWAY;
		slot->id = i;
		slot->proc = proc;
		slot->tid = (int32_t)host_sys(SYS_gettid);
		return slot;
	}
	guise_fail(EAGAIN, "the stack has no room for another thread (limit %d)",
		   GUISE_MAX_SLOTS - 1);
	return NULL;
}

bool guise_slots_are_left(const struct guise_stack *s)
{
	uint32_t end = __atomic_load_n(&s->region->slots_end, __ATOMIC_SEQ_CST), own = 0, taken = 0;

	for (uint32_t i = 1; i < end; i++) {
		uint32_t used = __atomic_load_n(&s->slots[i].used, __ATOMIC_RELAXED);

		taken += used != 0;
		own += used == s->proc + 1;
	}
	return own < GUISE_MAX_SLOTS - 1 - taken;
}

struct guise_slot *guise_slot_reserve(struct guise_stack *s, unsigned int proc)
{
	struct guise_slot *slot = guise_slot_take(s, proc);

	if (slot) {
		slot->tid = 0;
		slot->waiting = 1;
	}
	return slot;
}

/* The slot that was made with this process's place; the first thread that makes a call gets it. */
static struct guise_slot *first_slot(struct guise_stack *s)
{
	uint32_t first =
		__atomic_exchange_n(&s->region->procs[s->proc].first_slot, 0, __ATOMIC_ACQ_REL);
	struct guise_slot *slot = first ? &s->slots[first] : NULL;

	if (!slot)
		return NULL;
	slot->tid = (int32_t)host_sys(SYS_gettid);
	slot->waiting = 0;
	__atomic_add_fetch(&s->region->online, 1, __ATOMIC_RELAXED);
	return slot;
}

void guise_slot_give(struct guise_stack *s, struct guise_slot *slot)
{
	(void)s;
	__atomic_store_n(&slot->used, 0, __ATOMIC_RELEASE);
}

struct guise_slot *guise_slot_find(struct guise_stack *s)
{
	unsigned int i;

	for (i = 0; i < mine.n; i++)
		if (mine.at[i].stack == s)
			return mine.at[i].slot;
	return NULL;
}

/* What dead members had is not free before they are buried: waits for that. */
static long attach(struct guise_stack *s, struct guise_slot *slot)
{
	const struct timespec moment = { 0, 2000000 };
	uint64_t deadline = guise_host_now() + PATIENCE_NS;
	long err;

	for (;;) {
		err = guise_call_attach(s, slot);
		if ((err != -EAGAIN && err != -ENOMEM) || guise_host_now() > deadline)
			return err;
		host_sys(SYS_nanosleep, &moment, NULL);
	}
}

/*
 * The child of a fork does not enter the stack before the holder is its tracer: if it were killed
 * inside, the stack would be lost. It does not wait longer for a holder that does not answer.
 */
static void wait_until_seen(struct guise_stack *s)
{
	uint32_t *expected = &s->region->procs[s->proc].expected;
	uint64_t deadline = guise_host_now() + PATIENCE_NS;

	while (__atomic_load_n(expected, __ATOMIC_ACQUIRE) &&
	       !__atomic_load_n(&s->region->dead, __ATOMIC_RELAXED) && guise_host_now() < deadline)
		guise_futex_wait(expected, 1, PATIENCE_NS);
}

/* Takes stacks that have been left out of this thread's list. */
static void forget_left(void)
{
	for (unsigned int i = mine.n; i--;)
		if (is_left(mine.at[i].stack)) {
			guise_slots_drop(mine.at[i].stack);
			mine.at[i] = mine.at[--mine.n];
		}
}

/* A slot for this thread, which has a task already if it was made with the process's place. NULL,
 * too, if the stack is not called directly any more. */
static struct guise_slot *take_own(struct guise_stack *s)
{
	struct guise_slot *slot = NULL;

	guise_own_lock(GUISE_LOCK_SLOTS);
	if (s->route == GUISE_DIRECT || guise_gate_is_mine()) {
		slot = first_slot(s);
		if (!slot)
			slot = guise_slot_take(s, s->proc);
		if (slot)
			slot->inside = (uintptr_t)&guise_signals.inside;
	}
	guise_own_unlock(GUISE_LOCK_SLOTS);
	return slot;
}

static struct guise_slot *find_or_take(struct guise_stack *s)
{
	struct guise_slot *slot = guise_slot_find(s);
	long err;

	if (slot) {
		guise_here.stack = s;
		guise_here.slot = slot;
		return slot;
	}
	guise_slots_begin();
	if (mine.n == GUISE_STACKS_PER_THREAD)
		forget_left();
	if (mine.n == GUISE_STACKS_PER_THREAD) {
		guise_fail(EMFILE, "a thread can use at most %d stacks", GUISE_STACKS_PER_THREAD);
		return NULL;
	}
	slot = take_own(s);
	if (!slot)
		return NULL;
	if (!slot->task) {
		err = attach(s, slot);
		if (err) {
			guise_slot_give(s, slot);
			guise_fail((int)-err, "the stack has no room for another task");
			return NULL;
		}
	}
	__atomic_add_fetch(&s->known, 1, __ATOMIC_RELAXED);
	mine.at[mine.n].stack = s;
	mine.at[mine.n++].slot = slot;
	guise_here.stack = s;
	guise_here.slot = slot;
	pthread_setspecific(exit_key, &mine);
	if (s->entered) {
		s->entered = false;
		guise_call_identify(s, slot);
	}
	return slot;
}

struct guise_slot *guise_slot_attach(struct guise_stack *s)
{
	struct guise_slot *slot;

	if (__builtin_expect(!*same_process, 0))
		return fail_unseen();
	wait_until_seen(s);
	guise_inside_enter();
	slot = find_or_take(s);
	guise_inside_leave();
	guise_signals_deliver();
	return slot;
}

struct guise_slot *guise_slot(struct guise_stack *s)
{
	if (__builtin_expect(guise_here.stack == s && *same_process, 1))
		return guise_here.slot;
	return guise_slot_attach(s);
}

void guise_slot_forget(struct guise_stack *s)
{
	unsigned int i;

	for (i = 0; i < mine.n; i++)
		if (mine.at[i].stack == s) {
			mine.at[i] = mine.at[--mine.n];
			guise_slots_drop(s);
			break;
		}
	if (guise_here.stack == s)
		memset(&guise_here, 0, sizeof(guise_here));
}
