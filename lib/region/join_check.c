// SPDX-License-Identifier: GPL-2.0-only
/* Judges messages of the join protocol; neither side trusts the other's. */
#include "region/join.h"
#include "region/bell.h"
#include "region/stack.h"
#include "served/ring.h"

#include <errno.h>
#include <string.h>

int guise_join_check_request(const struct guise_join_request *q, size_t len, int fds)
{
	if (len != sizeof(*q) || q->magic != GUISE_JOIN_MAGIC)
		return guise_fail(EPROTO, "join: not a request (%zu bytes; expected %zu)", len,
				  sizeof(*q));
	if (q->abi != GUISE_ABI)
		return guise_fail(EPROTONOSUPPORT,
				  "join: process %d has a libguise of another "
				  "version (%u) than the holder (%d); restart the stack with one "
				  "version",
				  q->pid, q->abi, GUISE_ABI);
	if (q->kind > GUISE_JOIN_RISE)
		return guise_fail(EPROTO, "join: a request of kind %u", q->kind);
	if (fds != (q->kind <= GUISE_JOIN_HEIR))
		return guise_fail(EPROTO, "join: a request with %d descriptors; expected %d", fds,
				  q->kind <= GUISE_JOIN_HEIR);
	return 0;
}

int guise_join_check_reply(const struct guise_join_reply *r, size_t len, int fds)
{
	unsigned int expected;

	if (len != sizeof(*r) || r->magic != GUISE_JOIN_MAGIC)
		return guise_fail(EPROTO,
				  "join: what the ticket leads to is not a guise holder (an "
				  "answer of %zu bytes; expected %zu)",
				  len, sizeof(*r));
	if (r->abi != GUISE_ABI)
		return guise_fail(EPROTONOSUPPORT,
				  "join: the holder is of another version (%u) than "
				  "this libguise (%d); restart the stack with one version",
				  r->abi, GUISE_ABI);
	if (!memchr(r->error, '\0', sizeof(r->error)))
		return guise_fail(EPROTO, "join: an answer without an end");
	if (r->status)
		return r->status < 0
			       ? 0
			       : guise_fail(EPROTO, "join: an answer with status %d", r->status);
	if (!r->served && (r->bells > GUISE_BELLS || (r->fds && r->bells < GUISE_BELLS_FIRST)))
		return guise_fail(EPROTO, "join: an answer with %u bells", r->bells);
	if (r->served > GUISE_JOIN_DONE)
		return guise_fail(EPROTO, "join: an answer of kind %u", r->served);
	if (r->served) {
		expected = r->served == GUISE_JOIN_RING ? 1 + GUISE_LANE_BELLS
			   : r->served == GUISE_JOIN_PLACE || r->served == GUISE_JOIN_MEMORY ? 1
											     : 0;
		if (r->fds == expected && fds == (int)expected)
			return 0;
		return guise_fail(EPROTO,
				  "join: %d descriptors came with the answer instead of %u; "
				  "is the limit of open files (ulimit -n) reached?",
				  fds, expected);
	}
	/* None come to a place for a process to come. */
	expected = r->fds ? GUISE_JOIN_FIXED_FDS + r->bells : 0;
	for (int i = 0; i < GUISE_MAX_LINKS; i++) {
		if (r->links[i] > GUISE_LINK_FDS)
			return guise_fail(EPROTO, "join: a link with %u descriptors", r->links[i]);
		expected += r->links[i];
	}
	if (r->fds != expected || fds != (int)expected)
		return guise_fail(EPROTO,
				  "join: %d descriptors came with the answer instead of %u; "
				  "is the limit of open files (ulimit -n) reached?",
				  fds, expected);
	if (r->proc >= GUISE_MAX_PROCS || !r->base || r->base % GUISE_HOST_PAGE_MAX)
		return guise_fail(EPROTO, "join: an answer with process %u and base %#lx", r->proc,
				  (unsigned long)r->base);
	return 0;
}
