// SPDX-License-Identifier: GPL-2.0-only
/* Parses tc's words for a queueing discipline; changes nothing. */
#include "setup/qdisc_spec.h"
#include "region/stack.h"
#include "setup/units.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/*
 * What may follow a word, one letter a value: t time, % share, r rate,
 * b bytes, n number, s seed of 64 bits. The first must be there, the others
 * may; "" is a flag.
 */
struct word {
	const char *name;
	enum guise_qdisc_word id;
	const char *values;
};

static const struct word netem_words[] = {
	{ "delay", GUISE_Q_DELAY, "tt%" },
	{ "loss", GUISE_Q_LOSS, "%%" },
	{ "duplicate", GUISE_Q_DUPLICATE, "%%" },
	{ "reorder", GUISE_Q_REORDER, "%%" },
	{ "corrupt", GUISE_Q_CORRUPT, "%%" },
	{ "gap", GUISE_Q_GAP, "n" },
	{ "rate", GUISE_Q_RATE, "r" },
	{ "limit", GUISE_Q_LIMIT, "n" },
	{ "seed", GUISE_Q_SEED, "s" },
	{ "ecn", GUISE_Q_ECN, "" },
	{ 0 },
};

static const struct word fq_words[] = {
	{ "limit", GUISE_Q_LIMIT, "n" },      { "flow_limit", GUISE_Q_FLOW_LIMIT, "n" },
	{ "quantum", GUISE_Q_QUANTUM, "b" },  { "initial_quantum", GUISE_Q_INITIAL_QUANTUM, "b" },
	{ "maxrate", GUISE_Q_MAXRATE, "r" },  { "pacing", GUISE_Q_PACING, "" },
	{ "nopacing", GUISE_Q_NOPACING, "" }, { 0 },
};

static const struct word fq_codel_words[] = {
	{ "limit", GUISE_Q_LIMIT, "n" },     { "flows", GUISE_Q_FLOWS, "n" },
	{ "target", GUISE_Q_TARGET, "t" },   { "interval", GUISE_Q_INTERVAL, "t" },
	{ "quantum", GUISE_Q_QUANTUM, "b" }, { "ecn", GUISE_Q_ECN, "" },
	{ "noecn", GUISE_Q_NOECN, "" },      { 0 },
};

static const struct word tbf_words[] = {
	{ "rate", GUISE_Q_RATE, "r" },
	{ "burst", GUISE_Q_BURST, "b" },
	{ "latency", GUISE_Q_LATENCY, "t" },
	{ "limit", GUISE_Q_LIMIT, "b" },
	{ 0 },
};

static const struct word pfifo_words[] = { { "limit", GUISE_Q_LIMIT, "n" }, { 0 } };
static const struct word bfifo_words[] = { { "limit", GUISE_Q_LIMIT, "b" }, { 0 } };
static const struct word no_words[] = { { 0 } };

static const struct {
	const char *name;
	enum guise_qdisc_kind kind;
	const struct word *words;
} kinds[] = {
	{ "netem", GUISE_QDISC_NETEM, netem_words },
	{ "fq", GUISE_QDISC_FQ, fq_words },
	{ "fq_codel", GUISE_QDISC_FQ_CODEL, fq_codel_words },
	{ "tbf", GUISE_QDISC_TBF, tbf_words },
	{ "pfifo", GUISE_QDISC_PFIFO, pfifo_words },
	{ "bfifo", GUISE_QDISC_BFIFO, bfifo_words },
	{ "none", GUISE_QDISC_NONE, no_words },
};

#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

static int parse_value(char type, const char *text, const char *what, uint64_t *v)
{
	switch (type) {
	case 't':
		return guise_unit_time(text, what, v);
	case '%':
		return guise_unit_percent(text, what, v);
	case 'r':
		return guise_unit_rate(text, what, v);
	case 'b':
		return guise_unit_size(text, what, UINT32_MAX, v);
	case 's':
		return guise_unit_seed(text, what, v);
	default:
		return guise_unit_count(text, what, v);
	}
}

static int unknown_word(const char *kind, const char *text, const struct word *words)
{
	char known[160];
	size_t len = 0;

	known[0] = '\0';
	for (; words->name; words++)
		len += (size_t)snprintf(known + len, sizeof(known) - len, "%s%s", len ? ", " : "",
					words->name);
	return guise_fail(EINVAL, "qdisc %s: unknown word \"%s\"; known are %s", kind, text,
			  len ? known : "none at all");
}

/* Finds what the kernel would accept without effect, or refuse without an explanation. */
static int check(const struct guise_qdisc *q)
{
	if (q->kind == GUISE_QDISC_NETEM) {
		if (q->word[GUISE_Q_REORDER].set && !q->word[GUISE_Q_DELAY].v[0])
			return guise_fail(EINVAL,
					  "qdisc netem: reorder sends a packet ahead of "
					  "delayed ones, so it needs a delay, such as delay 10ms");
		if (q->word[GUISE_Q_GAP].set && !q->word[GUISE_Q_REORDER].set)
			return guise_fail(EINVAL,
					  "qdisc netem: gap belongs to reorder, which is not "
					  "given");
	}
	if (q->kind == GUISE_QDISC_TBF) {
		if (!q->word[GUISE_Q_RATE].v[0] || !q->word[GUISE_Q_BURST].v[0] ||
		    q->word[GUISE_Q_LATENCY].set == q->word[GUISE_Q_LIMIT].set)
			return guise_fail(EINVAL,
					  "qdisc tbf: needs rate, burst and one of latency and "
					  "limit, such as tbf rate 10mbit burst 32kb latency 50ms");
	}
	return 0;
}

int guise_qdisc_parse(const char *text, struct guise_qdisc *q)
{
	char copy[512], what[64], *next = copy, *token;
	const struct word *words, *w;
	const char *value;
	size_t i;
	int err, n;

	memset(q, 0, sizeof(*q));
	if (strlen(text) >= sizeof(copy))
		return guise_fail(EINVAL, "qdisc: longer than %zu characters", sizeof(copy) - 1);
	strcpy(copy, text);
	token = strtok_r(copy, " \t", &next);
	if (!token)
		token = (char *)"";
	for (i = 0; i < N_KINDS; i++)
		if (!strcmp(kinds[i].name, token))
			break;
	if (i == N_KINDS)
		return guise_fail(EINVAL,
				  "qdisc: unknown kind \"%s\"; known are netem, fq, fq_codel, "
				  "tbf, pfifo, bfifo, none",
				  token);
	q->kind = kinds[i].kind;
	q->name = kinds[i].name;
	words = kinds[i].words;

	token = strtok_r(NULL, " \t", &next);
	while (token) {
		for (w = words; w->name && strcmp(w->name, token); w++)
			;
		if (!w->name)
			return unknown_word(q->name, token, words);
		snprintf(what, sizeof(what), "qdisc %s %s", q->name, w->name);
		if (q->word[w->id].set)
			return guise_fail(EINVAL, "%s: given twice", what);
		q->word[w->id].set = true;
		token = strtok_r(NULL, " \t", &next);
		for (n = 0, value = w->values; *value; value++, n++) {
			/* The optional ones are told from the next word by their digit. */
			if (n && (!token || !(isdigit((unsigned char)*token) || *token == '.')))
				break;
			if (!token)
				return guise_fail(EINVAL, "%s: needs a value", what);
			err = parse_value(*value, token, what, &q->word[w->id].v[n]);
			if (err)
				return err;
			token = strtok_r(NULL, " \t", &next);
		}
	}
	return check(q);
}
