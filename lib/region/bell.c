// SPDX-License-Identifier: GPL-2.0-only
/*
 * The bell: one eventfd for all members, which wakes who sleeps in ppoll(2).
 *
 * Promises: who was kicked while he sleeps in ppoll wakes; one who cannot wake, because he
 * is stopped, frozen or in a debugger's hands, costs the others next to nothing.
 *
 * How: it stays rung until all for whom it was rung have seen it (bell_pending). Others wake
 * in vain, look again, and wake in vain, which is short: those for whom it is are awake too.
 * Who has not seen it after GUISE_BELL_LOOKS looks in vain and GUISE_BELL_NS is late: the
 * bell is emptied without him, and rung anew after a pause (bell_again) that grows from
 * GUISE_PAUSE_MIN to GUISE_PAUSE_MAX. It is counted in looks as well as in time, since a
 * busy machine gives those who look as little as him.
 *
 * Limits: one who goes on, and whom no tracer has seen do so, sees the bell up to
 * GUISE_PAUSE_MAX later. In simulated time, which waits for him, nobody is late.
 */
#include "region/bell.h"

#include "host/sys.h"
#include "region/ask.h"

#define NEVER            (~0ull)
#define GUISE_BELL_LOOKS 64u
#define GUISE_BELL_NS    2000000ull
#define GUISE_PAUSE_MIN  4000000ull
#define GUISE_PAUSE_MAX  128000000ull

void guise_ring_bell(struct guise_stack *s)
{
	uint64_t one = 1;

	if (__builtin_expect(s->sandboxed, 0))
		guise_ask_to_ring(s);
	else
		host_sys(SYS_write, s->bell, &one, sizeof(one));
}

static void empty(struct guise_stack *s)
{
	uint64_t count;

	host_sys(SYS_read, s->bell, &count, sizeof(count));
}

void guise_bell_owed(struct guise_region *r, struct guise_slot *slot)
{
	guise_bell_seen(r, slot);
	slot->belled = GUISE_BELLED;
	r->bell_pending++;
}

void guise_bell_seen(struct guise_region *r, struct guise_slot *slot)
{
	if (slot->belled == GUISE_BELLED)
		r->bell_pending--;
	else if (slot->belled && !--r->bell_late)
		r->bell_again = NEVER;
	slot->belled = 0;
}

/* Of all slots to whom the bell is owed; how many there are. */
static uint32_t set_all(struct guise_stack *s, uint32_t belled)
{
	uint32_t n = 0;

	for (unsigned int i = 1; i < GUISE_MAX_SLOTS; i++) {
		struct guise_slot *slot = &s->slots[i];

		if (!__atomic_load_n(&slot->used, __ATOMIC_ACQUIRE) || !slot->belled)
			continue;
		slot->belled = belled;
		n++;
	}
	return n;
}

void guise_bell_mend(struct guise_stack *s)
{
	struct guise_region *r = s->region;

	r->bell_pending = set_all(s, GUISE_BELLED);
	r->bell_late = r->bell_vain = 0;
	r->bell_again = NEVER;
}

static uint64_t now(struct guise_stack *s)
{
	return s->ops->clock(s->ops, 0);
}

/* The bell rang for others than have seen it: true when they are late. */
static bool rang_in_vain(struct guise_stack *s)
{
	struct guise_region *r = s->region;

	if (r->clock_mode != GUISE_CLOCK_REAL)
		return false;
	if (!r->bell_vain++)
		r->bell_since = now(s);
	return r->bell_vain > GUISE_BELL_LOOKS && now(s) - r->bell_since > GUISE_BELL_NS;
}

static void go_on_without(struct guise_stack *s)
{
	struct guise_region *r = s->region;

	if (!r->bell_late) {
		r->bell_pause = r->bell_pause ? r->bell_pause * 2 : GUISE_PAUSE_MIN;
		if (r->bell_pause > GUISE_PAUSE_MAX)
			r->bell_pause = GUISE_PAUSE_MAX;
		r->bell_again = now(s) + r->bell_pause;
	}
	r->bell_late = set_all(s, GUISE_BELL_LATE);
	r->bell_pending = r->bell_vain = 0;
	empty(s);
}

void guise_quiet_bell(struct guise_stack *s, struct guise_slot *slot, bool rang)
{
	struct guise_region *r = s->region;

	guise_bell_seen(r, slot);
	if (rang && !r->bell_pending) {
		empty(s);
		r->bell_vain = 0;
		if (!r->bell_late)
			r->bell_pause = 0;
	} else if (rang && rang_in_vain(s)) {
		go_on_without(s);
	}
	if (__builtin_expect(r->bell_late != 0, 0) && now(s) >= r->bell_again) {
		guise_bell_mend(s);
		guise_ring_bell(s);
	}
}
