// SPDX-License-Identifier: GPL-2.0-only
/*
 * The fuzzer of what the holder reads as text: a plan (holder/plan.c), and what
 * its lines lead to: links, queueing disciplines, addresses and quantities.
 *
 *	plan_fuzz [--turns N | --seconds S] [--seed N]
 *
 * A turn makes a plan of lines that are right, wrong or noise, damages it, and
 * takes it apart on a heap buffer of its exact size, so that the address
 * sanitizer sees every byte that is touched beyond. A plan that passes has a
 * directive and words within the text on each line, in order; one that does not
 * names a line it has, with a sentence. Words from everywhere then go to the
 * parsers below, whose results must be what they promise.
 */
#include "turns.h"

#include "link/link.h"
#include "link/spec.h"
#include "setup/prefix.h"
#include "setup/qdisc_spec.h"
#include "setup/units.h"

#include "../holder/plan.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MOST 4096

static const char *const words[] = {
	"name",
	"memory",
	"clock",
	"cmdline",
	"boot",
	"link",
	"bridge",
	"up",
	"address",
	"route",
	"rule",
	"qdisc",
	"sysctl",
	"mptcp",
	"relay",
	"resolver",
	"host",
	"keep",
	"undo",
	"real",
	"sim",
	"64M",
	"7",
	"eth0",
	"lo",
	"tap",
	"pair",
	"fd=3",
	"mtu=1500",
	"mac=2:0:0:0:0:1",
	"offload=off",
	"default",
	"via",
	"dev",
	"table",
	"from",
	"limits",
	"endpoint",
	"signal",
	"netem",
	"delay",
	"20ms",
	"loss",
	"0.2%",
	"fq_codel",
	"tbf",
	"rate",
	"100mbit",
	"burst",
	"32kb",
	"latency",
	"fq",
	"limit",
	"seed",
	"0x7fffffffffffffff",
	"ecn",
	"flows",
	"10.0.0.1/8",
	"fd00::1/64",
	"0.0.0.0/0",
	"::/129",
	"1e308s",
	"-1",
	"99999999999999999999",
	"nan%",
	"4294967296",
	"#",
	"=",
	",",
	":",
	"/",
	"tap:fd=3,mtu=9000",
	"net.ipv4.tcp_rmem",
	"inf",
	"1.5s",
};

static const char *const right_lines[] = {
	"name x",
	"memory 64M",
	"clock sim 7",
	"cmdline a=b c",
	"boot",
	"link eth0 tap fd=3 mtu=1500",
	"bridge br0 eth0 eth1",
	"up eth0",
	"address eth0 10.0.0.1/8",
	"route default via 10.0.0.2 dev eth0 table 9",
	"rule from 10.0.0.0/8 table 9",
	"rule to fd00::/8 iif eth0 oif lo fwmark 1 priority 2 table 3",
	"control fd=3 /run/x/1.sock /run/x/n.stack",
	"tell k=v",
	"qdisc eth0 netem delay 20ms loss 0.2%",
	"sysctl net.ipv4.tcp_rmem 1 2 3",
	"mptcp limits 2 3",
	"keep",
	"undo /bin/true j",
	"# nothing",
};

static uint64_t n_plans, n_taken, n_words, n_parsed;

static void fail(const char *what, const char *text, size_t len)
{
	turns_found("%s: \"%.*s\"", what, len < 200 ? (int)len : 200, text);
}

static size_t add_word(struct rng *r, char *to, size_t room)
{
	const char *word = rng_pick(r, words);
	size_t len = strlen(word);

	if (rng_one_in(r, 16)) {
		len = rng_below(r, 200);
		if (len > room)
			return 0;
		for (size_t i = 0; i < len; i++)
			to[i] = (char)(1 + rng_below(r, 255));
		return len;
	}
	if (len > room)
		return 0;
	for (size_t i = 0; i < len; i++) /* a word of a text has no end of its own */
		to[i] = word[i];
	return len;
}

/* A text of lines, mostly right ones where it is long enough for a plan. */
static size_t make_text(struct rng *r, char *text, size_t most, uint32_t lines)
{
	size_t len = 0;

	while (lines--) {
		const char *right = rng_pick(r, right_lines);
		uint32_t n = most == TEXT_MOST && !rng_one_in(r, 8) ? 0 : rng_below(r, 9);

		if (most == TEXT_MOST && !n && len + strlen(right) + 2 < most)
			len += (size_t)sprintf(text + len, "%s", right);
		while (n-- && len + 2 < most) {
			len += add_word(r, text + len, most - len - 2);
			if (n)
				text[len++] = rng_one_in(r, 8) ? '\t' : ' ';
		}
		if (lines && len + 1 < most)
			text[len++] = '\n';
	}
	for (uint32_t n = rng_one_in(r, 2) ? rng_below(r, 3) : 0; n && len; n--)
		text[rng_below(r, (uint32_t)len)] = (char)(1 + rng_below(r, 255));
	return len;
}

/* On the heap, of its exact size. */
static char *copy_of(const char *text, size_t len)
{
	char *copy = malloc(len + 1);

	if (!copy)
		abort();
	memcpy(copy, text, len);
	copy[len] = '\0';
	return copy;
}

static void take_plan(const char *text, size_t len)
{
	char *copy = copy_of(text, len);
	int lines = 1, before = 0, bad;
	struct plan p;

	for (size_t i = 0; i < len; i++)
		lines += text[i] == '\n';
	bad = plan_parse(&p, copy);
	if (bad < 0 || bad > lines || (bad && !guise_error()[0]))
		fail("a line is wrong that is not there, or nobody knows why", text, len);
	for (int i = 0; !bad && i < p.lines; i++) {
		const struct plan_line *l = &p.line[i];

		if (!l->directive || l->words < 1 || l->number <= before || l->number > lines)
			fail("a line is not a line", text, len);
		before = l->number;
		for (int k = 0; k < l->words; k++)
			if (l->word[k] < copy || l->word[k] >= copy + len || !l->word[k][0])
				fail("a word lies outside of the text", text, len);
	}
	if (p.undo_program && (p.undo_program < copy || p.undo_program >= copy + len))
		fail("undo lies outside of the text", text, len);
	n_plans++;
	n_taken += !bad;
	plan_free(&p);
	free(copy);
}

static void take_words(const char *text, size_t len)
{
	char *copy = copy_of(text, len);
	struct guise_link_spec spec;
	struct guise_prefix prefix;
	struct guise_qdisc qdisc;
	uint64_t value;

	n_words++;
	if (!guise_link_spec_parse(copy, &spec)) {
		n_parsed++;
		if (!spec.kind || !memchr(spec.rest, 0, sizeof(spec.rest)))
			fail("a link without a kind", text, len);
	}
	if (!guise_link_name_check(copy)) {
		n_parsed++;
		if (!len || len > 15 || strpbrk(copy, "/ \t\n:"))
			fail("no interface has such a name", text, len);
	}
	if (!guise_qdisc_parse(copy, &qdisc)) {
		n_parsed++;
		if (!qdisc.name || qdisc.kind > GUISE_QDISC_BFIFO)
			fail("no such discipline", text, len);
	}
	if (!guise_prefix_parse(copy, &prefix, "x")) {
		n_parsed++;
		if ((prefix.family != AF_INET && prefix.family != AF_INET6) ||
		    prefix.len > (prefix.family == AF_INET ? 32 : 128))
			fail("a prefix longer than its address", text, len);
	}
	if (!guise_unit_percent(copy, "x", &value) && value > UINT32_MAX)
		fail("more than all of it", text, len);
	if (!guise_unit_count(copy, "x", &value) && value > UINT32_MAX)
		fail("a count of more than 32 bits", text, len);
	if (!guise_unit_size(copy, "x", 1000000, &value) && value > 1000000)
		fail("larger than the largest", text, len);
	guise_unit_time(copy, "x", &value);
	guise_unit_rate(copy, "x", &value);
	guise_unit_seed(copy, "x", &value);
	free(copy);
}

static void turn(struct rng *r, uint64_t number)
{
	static char text[TEXT_MOST];
	size_t len = make_text(r, text, sizeof(text), 1 + rng_below(r, 12));

	(void)number;
	take_plan(text, len);
	for (int i = 0; i < 8; i++) {
		len = make_text(r, text, 300, 1);
		if (rng_one_in(r, 2))
			len = add_word(r, text, 300);
		take_words(text, len);
	}
}

int main(int argc, char **argv)
{
	static const struct turns fuzzer = {
		.name = "plan",
		.where = "the plan",
		.turn = turn,
		.sums = { { "plans", &n_plans },
			  { "taken", &n_taken },
			  { "words", &n_words },
			  { "parsed", &n_parsed } },
	};

	return turns_main(&fuzzer, argc, argv);
}
