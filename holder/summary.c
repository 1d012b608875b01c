// SPDX-License-Identifier: GPL-2.0-only
/*
 * The summary: what the stack did, from its own counters, read after the last
 * member has left. A connection within the stack counts at both of its ends.
 * Of a lost stack only the region's counters can be read; the others are 0.
 */
#include "holder/summary.h"

#include "holder/isolation.h"
#include "holder/members/outside.h"
#include "holder/members/untraced.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * The files have two lines for a table: names, then values, in one order.
 *	Tcp: RtoAlgorithm RtoMin ...
 *	Tcp: 1 200 ...
 */
uint64_t summary_counter(const char *text, const char *table, const char *field)
{
	size_t prefix = strlen(table), len = strlen(field);
	const char *names = text, *values;

	while (strncmp(names, table, prefix) || names[prefix] != ':') {
		names = strchr(names, '\n');
		if (!names++)
			return 0;
	}
	values = strchr(names, '\n');
	if (!values++ || strncmp(values, table, prefix))
		return 0;
	while ((names = strpbrk(names, " \n")) && *names == ' ') {
		values = strpbrk(values, " \n");
		if (!values || *values != ' ')
			return 0;
		names++;
		values++;
		if (!strncmp(names, field, len) && strchr(" \n", names[len]))
			return strtoull(values, NULL, 10);
	}
	return 0;
}

/* The user, if it is not the stack's, whose programs most members served. */
static void write_user(const struct guise_server *v, FILE *out)
{
	const struct guise_served_by_user *u = v->served_by_user;

	for (size_t i = 0; i < sizeof(v->served_by_user) / sizeof(*u); i++)
		if (u[i].uid != geteuid() && u[i].n > v->joined / 2) {
			fprintf(out, ",\"served_user\":%" PRIu32, u[i].uid);
			return;
		}
	fputs(",\"served_user\":null", out);
}

char *summary(const struct guise_server *v, bool cut, bool guests, unsigned int left)
{
	const struct guise_region *region = v->s->region;
	char cc[64] = "", snmp[8192] = "", *text = NULL;
	uint64_t tx = 0, rx = 0;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	for (int i = 0; i < GUISE_MAX_LINKS; i++) {
		tx += region->links[i].tx_bytes;
		rx += region->links[i].rx_bytes;
	}
	if (guise_sysctl_get(v->s, "net.ipv4.tcp_congestion_control", cc, sizeof(cc)) < 0)
		cc[0] = '\0';
	if (guise_read_file(v->s, "/proc/net/snmp", snmp, sizeof(snmp)) < 0)
		snmp[0] = '\0';
	fprintf(out,
		"{\"cc\":\"%s\",\"connections\":%" PRIu64 ",\"sockets\":%" PRIu64
		",\"escaped\":%" PRIu64 ",\"tx_bytes\":%" PRIu64 ",\"rx_bytes\":%" PRIu64
		",\"retrans_segs\":%" PRIu64 ",\"members\":%" PRIu64 ",\"served\":%" PRIu64
		",\"refused\":%" PRIu64 ",\"untrapped\":%" PRIu64 ",",
		cc,
		summary_counter(snmp, "Tcp", "ActiveOpens") +
			summary_counter(snmp, "Tcp", "PassiveOpens"),
		region->count[GUISE_COUNT_SOCKETS], region->count[GUISE_COUNT_ESCAPED], tx, rx,
		summary_counter(snmp, "Tcp", "RetransSegs"), v->joined, v->served, v->refused,
		region->count[GUISE_COUNT_UNTRAPPED]);
	outside_write(region, out);
	putc(',', out);
	untraced_write(v->untraced, out);
	write_user(v, out);
	putc(',', out);
	isolation_write_left(left, out);
	fprintf(out, ",\"guests\":%s,\"cut\":%s,\"lost\":%s}", guests ? "true" : "false",
		cut ? "true" : "false", region->dead && !cut ? "true" : "false");
	return fclose(out) ? NULL : text;
}
