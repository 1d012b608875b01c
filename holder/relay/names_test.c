// SPDX-License-Identifier: GPL-2.0-only
/* What is answered of what a name server may be asked, and what is left to it. */
#include "holder/relay/names.h"

#include "test/tap.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>

/* id 0x1234, recursion wanted, one question; an OPT record */
#define HEAD "\x12\x34\x01\x00\0\1\0\0\0\0\0\0"
#define HOST "\4host\5guise\10internal\0"
#define A    "\0\1\0\1"
#define AAAA "\0\34\0\1"
#define ANY  "\0\xff\0\1"
#define MX   "\0\17\0\1"
#define OPT  "\0\0\x29\4\xd0\0\0\0\0\0\0"

#define QUERY(...) (const uint8_t *)(__VA_ARGS__), sizeof(__VA_ARGS__) - 1

static struct names names;
static uint8_t answer[NAMES_ANSWER];

static bool sums_up(const uint8_t *query, size_t length, unsigned int records, size_t data)
{
	size_t n = names_answer(&names, query, length, answer);

	if (n != length + records * 12 + data || memcmp(answer, query, 2) || answer[2] != 0x81 ||
	    answer[3] != 0x80 || answer[7] != records ||
	    memcmp(answer + 12, query + 12, length - 12)) {
		printf("# %zu bytes\n", n);
		return false;
	}
	return true;
}

/* On a copy that ends where the query does, for sanitizers. */
static void left_alone(const uint8_t *query, size_t length, const char *what)
{
	uint8_t *copy = malloc(length + !length);

	if (copy)
		memcpy(copy, query, length);
	tap(copy && !names_answer(&names, copy, length, answer), "left alone: %s", what);
	free(copy);
}

static void answers(void)
{
	static const uint8_t four[] = { 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 192, 0, 2, 1 };
	uint8_t *end;

	tap(sums_up(QUERY(HEAD HOST A), 1, 4), "A");
	end = answer + sizeof(HEAD HOST A) - 1;
	tap(!memcmp(end, four, sizeof(four)), "the record is as it should be");
	tap(sums_up(QUERY(HEAD HOST AAAA), 1, 16), "AAAA");
	tap(sums_up(QUERY(HEAD HOST ANY), 2, 20), "ANY is both");
	tap(sums_up(QUERY(HEAD HOST MX), 0, 0), "MX: there is none");
	tap(sums_up(QUERY(HEAD "\4HoSt\5GUISE\10internal\0" A), 1, 4),
	    "in other letters, which are kept");
	tap(sums_up(QUERY(HEAD "\7gateway\5guise\10internal\0" AAAA), 0, 0),
	    "a name without an address of that family");
	tap(names_answer(&names, QUERY("\x12\x34\1\20\0\1\0\0\0\0\0\1" HOST A OPT), answer) ==
			    sizeof(HEAD HOST A OPT) - 1 + 16 &&
		    answer[3] == 0x90 && answer[11] == 1,
	    "with EDNS, as it was asked");
}

static void others(void)
{
	static const char query[] = HEAD HOST A;

	left_alone(QUERY(HEAD "\4host\5guise\5local\0" A), "another name");
	left_alone(QUERY(HEAD "\1x\4host\5guise\10internal\0" A), "a name below");
	left_alone(QUERY(HEAD "\5guise\10internal\0" A), "a name above");
	left_alone(QUERY(HEAD "\x13host.guise.internal\0" A), "one label with dots");
	left_alone(QUERY(HEAD "\0" A), "the root");
	left_alone(QUERY(HEAD HOST "\0\1\0\3"), "another class");
	left_alone(QUERY("\x12\x34\x81\x80\0\1\0\0\0\0\0\0" HOST A), "an answer");
	left_alone(QUERY("\x12\x34\x28\x00\0\1\0\0\0\0\0\0" HOST A), "an update");
	left_alone(QUERY("\x12\x34\1\0\0\2\0\0\0\0\0\0" HOST A HOST AAAA), "two questions");
	left_alone(QUERY("\x12\x34\1\0\0\0\0\0\0\0\0\0" HOST A), "no question");
	left_alone(QUERY("\x12\x34\1\0\0\1\0\1\0\0\0\0" HOST A), "a query with an answer");
	left_alone(QUERY(HEAD "\xc0\14" A), "a name that is a pointer to itself");
	left_alone(QUERY(HEAD "\4host\5guise\xc0\14" A), "a pointer at its end");
	left_alone(QUERY(HEAD "\x40host\5guise\10internal\0" A), "a label that is too long");
	for (size_t n = 0; n < sizeof(query) - 1; n++)
		left_alone((const uint8_t *)query, n, "a piece of a query");
}

int main(void)
{
	tap_done(names_add(&names, "Host.guise.internal", "192.0.2.1"), "a name");
	tap_done(names_add(&names, "host.guise.internal", "2001:db8::1"), "the same with IPv6");
	tap_done(names_add(&names, "gateway.guise.internal", "192.0.2.2"), "another one");
	tap(names.n == 2, "that is two names");
	tap_fails(names_add(&names, "host.guise.internal", "192.0.2.3"), EINVAL, "one too many");
	tap_fails(names_add(&names, "x", "nowhere"), EINVAL, "nowhere");
	tap_fails(names_add(&names, "", "192.0.2.1"), EINVAL, "is no name");
	answers();
	others();
	return tap_end();
}
