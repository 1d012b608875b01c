// SPDX-License-Identifier: GPL-2.0-only
/*
 * The fuzzer of what the holder reads of a stack's socket diagnosis (lib/setup/connection.c), and
 * of the rows that it makes of it (holder/control/listing.c).
 *
 *	connection_fuzz [--turns N | --seconds S] [--seed N]
 *
 * A turn makes a piece of a dump, of answers that are right or nearly so, damages it, and reads it
 * from a heap buffer of its exact size, so that the address sanitizer sees every byte that is
 * touched beyond. A row is shorter than a page has room for, and is one line of printable text.
 */
#include "turns.h"

#include "setup/connection.h"

#include "../holder/control/listing.h"

#include <linux/inet_diag.h>
#include <linux/mptcp.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <stdlib.h>
#include <string.h>

#define ROW_MOST 1024

static uint64_t n_pieces, n_messages, n_connections, n_subflows, n_refused;

static void put_noise(struct rng *r, struct guise_nl *m, uint16_t type, uint32_t len)
{
	static uint8_t bytes[512];

	for (uint32_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)rng_next(r);
	guise_nl_put(m, type, bytes, len);
}

static void put_subflow(struct rng *r, struct guise_nl *m)
{
	size_t ulp = guise_nl_nest(m, INET_DIAG_ULP_INFO | NLA_F_NESTED, NULL, 0), info;

	guise_nl_str(m, INET_ULP_INFO_NAME, "mptcp");
	info = guise_nl_nest(m, INET_ULP_INFO_MPTCP, NULL, 0);
	for (uint32_t n = rng_below(r, 12); n; n--)
		put_noise(r, m, (uint16_t)rng_below(r, MPTCP_SUBFLOW_ATTR_MAX + 2),
			  rng_below(r, 9));
	guise_nl_end(m, info);
	guise_nl_end(m, ulp);
}

static void make_message(struct rng *r, struct guise_nl *m)
{
	static const uint8_t families[] = { AF_INET, AF_INET6, AF_UNIX };
	struct inet_diag_msg body;

	for (size_t i = 0; i < sizeof(body); i++)
		((uint8_t *)&body)[i] = (uint8_t)rng_next(r);
	body.idiag_family = rng_pick(r, families);
	body.idiag_state = (uint8_t)rng_below(r, 14);
	guise_nl_begin(m, rng_one_in(r, 8) ? NLMSG_DONE : SOCK_DIAG_BY_FAMILY, 0, &body,
		       sizeof(body));
	if (!rng_one_in(r, 4))
		put_noise(r, m, INET_DIAG_INFO, rng_below(r, sizeof(struct tcp_info) + 16));
	if (rng_one_in(r, 2))
		put_subflow(r, m);
	if (rng_one_in(r, 4))
		put_noise(r, m, (uint16_t)rng_next(r), rng_below(r, 40));
	((struct nlmsghdr *)m->buf)->nlmsg_len = (uint32_t)m->len;
}

static size_t make_piece(struct rng *r, uint8_t *to, size_t room)
{
	static struct guise_nl m;
	size_t len = 0;

	for (uint32_t n = rng_below(r, 6); n; n--) {
		make_message(r, &m);
		if (len + m.len > room)
			break;
		memcpy(to + len, m.buf, m.len);
		len += NLMSG_ALIGN(m.len);
	}
	for (uint32_t n = rng_one_in(r, 2) ? rng_below(r, 8) : 0; n && len; n--)
		to[rng_below(r, (uint32_t)len)] = (uint8_t)rng_next(r);
	return rng_one_in(r, 4) && len ? rng_below(r, (uint32_t)len) : len;
}

static void judge_row(const struct guise_connection *c)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	turns_need(out, "memory");
	listing_row(out, c, "abcdefghijklmno");
	fclose(out);
	if (size >= ROW_MOST)
		turns_found("a row of %zu bytes", size);
	for (size_t i = 0; i < size; i++)
		if (text[i] < ' ' || text[i] > '~')
			turns_found("a row has the byte %d", text[i]);
	free(text);
}

static void turn(struct rng *r, uint64_t number)
{
	static uint8_t piece[4096] __attribute__((aligned(NLMSG_ALIGNTO)));
	size_t len = make_piece(r, piece, sizeof(piece)), at = 0, before;
	const struct nlmsghdr *h;
	struct guise_connection c;
	uint8_t *copy = malloc(len ? len : 1);

	(void)number;
	turns_need(copy, "memory");
	memcpy(copy, piece, len);
	n_pieces++;
	for (;;) {
		before = at;
		h = guise_nl_message(copy, len, &at);
		if (!h)
			break;
		if (at <= before || (const uint8_t *)h != copy + before)
			turns_found("a message is not behind the one before it");
		n_messages++;
		if (!guise_connection_parse(h, rng_one_in(r, 2), &c)) {
			n_refused++;
			continue;
		}
		n_connections++;
		n_subflows += c.subflow;
		if ((c.subflow || c.measured) && c.mptcp)
			turns_found("a whole connection is measured as a subflow is");
		judge_row(&c);
	}
	free(copy);
}

int main(int argc, char **argv)
{
	static const struct turns fuzzer = {
		.name = "connection",
		.where = "the list of connections",
		.turn = turn,
		.sums = { { "pieces", &n_pieces },
			  { "messages", &n_messages },
			  { "connections", &n_connections },
			  { "subflows", &n_subflows },
			  { "refused", &n_refused } },
	};

	return turns_main(&fuzzer, argc, argv);
}
