// SPDX-License-Identifier: GPL-2.0-only
/*
 * Programs that are on the host's stack: reported when they start, and counted at the end.
 *
 * Of programs with GUISE_PRELOAD=off it is known how many have joined by themselves, and not
 * which. So if all of them have joined none is listed, otherwise all are.
 */
#include "holder/members/outside.h"

#include "holder/json.h"

#include "host/plain.h"
#include "host/sys.h"
#include "region/vcpu.h"

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>

static const struct {
	const char *word, *sentence;
} why[GUISE_OUTSIDE_WHYS] = {
	[GUISE_OUTSIDE_STATIC] = { "static", "is statically linked" },
	[GUISE_OUTSIDE_GO] = { "go", "is written in Go" },
	[GUISE_OUTSIDE_PRIVILEGED] = { "privileged", "gains privileges when it starts" },
	[GUISE_OUTSIDE_MACHINE] = { "machine", "is for another processor" },
	[GUISE_OUTSIDE_UNREADABLE] = { "unreadable", "cannot read guise's library from where it is "
						     "started (its root folder, its user)" },
	[GUISE_OUTSIDE_OFF] = { "off", NULL },
};

/* Whether entry i is the same as an earlier one: two processes may have noted it at once. */
static bool is_repeated(const struct guise_region *r, unsigned int i)
{
	for (unsigned int k = 0; k < i; k++)
		if (r->outside[k].state == GUISE_OUTSIDE_SAID &&
		    r->outside[k].why == r->outside[i].why &&
		    !strcmp(r->outside[k].program, r->outside[i].program))
			return true;
	return false;
}

void outside_tell(struct guise_region *r)
{
	/* Programs that it starts are on the host's stack, too, only if it gains privileges: then
	 * the loader takes the library out of its environment. */
	const char *children;
	char program[sizeof(r->outside[0].program) + 1];

	for (unsigned int i = 0; i < GUISE_MAX_OUTSIDE; i++) {
		struct guise_outside *o = &r->outside[i];

		if (__atomic_load_n(&o->state, __ATOMIC_ACQUIRE) != GUISE_OUTSIDE_NEW)
			continue;
		snprintf(program, sizeof(program), "%.*s", (int)sizeof(o->program), o->program);
		guise_plain(program);
		children = o->why == GUISE_OUTSIDE_PRIVILEGED ? ", and what it starts," : "";
		if (!is_repeated(r, i) && o->why < GUISE_OUTSIDE_WHYS && why[o->why].sentence)
			fprintf(stderr,
				"guise: %s %s, so guise is not loaded into it: it%s is on the "
				"host's stack (guise run --mode tun catches whatever is started)\n",
				program, why[o->why].sentence, children);
		__atomic_store_n(&o->state, GUISE_OUTSIDE_SAID, __ATOMIC_RELEASE);
		guise_futex_wake(&o->state, INT_MAX);
	}
}

/* How often that program was started, and did not fail to start. */
static uint64_t times(const struct guise_region *r, unsigned int i)
{
	uint64_t n = 0;

	for (unsigned int k = i; k < GUISE_MAX_OUTSIDE; k++)
		if (r->outside[k].why == r->outside[i].why &&
		    !strcmp(r->outside[k].program, r->outside[i].program))
			n += r->outside[k].times;
	return n;
}

static bool is_listed(const struct guise_region *r, unsigned int i, bool off)
{
	const struct guise_outside *o = &r->outside[i];

	return (o->state == GUISE_OUTSIDE_NEW || o->state == GUISE_OUTSIDE_SAID) && o->why &&
	       o->why < GUISE_OUTSIDE_WHYS && (off || o->why != GUISE_OUTSIDE_OFF) &&
	       !is_repeated(r, i) && times(r, i);
}

void outside_write(const struct guise_region *r, FILE *out)
{
	const char *separator = "";
	uint64_t off = 0;

	for (unsigned int i = 0; i < GUISE_MAX_OUTSIDE; i++)
		if (r->outside[i].why == GUISE_OUTSIDE_OFF)
			off += r->outside[i].times;
	fprintf(out, "\"programs\":%" PRIu64 ",\"outside\":[", r->count[GUISE_COUNT_PROGRAMS]);
	for (unsigned int i = 0; i < GUISE_MAX_OUTSIDE; i++) {
		if (!is_listed(r, i, off > r->count[GUISE_COUNT_BY_ITSELF]))
			continue;
		fprintf(out, "%s{\"program\":", separator);
		json_string(out, r->outside[i].program);
		fprintf(out, ",\"why\":\"%s\",\"times\":%" PRIu64 "}", why[r->outside[i].why].word,
			times(r, i));
		separator = ",";
	}
	fprintf(out, "],\"unnamed\":%" PRIu32, r->unnamed);
}
