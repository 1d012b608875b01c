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

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#define OUTSIDE_MAX 16 /* as many are named in one run */

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

static struct {
	char program[sizeof(((struct guise_join_outside *)0)->program)];
	uint32_t why;
	uint64_t times; /* how often it was started, and did not fail to start */
} noted[OUTSIDE_MAX];
static unsigned int entries;
static uint64_t unnamed; /* starts of programs for which there is no room */

static void say(const char *path, uint32_t reason)
{
	/* Programs that it starts are on the host's stack, too, only if it gains privileges: then
	 * the loader takes the library out of its environment. */
	const char *children = reason == GUISE_OUTSIDE_PRIVILEGED ? ", and what it starts," : "";
	char program[sizeof(noted[0].program)];

	snprintf(program, sizeof(program), "%s", path);
	guise_plain(program);
	fprintf(stderr,
		"guise: %s %s, so guise is not loaded into it: it%s is on the host's stack (guise "
		"run --mode tun catches whatever is started)\n",
		program, why[reason].sentence, children);
}

static void count(uint64_t *times, bool back)
{
	if (!back)
		++*times;
	else if (*times)
		--*times;
}

void outside_note(const struct guise_join_outside *what)
{
	unsigned int i = 0;

	if (!what->why || what->why >= GUISE_OUTSIDE_WHYS)
		return;
	while (i < entries &&
	       (noted[i].why != what->why || strcmp(noted[i].program, what->program)))
		i++;
	if (i == OUTSIDE_MAX) {
		count(&unnamed, what->back);
		return;
	}
	if (i == entries) {
		if (what->back)
			return;
		snprintf(noted[i].program, sizeof(noted[i].program), "%s", what->program);
		noted[i].why = what->why;
		entries++;
		if (!what->quiet && why[what->why].sentence)
			say(what->program, what->why);
	}
	count(&noted[i].times, what->back);
}

void outside_write(const struct guise_region *r, FILE *out)
{
	const char *separator = "";
	uint64_t off = 0;

	for (unsigned int i = 0; i < entries; i++)
		if (noted[i].why == GUISE_OUTSIDE_OFF)
			off += noted[i].times;
	fprintf(out, "\"programs\":%" PRIu64 ",\"outside\":[", r->count[GUISE_COUNT_PROGRAMS]);
	for (unsigned int i = 0; i < entries; i++) {
		if (!noted[i].times ||
		    (noted[i].why == GUISE_OUTSIDE_OFF && off <= r->count[GUISE_COUNT_BY_ITSELF]))
			continue;
		fprintf(out, "%s{\"program\":", separator);
		json_string(out, noted[i].program);
		fprintf(out, ",\"why\":\"%s\",\"times\":%" PRIu64 "}", why[noted[i].why].word,
			noted[i].times);
		separator = ",";
	}
	fprintf(out, "],\"unnamed\":%" PRIu64, unnamed);
}
