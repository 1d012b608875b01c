// SPDX-License-Identifier: GPL-2.0-only
/*
 * The list of connections: pages that follow each other and have each connection once, at a
 * stack with some hundred of them; what is no page; and how a row is written.
 */
#include "holder/control/listing.h"

#include "test/kernel.h"
#include "test/tap.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>

#define PAIRS 150

static struct guise_stack *s;

static struct sockaddr_in lo(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(4000) };

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return a;
}

static void connect_pairs(void)
{
	const struct sockaddr_in a = lo();
	int listener = guise_socket(s, AF_INET, SOCK_STREAM, 0), made = 0;

	guise_link_set(s, "lo", 1);
	guise_bind(s, listener, (const struct sockaddr *)&a, sizeof(a));
	guise_listen(s, listener, 10);
	for (int i = 0; i < PAIRS; i++) {
		int fd = guise_socket(s, AF_INET, SOCK_STREAM, 0);

		made += !guise_connect(s, fd, (const struct sockaddr *)&a, sizeof(a)) &&
			guise_accept4(s, listener, NULL, NULL, 0) >= 0;
	}
	tap(made == PAIRS, "%d connections, with both ends here", made);
}

static unsigned int count(const char *text, const char *word)
{
	unsigned int n = 0;

	while ((text = strstr(text, word))) {
		n++;
		text += strlen(word);
	}
	return n;
}

static void pages(void)
{
	struct listing l;
	unsigned int n = 0, rows = 0, numbered = 0;
	unsigned long long from = 0, next;
	char *page, *more;
	bool small = true;

	listing_init(&l);
	do {
		page = listing_page(&l, s, from);
		if (!page)
			break;
		n++;
		rows += count(page, "\"protocol\":\"tcp\"");
		small = small && strlen(page) < LISTING_PAGE;
		more = strstr(page, "],\"next\":");
		numbered += !strncmp(page, "{\"from\":", 8) && strtoull(page + 8, NULL, 10) == from;
		next = more ? strtoull(more + 9, NULL, 10) : 0;
		free(page);
		if (!next)
			break;
		tap(next == rows, "page %u ends at connection %llu", n, next);
		if (n == 1) {
			tap(!listing_page(&l, s, next + 1) && strstr(guise_error(), "goes on from"),
			    "no page begins elsewhere");
			tap(!listing_page(&l, s, 1) && strstr(guise_error(), "goes on from"),
			    "nor before");
		}
		from = next;
	} while (n < 100);
	tap(n > 2 && numbered == n, "%u pages, each with its number", n);
	tap(rows == 2 * PAIRS, "all connections are in them, and no listener (%u)", rows);
	tap(small, "no page is longer than it may be");
	tap(!listing_page(&l, s, rows) && strstr(guise_error(), "no list was begun"),
	    "after the last there is none");
	page = listing_page(&l, s, 0);
	tap(page && strstr(page, "\"interface\":\"lo\""), "it begins anew, and knows interfaces");
	free(page);
	listing_end(&l);
	listing_end(&l);
	tap(!listing_page(&l, s, 5), "a list that was ended does not go on");
	listing_end(&l);
}

static void row(const struct guise_connection *c, const char *interface, const char *expected)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	listing_row(out, c, interface);
	fclose(out);
	if (!tap(!strcmp(text, expected), "a row: %s", expected))
		printf("# %s\n", text);
	free(text);
}

static void rows(void)
{
	struct guise_connection c = {
		.family = AF_INET,
		.state = 1,
		.local = { 10, 0, 0, 1 },
		.remote = { 10, 0, 0, 2 },
		.local_port = 65535,
		.remote_port = 80,
		.inode = 7,
		.uid = 8,
		.cookie = UINT64_MAX,
	};

	row(&c, "e\"\n",
	    "{\"protocol\":\"tcp\",\"state\":\"established\",\"local\":\"10.0.0.1:65535\","
	    "\"remote\":\"10.0.0.2:80\",\"interface\":\"e\\\"\\u000a\",\"inode\":7,\"uid\":8,"
	    "\"cookie\":18446744073709551615}");
	c.family = AF_INET6;
	c.subflow = c.backup = c.counted = c.measured = true;
	c.token = 5;
	c.sent = 1;
	c.acked = 2;
	c.received = 3;
	c.resent = 4;
	c.rtt = 11;
	c.rttvar = 12;
	c.min_rtt = 13;
	c.cwnd = c.mss = UINT32_MAX;
	c.retransmissions = 14;
	c.state = 200;
	row(&c, NULL,
	    "{\"protocol\":\"tcp\",\"state\":\"unknown\",\"local\":\"[a00:1::]:65535\","
	    "\"remote\":\"[a00:2::]:80\",\"inode\":7,\"uid\":8,\"cookie\":18446744073709551615,"
	    "\"subflow_of\":{\"token\":5,\"fallback\":false,\"backup\":true,\"local_id\":0,"
	    "\"remote_id\":0},\"bytes\":{\"sent\":1,\"acked\":2,\"received\":3,"
	    "\"retransmitted\":4},\"path\":{\"rtt_us\":11,\"rttvar_us\":12,\"min_rtt_us\":13,"
	    "\"cwnd\":4294967295,\"mss\":4294967295,\"cwnd_bytes\":18446744065119617025,"
	    "\"retransmissions\":14}}");
}

int main(void)
{
	rows();
	test_find_kernel();
	s = test_stack("listing", 0);
	connect_pairs();
	pages();
	guise_leave(s);
	return tap_end();
}
