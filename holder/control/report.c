// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reports on a running stack. The first has what the holder itself can read: the
 * region's counters and the list of members. It does not take the virtual CPU, so a stack
 * whose virtual CPU is held by a stopped thread is reported as well. The second asks the
 * stack's kernel.
 *
 * The memory of a stack is what its region takes of the host's: pages of the memfd
 * that were written once. They are not given back before the stack ends.
 */
#include "holder/control/report.h"

#include "holder/carrier/ask.h"

#include "holder/json.h"
#include "holder/members/outside.h"

#include "host/sys.h"
#include "region/stack.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEXT(x)  #x
#define QUOTE(x) TEXT(x)
#define VERSION  QUOTE(GUISE_VERSION)

static void put_links(FILE *out, const struct guise_region *r)
{
	bool first = true;

	fputs("\"links\":[", out);
	for (int i = 0; i < GUISE_MAX_LINKS; i++) {
		const struct guise_link *l = &r->links[i];

		if (!l->used)
			continue;
		fputs(first ? "{\"name\":" : ",{\"name\":", out);
		first = false;
		json_string(out, l->name);
		fputs(",\"kind\":", out);
		json_string(out, l->kind);
		fprintf(out,
			",\"lost\":%s,\"tx_bytes\":%" PRIu64 ",\"rx_bytes\":%" PRIu64
			",\"tx_frames\":%" PRIu64 ",\"rx_frames\":%" PRIu64
			",\"tx_dropped\":%" PRIu64 ",\"rx_malformed\":%" PRIu64 "}",
			l->lost ? "true" : "false", l->tx_bytes, l->rx_bytes, l->tx_frames,
			l->rx_frames, l->tx_dropped, l->rx_malformed);
	}
	putc(']', out);
}

/* The pids are the programs': in place of a servant its program is named. One that is still to
 * come has none. */
static void put_members(FILE *out, const struct guise_server *v)
{
	unsigned int served = 0;
	bool first = true;

	fputs("\"pids\":[", out);
	for (int i = 0; i < GUISE_MAX_PROCS; i++) {
		const struct guise_proc *p = &v->s->region->procs[i];
		int pid = p->serves ? p->serves : p->pid;

		if (v->control[i] < 0)
			continue;
		served += p->serves != 0;
		if (pid <= 0)
			continue;
		fprintf(out, first ? "%d" : ",%d", pid);
		first = false;
	}
	fprintf(out, "],\"served\":%u", served);
}

char *report_of_the_holder(const struct guise_server *v, const struct report_facts *facts)
{
	const struct guise_region *r = v->s->region;
	struct stat st = { 0 };
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out) {
		guise_fail(ENOMEM, "out of memory for a report");
		return NULL;
	}
	fstat(v->s->memfd, &st);
	fputs("{\"name\":", out);
	json_string(out, r->name);
	fputs(",\"version\":\"" VERSION "\"", out);
	fprintf(out,
		",\"holder\":%d,\"age_ms\":%" PRIu64
		",\"ending\":%s,\"lost\":%s,\"members\":%u,\"joined\":%" PRIu64
		",\"memory\":%" PRIu64 ",\"memory_limit\":%" PRIu64 ",\"escaped\":%" PRIu64 ",",
		(int)ask_holder(), facts->age_ms, facts->ending ? "true" : "false",
		r->dead ? "true" : "false", v->members, v->joined, (uint64_t)st.st_blocks * 512,
		r->ram_size, r->count[GUISE_COUNT_ESCAPED]);
	outside_write(r, out);
	putc(',', out);
	put_members(out, v);
	putc(',', out);
	put_links(out, r);
	fprintf(out, ",\"told\":{%s}}", facts->told);
	if (fclose(out)) {
		free(text);
		guise_fail(ENOMEM, "out of memory for a report");
		return NULL;
	}
	return text;
}

long report_sockets(const char *sockstat)
{
	static const char key[] = "sockets: used ";
	const char *line = strstr(sockstat, key);
	char *end;
	long n;

	if (!line)
		return -1;
	n = strtol(line + sizeof(key) - 1, &end, 10);
	return end == line + sizeof(key) - 1 ? -1 : n;
}

bool report_of_the_stack(struct guise_stack *s, char *text, size_t size)
{
	char sockstat[1024];
	long n;

	if (guise_read_file(s, "/proc/net/sockstat", sockstat, sizeof(sockstat)) < 0)
		return false;
	n = report_sockets(sockstat);
	if (n < 0)
		return false;
	snprintf(text, size, "{\"sockets\":%ld}", n);
	return true;
}
