// SPDX-License-Identifier: GPL-2.0-only
/* See report.h. */
#include "report.h"

#include <stdio.h>

static double ratio(const struct result *r)
{
	return r->guise / r->host;
}

static bool floor_held(const struct result *r)
{
	switch (r->b->floor_of) {
	case FLOOR_NONE:
		break;
	case RATIO_AT_MOST:
		return ratio(r) <= r->b->floor;
	case RATIO_AT_LEAST:
		return ratio(r) >= r->b->floor;
	case GUISE_AT_MOST:
		return r->guise <= r->b->floor;
	case GUISE_AT_LEAST:
		return r->guise >= r->b->floor;
	}
	return true;
}

static void print_floor(const struct result *r)
{
	const struct benchmark *b = r->b;

	if (b->floor_of == FLOOR_NONE)
		return;
	printf("  %s %s %g", floor_held(r) ? "within" : "MISSES",
	       b->floor_of == RATIO_AT_LEAST || b->floor_of == GUISE_AT_LEAST ? ">=" : "<=",
	       b->floor);
	if (b->floor_of == GUISE_AT_MOST || b->floor_of == GUISE_AT_LEAST)
		printf(" %s", b->unit);
}

static void print_others(const struct result *r)
{
	for (int i = 0; i < OTHERS; i++)
		if (r->others[i] > 0)
			printf("  %s %.4g", other_names[i], r->others[i]);
		else
			printf("  %s -", other_names[i]);
}

void report_table(const struct result *r, int n)
{
	printf("%-22s %10s %10s  %-7s %6s\n", "", "guise", "host", "unit", "ratio");
	for (int i = 0; i < n; i++) {
		const struct benchmark *b = r[i].b;

		if (!r[i].runs)
			continue;
		printf("%-22s %10.4g ", b->name, r[i].guise);
		if (r[i].no_host[0])
			printf("%10s  %-7s %6s", "-", b->unit, "-");
		else
			printf("%10.4g  %-7s %6.2f", r[i].host, b->unit, ratio(&r[i]));
		print_floor(&r[i]);
		if (b->guest)
			print_others(&r[i]);
		printf("\n");
	}
	for (int i = 0; i < n; i++)
		if (!r[i].runs)
			printf("skipped: %s: %s\n", r[i].b->name, r[i].why);
		else if (r[i].no_host[0] && !r[i].b->no_host)
			printf("skipped: %s on the host: %s\n", r[i].b->name, r[i].no_host);
}

static void print_string(const char *s)
{
	putchar('"');
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			putchar('\\');
		if ((unsigned char)*s < ' ')
			printf("\\u%04x", *s);
		else
			putchar(*s);
	}
	putchar('"');
}

/* ,"others":{"NAME":VALUE,...} */
static void json_others(const struct result *r)
{
	const char *comma = "";

	printf(",\"others\":{");
	for (int i = 0; i < OTHERS; i++) {
		printf("%s\"%s\":", comma, other_names[i]);
		if (r->others[i] > 0)
			printf("%.6g", r->others[i]);
		else
			printf("null");
		comma = ",";
	}
	printf("}");
}

static void json_no_host(const struct result *r)
{
	printf("\"host\":null,\"ratio\":null,");
	if (r->b->no_host)
		return;
	printf("\"no_host\":");
	print_string(r->no_host);
	printf(",");
}

void report_json(const struct result *r, int n)
{
	const char *comma = "";

	printf("{\"version\":1,\"results\":[");
	for (int i = 0; i < n; i++) {
		if (!r[i].runs)
			continue;
		printf("%s\n{\"name\":\"%s\",\"unit\":\"%s\",\"guise\":%.6g,", comma, r[i].b->name,
		       r[i].b->unit, r[i].guise);
		if (r[i].no_host[0])
			json_no_host(&r[i]);
		else
			printf("\"host\":%.6g,\"ratio\":%.4g,", r[i].host, ratio(&r[i]));
		printf("\"runs\":%d", r[i].runs);
		if (r[i].b->guest)
			json_others(&r[i]);
		printf("}");
		comma = ",";
	}
	printf("],\n\"skipped\":[");
	comma = "";
	for (int i = 0; i < n; i++) {
		if (r[i].runs)
			continue;
		printf("%s\n{\"name\":\"%s\",\"reason\":", comma, r[i].b->name);
		print_string(r[i].why);
		printf("}");
		comma = ",";
	}
	printf("]}\n");
}
