// SPDX-License-Identifier: GPL-2.0-only
/*
 * The fuzzer of what programs ask name servers (holder/relay/names.c).
 *
 *	names_fuzz [--turns N | --seconds S] [--seed N]
 *
 * A turn makes a query, right or nearly so, damages it, and has it answered on a
 * heap buffer of its exact size, so that the address sanitizer sees every byte
 * that is touched beyond. An answer repeats the question, is one of a name that
 * is known, and its records end where it does.
 */
#include "turns.h"

#include "../holder/relay/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUERY_MOST 600

static const char *const labels[] = { "host", "guise", "internal", "gateway", "HOST", "x", "" };
static const uint16_t types[] = { 1, 28, 255, 15, 41, 0, 65535 };

static struct names names;
static uint64_t n_queries, n_answered, n_records;

static void begin(void)
{
	turns_need(!names_add(&names, "host.guise.internal", "169.254.77.1") &&
			   !names_add(&names, "host.guise.internal", "fd67:7569:7365::1") &&
			   !names_add(&names, "gateway.guise.internal", "10.213.0.1"),
		   "names");
}

static size_t put16(uint8_t *b, size_t n, uint32_t value)
{
	b[n] = (uint8_t)(value >> 8);
	b[n + 1] = (uint8_t)value;
	return n + 2;
}

static size_t put_label(uint8_t *b, size_t n, const char *label)
{
	size_t length = strlen(label);

	b[n] = (uint8_t)length;
	for (size_t i = 0; i < length; i++)
		b[n + 1 + i] = (uint8_t)label[i];
	return n + 1 + length;
}

static size_t make(struct rng *r, uint8_t *b)
{
	size_t n = 12;

	memset(b, 0, 12);
	put16(b, 0, rng_below(r, 65536));
	b[2] = (uint8_t)rng_below(r, 2);
	b[5] = 1;
	if (rng_one_in(r, 4)) {
		for (uint32_t k = rng_below(r, 40); k; k--)
			n = put_label(b, n, rng_pick(r, labels));
	} else {
		n = put_label(b, n, rng_one_in(r, 2) ? "host" : "gateway");
		n = put_label(b, n, "guise");
		n = put_label(b, n, "internal");
	}
	b[n++] = 0;
	n = put16(b, n, rng_pick(r, types));
	n = put16(b, n, rng_one_in(r, 8) ? rng_below(r, 65536) : 1);
	if (rng_one_in(r, 2)) {
		b[11] = 1;
		memcpy(b + n, "\0\0\x29\4\xd0\0\0\0\0\0\0", 11);
		n += 11;
	}
	for (uint32_t k = rng_one_in(r, 2) ? rng_below(r, 4) : 0; k; k--)
		b[rng_below(r, (uint32_t)n)] = (uint8_t)rng_below(r, 256);
	if (rng_one_in(r, 4))
		n = rng_below(r, (uint32_t)n + 1);
	return n;
}

static unsigned int get16(const uint8_t *b)
{
	return (unsigned int)b[0] << 8 | b[1];
}

/* The end of the name at b[at]. */
static size_t skip_name(const uint8_t *b, size_t at, size_t n)
{
	while (at < n && b[at] && b[at] < 0xc0)
		at += 1 + b[at];
	return at + (at < n && b[at] ? 2 : 1);
}

static void judge(const uint8_t *query, size_t length, const uint8_t *a, size_t n)
{
	size_t question = skip_name(a, 12, n) + 4, at = question;
	unsigned int records = get16(a + 6) + get16(a + 10);

	if (n > NAMES_ANSWER || n < question || question > length)
		turns_fail("an answer of this length", (int64_t)n);
	if (memcmp(a, query, 2) || memcmp(a + 12, query + 12, question - 12))
		turns_fail("not what was asked, at", (int64_t)question);
	if (!(a[2] & 0x80) || get16(a + 4) != 1 || get16(a + 8))
		turns_fail("no answer's header", a[2]);
	for (unsigned int i = 0; i < records; i++) {
		at = skip_name(a, at, n);
		if (at + 10 > n)
			turns_fail("a record beyond the end", (int64_t)at);
		at += 10 + get16(a + at + 8);
	}
	if (at != n)
		turns_fail("bytes behind the records", (int64_t)(n - at));
	n_records += records;
}

static void turn(struct rng *r, uint64_t number)
{
	uint8_t query[QUERY_MOST], *copy, *answer = malloc(NAMES_ANSWER);
	size_t n, length = make(r, query);

	(void)number;
	copy = malloc(length + !length);
	turns_need(copy && answer, "memory");
	memcpy(copy, query, length);
	n = names_answer(&names, copy, length, answer);
	n_queries++;
	if (n) {
		n_answered++;
		judge(copy, length, answer, n);
	}
	free(copy);
	free(answer);
}

int main(int argc, char **argv)
{
	static const struct turns fuzzer = {
		.name = "names",
		.where = "the question",
		.begin = begin,
		.turn = turn,
		.sums = { { "queries", &n_queries },
			  { "answered", &n_answered },
			  { "records", &n_records } },
	};

	return turns_main(&fuzzer, argc, argv);
}
