// SPDX-License-Identifier: GPL-2.0-only
/*
 * The fuzzer of what guise-check-mptcp reads: packets, heads of HTTP, and reports of the other end
 * (mptcp/segment.c, flows.c, head.c, report.c).
 *
 *	mptcp_fuzz [--turns N | --seconds S] [--seed N]
 *
 * A turn makes one of each, right or nearly so, damages it, and has it read from a heap buffer of
 * its exact size, so that the address sanitizer sees every byte that is touched beyond. What was
 * read of a report is written, and must be read the same; and a verdict on it is printed, without
 * a byte that a terminal would obey.
 */
#include "turns.h"

#include "../mptcp/head.h"
#include "../mptcp/verdict.h"

#include <stdlib.h>
#include <string.h>

#define MOST 6000

static uint64_t n_segments, n_options, n_heads, n_reports, n_same;
static struct flows flows;

static const char *const heads[] = {
	"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
	"POST / HTTP/1.1\r\nContent-Length: 65536\r\n\r\n....",
	"HTTP/1.1 200 OK\r\nServer: guise-check-mptcp\r\nContent-Length: 300\r\n\r\nguise",
	"HTTP/1.0 404 Not Found\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n",
};

static const char *const lines[] = {
	"protocol mptcp",
	"protocol fallback",
	"from 192.0.2.7:40000",
	"from [2001:db8::7]:1",
	"syn capable 1",
	"syn plain",
	"answer capable 1 0123456789abcdef",
	"in mp_capable dss infinite_map",
	"out dss mp_fail mp_tcprst",
	"subflow 192.0.2.1:80 192.0.2.7:40000",
	"bytes 65536",
	"x",
	"",
	"\033[2J\007",
};

static void damage(struct rng *r, uint8_t *b, size_t *n)
{
	if (!*n || rng_one_in(r, 3))
		return;
	for (uint32_t k = rng_below(r, 4); k; k--)
		b[rng_below(r, (uint32_t)*n)] = (uint8_t)rng_below(r, 256);
	if (rng_one_in(r, 4))
		*n = rng_below(r, (uint32_t)*n + 1);
}

/* A copy of the exact size. */
static void *exact(const void *b, size_t n)
{
	void *copy = malloc(n + !n);

	turns_need(copy, "memory");
	memcpy(copy, b, n);
	return copy;
}

static size_t make_options(struct rng *r, uint8_t *o)
{
	static const uint8_t lengths[] = { 4, 12, 20, 22, 3, 2, 16, 26, 0, 1 };
	size_t n = 0;

	while (n < 40 && !rng_one_in(r, 4)) {
		uint8_t length = rng_pick(r, lengths);

		o[n] = rng_one_in(r, 4) ? (uint8_t)rng_below(r, 32) : 30;
		o[n + 1] = length;
		for (size_t i = 2; i < length; i++)
			o[n + i] = (uint8_t)rng_below(r, rng_one_in(r, 2) ? 256 : 4);
		if (length > 2)
			o[n + 2] = (uint8_t)(rng_below(r, 10) << 4 | rng_below(r, 2));
		n += length + !length;
	}
	return n < 40 ? n & ~3u : 40;
}

static size_t make_packet(struct rng *r, uint8_t *b)
{
	bool six = rng_one_in(r, 2);
	size_t ip = six ? 40 : 20, n = make_options(r, b + ip + 20);

	memset(b, 0, ip + 20);
	b[0] = six ? 0x60 : 0x45;
	b[six ? 6 : 9] = 6;
	b[six ? 5 : 3] = (uint8_t)(n + 20 + (six ? 0 : 20) + rng_below(r, 100));
	b[ip - 1] = (uint8_t)rng_below(r, 4);
	b[ip - 5] = (uint8_t)rng_below(r, 4);
	b[ip + 1] = b[ip + 3] = 80;
	b[ip + 12] = (uint8_t)((20 + n) / 4 << 4);
	b[ip + 13] = (uint8_t)rng_below(r, 32);
	return ip + 20 + n;
}

static void packet(struct rng *r)
{
	uint8_t b[MOST], *copy;
	size_t n = make_packet(r, b);
	struct segment s;

	damage(r, b, &n);
	copy = exact(b, n);
	if (segment_read(&s, copy, n)) {
		n_segments++;
		n_options += s.has != 0;
		if (s.version > 15 || s.has >> MP_KINDS)
			turns_fail("options that there are not", s.has);
		flows_see(&flows, &s);
		if (!(s.flags & TCP_ACK) && s.flags & TCP_SYN &&
		    !flows_find(&flows, &s.from, &s.to))
			turns_fail("a SYN that was not seen, of port", s.from.port);
	}
	free(copy);
}

static void head(struct rng *r)
{
	const char *text = rng_pick(r, heads);
	uint8_t b[MOST], *copy;
	size_t n = strlen(text);
	struct head h;
	int at;

	memcpy(b, text, n);
	if (rng_one_in(r, 20)) {
		memset(b + n, 'x', sizeof(b) - n);
		n = sizeof(b);
	}
	damage(r, b, &n);
	copy = exact(b, n);
	at = head_read(&h, (char *)copy, n);
	if (at < HEAD_BAD || at > (int)n || at > HEAD_MOST)
		turns_fail("a head of this length", at);
	n_heads += at > 0;
	if (at > 0 && (h.request == h.answer || h.length > 999999999))
		turns_fail("a head with a body of this length", (int64_t)h.length);
	free(copy);
}

static void judge(const struct report *read)
{
	struct evidence e = { .host = "x", .connected = true, .reported = true, .seen = true };
	char *text = NULL;
	size_t n = 0;
	FILE *file = open_memstream(&text, &n);

	turns_need(file, "memory");
	e.report = *read;
	e.state.mptcp = read->bytes & 1;
	verdict_print(&e, file);
	verdict_print_json(&e, file);
	fclose(file);
	for (size_t i = 0; i < n; i++)
		if ((text[i] < ' ' && text[i] != '\n') || text[i] == 127)
			turns_fail("a byte that a terminal obeys is printed", text[i]);
	free(text);
}

/* A key goes with an option that was seen, and is written only then. */
static void compare(const struct report *one, const struct report *other)
{
	if (one->protocol != other->protocol || one->bytes != other->bytes)
		turns_fail("a protocol or bytes that are read otherwise again", one->protocol);
	if (one->in != other->in || one->out != other->out)
		turns_fail("options that are read otherwise again", one->in);
	if (one->syn.saw != other->syn.saw || one->answer.saw != other->answer.saw)
		turns_fail("a handshake that is read otherwise again", one->syn.saw);
	if (one->answer.saw == CAPABLE && one->answer.key != other->answer.key)
		turns_fail("a key that is read otherwise again", (int64_t)one->answer.key);
	if (!address_equal(&one->from, &other->from) || one->n_subflows != other->n_subflows)
		turns_fail("addresses that are read otherwise again", one->n_subflows);
}

static void report(struct rng *r)
{
	char text[REPORT_MOST];
	uint8_t b[MOST], *copy;
	struct report one, other;
	size_t n = (size_t)snprintf((char *)b, sizeof(b), "guise-check-mptcp 1\n");

	for (uint32_t k = rng_below(r, 40); k; k--)
		n += (size_t)snprintf((char *)b + n, sizeof(b) - n, "%s\n", rng_pick(r, lines));
	if (rng_one_in(r, 8))
		while (n < sizeof(b))
			b[n++] = '\n';
	damage(r, b, &n);
	copy = exact(b, n);
	if (report_read(&one, (char *)copy, n)) {
		n_reports++;
		if (one.n_subflows > STATE_SUBFLOWS)
			turns_fail("so many subflows", one.n_subflows);
		judge(&one);
		if (report_write(&one, text) >= REPORT_MOST ||
		    !report_read(&other, text, strlen(text)))
			turns_fail("a report that cannot be read again, of bytes", (int64_t)n);
		compare(&one, &other);
		n_same++;
	}
	free(copy);
}

static void turn(struct rng *r, uint64_t number)
{
	(void)number;
	packet(r);
	head(r);
	report(r);
}

int main(int argc, char **argv)
{
	static const struct turns fuzzer = {
		.name = "mptcp",
		.where = "what is read",
		.turn = turn,
		.sums = { { "segments", &n_segments },
			  { "options", &n_options },
			  { "heads", &n_heads },
			  { "reports", &n_reports },
			  { "same", &n_same } },
	};

	return turns_main(&fuzzer, argc, argv);
}
