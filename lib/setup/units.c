// SPDX-License-Identifier: GPL-2.0-only
#include "setup/units.h"
#include "region/stack.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct unit {
	const char *name;
	double factor;
};

static const struct unit time_units[] = {
	{ "ns", 1 },      { "nsec", 1 },   { "nsecs", 1 },  { "us", 1e3 },    { "usec", 1e3 },
	{ "usecs", 1e3 }, { "ms", 1e6 },   { "msec", 1e6 }, { "msecs", 1e6 }, { "s", 1e9 },
	{ "sec", 1e9 },   { "secs", 1e9 }, { NULL, 0 },
};

static const struct unit rate_units[] = {
	{ "", 0.125 },
	{ "bit", 0.125 },
	{ "kbit", 125 },
	{ "mbit", 125e3 },
	{ "gbit", 125e6 },
	{ "tbit", 125e9 },
	{ "kibit", 128 },
	{ "mibit", 131072 },
	{ "gibit", 134217728 },
	{ "tibit", 137438953472.0 },
	{ "bps", 1 },
	{ "kbps", 1e3 },
	{ "mbps", 1e6 },
	{ "gbps", 1e9 },
	{ "tbps", 1e12 },
	{ "kibps", 1024 },
	{ "mibps", 1048576 },
	{ "gibps", 1073741824 },
	{ "tibps", 1099511627776.0 },
	{ NULL, 0 },
};

static const struct unit size_units[] = {
	{ "", 1 },        { "b", 1 },         { "k", 1024 },         { "kb", 1024 },
	{ "m", 1048576 }, { "mb", 1048576 },  { "g", 1073741824 },   { "gb", 1073741824 },
	{ "kbit", 128 },  { "mbit", 131072 }, { "gbit", 134217728 }, { NULL, 0 },
};

static const struct unit percent_units[] = {
	{ "", 1 },
	{ "%", 1 },
	{ NULL, 0 },
};

/*
 * strtod() would follow the locale, and take "nan" and "0x1p3". Digits beyond
 * what a double holds are lost, not refused.
 */
static const char *decimal(const char *p, double *value)
{
	double v = 0, place = 1;
	int digits = 0;

	for (; isdigit((unsigned char)*p); p++, digits++)
		v = v * 10 + (*p - '0');
	if (*p == '.')
		for (p++; isdigit((unsigned char)*p); p++, digits++) {
			place /= 10;
			v += (*p - '0') * place;
		}
	*value = v;
	return digits ? p : NULL;
}

static int scale(const char *word, const struct unit *units, double *value)
{
	const char *suffix = decimal(word, value);

	if (!suffix)
		return -EINVAL;
	for (; units->name; units++)
		if (!strcasecmp(units->name, suffix)) {
			*value *= units->factor;
			/* 2^63: all our attributes hold it, and a cast is defined. */
			return *value < 9223372036854775808.0 ? 0 : -ERANGE;
		}
	/* Nothing needs no unit. */
	return *value == 0 && !*suffix ? 0 : -EINVAL;
}

int guise_unit_time(const char *word, const char *what, uint64_t *ns)
{
	double v;

	if (scale(word, time_units, &v))
		return guise_fail(EINVAL,
				  "%s: \"%s\" is no time; expected such as 20ms (units: ns, "
				  "us, ms, s)",
				  what, word);
	*ns = (uint64_t)(v + 0.5);
	return 0;
}

int guise_unit_percent(const char *word, const char *what, uint64_t *scaled)
{
	double v;

	if (scale(word, percent_units, &v) || v > 100)
		return guise_fail(EINVAL,
				  "%s: \"%s\" is no share; expected 0%% to 100%%, such as "
				  "0.2%%",
				  what, word);
	*scaled = (uint64_t)(v / 100 * UINT32_MAX + 0.5);
	return 0;
}

int guise_unit_rate(const char *word, const char *what, uint64_t *bytes)
{
	double v;

	if (scale(word, rate_units, &v))
		return guise_fail(EINVAL,
				  "%s: \"%s\" is no rate; expected such as 100mbit (units: "
				  "bit, kbit, mbit, gbit, tbit; bps and so on for bytes)",
				  what, word);
	*bytes = (uint64_t)(v + 0.5);
	return 0;
}

int guise_unit_size(const char *word, const char *what, uint64_t max, uint64_t *bytes)
{
	double v;

	if (scale(word, size_units, &v))
		return guise_fail(EINVAL,
				  "%s: \"%s\" is no size; expected such as 32kb (units: b, kb, "
				  "mb, gb, kbit, mbit, gbit)",
				  what, word);
	*bytes = (uint64_t)(v + 0.5);
	if (*bytes > max)
		return guise_fail(EINVAL, "%s: %s is more than the largest possible, %llu bytes",
				  what, word, (unsigned long long)max);
	return 0;
}

static int integer(const char *word, int base, uint64_t max, uint64_t *value)
{
	char *end;

	if (!isdigit((unsigned char)*word))
		return -EINVAL;
	errno = 0;
	*value = strtoull(word, &end, base);
	return errno || *end || *value > max ? -EINVAL : 0;
}

int guise_unit_count(const char *word, const char *what, uint64_t *count)
{
	if (integer(word, 10, UINT32_MAX, count))
		return guise_fail(EINVAL, "%s: \"%s\" is no number from 0 to %u", what, word,
				  UINT32_MAX);
	return 0;
}

int guise_unit_seed(const char *word, const char *what, uint64_t *seed)
{
	if (integer(word, 0, UINT64_MAX, seed))
		return guise_fail(EINVAL, "%s: \"%s\" is no number of 64 bits", what, word);
	return 0;
}
