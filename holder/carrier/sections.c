// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the warden, the members' tracer, asks about the region, which it does not map: which thread
 * owns the virtual CPU; and it says what stands still. When a thread ends that owns the virtual
 * CPU, its section is finished here (region/finish.c), by the registers that come with the
 * question, while the thread waits in its last stop. What lies on its stack is asked for.
 *
 * One thread does this, and nothing else. It must not wait for anything that the warden would
 * have to answer: the warden waits for it.
 */
#include "holder/carrier/sections.h"

#include "holder/warden/wire.h"

#include "host/sys.h"
#include "region/finish.h"
#include "region/pump.h"
#include "region/vcpu.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

struct sections {
	struct guise_stack *s;
	int channel;
	pthread_t thread;
	uint32_t number; /* of the question */
	uint32_t still;  /* waits of threads that were stopped */
};

static bool hear(const struct sections *c, void *message, size_t size)
{
	long n;

	do
		n = host_sys(SYS_recvfrom, c->channel, message, size, MSG_TRUNC, 0, 0);
	while (n == -EINTR || n == -ENOMEM || n == -ENOBUFS);
	return n == (long)size;
}

static bool say(const struct sections *c, const struct warden_reply *r)
{
	return host_sys(SYS_sendto, c->channel, r, sizeof(*r), MSG_NOSIGNAL, 0, 0) ==
	       (long)sizeof(*r);
}

/* Of a thread that will never run again: its warden reads it. */
static ssize_t read_memory(void *context, uint64_t from, void *to, size_t bytes)
{
	const struct sections *c = context;
	struct warden_reply r = { .number = c->number, .address = from };
	struct warden_memory m;

	if (bytes > sizeof(m.data))
		return -1;
	r.bytes = (uint32_t)bytes;
	if (!say(c, &r) || !hear(c, &m, sizeof(m)) || m.bytes < 0 || (size_t)m.bytes > bytes)
		return -1;
	memcpy(to, m.data, (size_t)m.bytes);
	return m.bytes;
}

static bool is(const struct guise_stack *s, const struct guise_slot *slot,
	       const struct warden_thread *t)
{
	return slot->tid == t->inner && s->region->procs[slot->proc].pid == t->process;
}

static struct guise_slot *owner(const struct guise_stack *s)
{
	uint32_t id = guise_lock_owner(s->region);

	/* A thread of this process is nobody that the warden traces. */
	return id && s->slots[id].proc != s->proc ? &s->slots[id] : NULL;
}

static void finish(struct sections *c, const struct warden_question *q)
{
	struct guise_slot *slot = owner(c->s);
	struct guise_killed k = {
		.slot = slot, .regs = q->regs, .read = read_memory, .context = c
	};

	if (slot && is(c->s, slot, &q->thread) && !guise_finish(c->s, &k))
		guise_declare_dead(c->s);
}

/* It may wait in the stack, as a leader for example, where others rely on it. */
static void mark(struct sections *c, const struct warden_thread *t, uint32_t still)
{
	struct guise_stack *s = c->s;

	for (unsigned int i = 1; i < guise_slots_end(s); i++) {
		struct guise_slot *slot = &s->slots[i];

		if (!__atomic_load_n(&slot->used, __ATOMIC_ACQUIRE) || !is(s, slot, t))
			continue;
		if (still == GUISE_STILL)
			c->still++;
		else if (__atomic_load_n(&slot->still, __ATOMIC_RELAXED) != GUISE_STILL)
			continue;
		else if (c->still)
			c->still--;
		__atomic_store_n(&slot->still, still, __ATOMIC_RELAXED);
	}
	guise_pump_wake(s);
}

static void *answer(void *arg)
{
	struct sections *c = arg;
	struct warden_question q;

	while (hear(c, &q, sizeof(q))) {
		struct warden_reply r = { .number = q.number };
		const struct guise_slot *slot;

		c->number = q.number;
		switch ((enum warden_question_what)q.what) {
		case WARDEN_OWNER:
			slot = owner(c->s);
			if (slot) {
				r.owner.process = c->s->region->procs[slot->proc].pid;
				r.owner.inner = (int32_t)slot->tid;
			}
			break;
		case WARDEN_ENDS:
			finish(c, &q);
			break;
		case WARDEN_STILL:
			mark(c, &q.thread, GUISE_STILL);
			break;
		case WARDEN_CONTINUED:
			mark(c, &q.thread, GUISE_CONTINUED);
			break;
		}
		r.still = c->still;
		if (!say(c, &r))
			break;
	}
	return NULL;
}

struct sections *sections_start(struct guise_stack *s, int questions)
{
	struct sections *c = calloc(1, sizeof(*c));
	int err = c ? 0 : ENOMEM;

	if (c) {
		c->s = s;
		c->channel = questions;
		err = pthread_create(&c->thread, NULL, answer, c);
	}
	if (err) {
		guise_fail(err, "the members cannot be traced: no thread: %s", strerror(err));
		free(c);
		return NULL;
	}
	return c;
}

void sections_stop(struct sections *c)
{
	if (!c)
		return;
	host_sys(SYS_shutdown, c->channel, SHUT_RDWR);
	pthread_join(c->thread, NULL);
	free(c);
}
