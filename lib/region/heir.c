// SPDX-License-Identifier: GPL-2.0-only
/* See heir.h. */
#include "region/heir.h"

#include "region/ask.h"

#include "guise/syscall.h"
#include "host/message.h"
#include "host/sys.h"
#include "region/join.h"
#include "region/slot.h"
#include "region/vcpu.h"
#include "served/client.h"

#include <errno.h>
#include <string.h>
#include <time.h>

/* How long a place is waited for, when all are taken or the memory is. */
#define PATIENCE_NS 3000000000ull
#define MOMENT_NS   2000000

static int prepare(struct guise_stack *s, int ticket, struct guise_heir *heir,
		   struct guise_mark *marks, unsigned int n, int keep)
{
	struct guise_slot *first;
	struct guise_join_reply r;
	struct guise_message m;
	long ret;

	if (s->served)
		return guise_served_prepare(s, ticket, heir, marks, n, keep);
	heir->end = guise_join_ask(ticket, GUISE_JOIN_HEIR, &r, &m);
	if (heir->end < 0)
		return heir->end;
	heir->proc = r.proc;
	first = guise_slot_reserve(s, r.proc);
	if (!first) {
		guise_heir_drop(heir);
		return -EAGAIN;
	}
	do { /* a signal may be pending in the stack */
		ret = guise_call(s, GUISE_NR_FORK, r.proc, (long)marks, n, keep, first->id, 0);
	} while (ret == -EINTR);
	if (!ret)
		return 0;
	guise_slot_give(s, first);
	guise_heir_drop(heir);
	return guise_fail((int)-ret, "the stack cannot take another process: %s",
			  strerrordesc_np((int)-ret));
}

/* A program that makes children faster than dead ones are buried has to wait for the burials. */
int guise_heir_prepare(struct guise_stack *s, int ticket, struct guise_heir *heir,
		       struct guise_mark *marks, unsigned int n, int keep)
{
	const struct timespec moment = { 0, MOMENT_NS };
	uint64_t deadline = guise_host_now() + PATIENCE_NS;
	int err;

	for (;;) {
		err = prepare(s, ticket, heir, marks, n, keep);
		if ((err != -EAGAIN && err != -ENOMEM) || guise_host_now() > deadline)
			return err;
		host_sys(SYS_nanosleep, &moment, NULL);
	}
}

int guise_heir_error(int err)
{
	if (!err || err == -ENETDOWN)
		return 0;
	return err == -ENOMEM ? err : -EAGAIN;
}

void guise_heir_drop(struct guise_heir *heir)
{
	if (heir->end >= 0)
		host_sys(SYS_close, heir->end);
	heir->end = -1;
}

void guise_heir_become(struct guise_stack *s, struct guise_heir *heir)
{
	if (s->served) {
		guise_slots_forked();
		guise_served_become(s, heir);
		return;
	}
	host_sys(SYS_close, s->control);
	s->control = heir->end;
	s->proc = heir->proc;
	s->ending = 0;
	s->end_slot = NULL;
	s->users = GUISE_USERS_UNKNOWN;
	heir->end = -1;
	guise_slots_forked();
	guise_allow_tracer_forked(s);
	guise_join_greet(s->control);
}
