// SPDX-License-Identifier: GPL-2.0-only
/*
 * Answers to questions of DNS (RFC 1035) about names of guise's own, which no name server
 * knows: host.guise.internal and the like. Whoever asks the servers of /etc/resolv.conf by
 * itself, as dig does, asks the relay (resolvers.c), which answers such a question in the
 * server's place, and passes on all others as they are.
 *
 * A query is a header of 12 bytes and one question: the name as labels, each with its length
 * before it, a zero, then type and class. An answer repeats the question, so that the name
 * is in the letters that were used (some resolvers look at that), and the name of its records
 * is a pointer to there. A name of ours has no other types of records than A and AAAA: the
 * answer is then empty. Nothing may be kept (TTL 0): the next stack has other addresses.
 *
 * What comes in is any program's, so every byte is looked at within the query's length, and
 * what is not exactly as above is somebody else's business.
 */
#include "holder/relay/names.h"

#include "region/stack.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#define HEADER   12
#define TYPE_A   1
#define TYPE_ANY 255
#define TYPE_6   28
#define TYPE_OPT 41
#define CLASS_IN 1
#define POINTER  (0xc000 | HEADER) /* to the question's name */
#define PAYLOAD  1232              /* bytes of a datagram that we take (EDNS) */

/* Of the third and fourth byte of the header. */
#define FLAG_ANSWER    0x80
#define OPCODE         0x78
#define FLAG_TRUNCATED 0x02
#define FLAG_WANTED    0x01 /* recursion: kept */
#define FLAG_OFFERED   0x80
#define FLAG_UNCHECKED 0x10 /* kept */

int names_add(struct names *names, const char *name, const char *address)
{
	struct names_entry *e = names->entry, *end = e + names->n;
	size_t length = strlen(name);

	while (e < end && strcasecmp(e->name, name))
		e++;
	if (e == end) {
		if (names->n == NAMES_MOST)
			return guise_fail(ENOSPC, "host: more than %d names", NAMES_MOST);
		if (!length || length >= sizeof(e->name))
			return guise_fail(EINVAL, "host: \"%s\" is no name", name);
		memset(e, 0, sizeof(*e));
		for (size_t i = 0; i < length; i++)
			e->name[i] = (char)tolower((unsigned char)name[i]);
	}
	if (!e->has_four && inet_pton(AF_INET, address, &e->four) == 1)
		e->has_four = true;
	else if (!e->has_six && inet_pton(AF_INET6, address, &e->six) == 1)
		e->has_six = true;
	else
		return guise_fail(EINVAL, "host: \"%s\" is no address, or one too many for %s",
				  address, name);
	names->n += e == end;
	return 0;
}

static unsigned int get16(const uint8_t *b)
{
	return (unsigned int)b[0] << 8 | b[1];
}

static uint8_t *put16(uint8_t *b, unsigned int value)
{
	b[0] = (uint8_t)(value >> 8);
	b[1] = (uint8_t)value;
	return b + 2;
}

/* The name at b as text; bytes of it, or 0: it has none that ends within n, or one of ours
 * could not look like that. */
static size_t read_name(const uint8_t *b, size_t n, char text[NAMES_LENGTH])
{
	size_t at = 0, out = 0;

	while (at < n && b[at]) {
		size_t label = b[at++];

		if (label > 63 || label >= n - at || out + label + 1 >= NAMES_LENGTH)
			return 0;
		if (out)
			text[out++] = '.';
		for (size_t i = 0; i < label; i++, at++) {
			if (!isalnum(b[at]) && b[at] != '-')
				return 0;
			text[out++] = (char)tolower(b[at]);
		}
	}
	text[out] = '\0';
	return at < n ? at + 1 : 0;
}

static uint8_t *put_record(uint8_t *b, unsigned int type, const void *data, size_t n)
{
	b = put16(b, POINTER);
	b = put16(b, type);
	b = put16(b, CLASS_IN);
	b = put16(b, 0);
	b = put16(b, 0); /* the time it may be kept */
	b = put16(b, (unsigned int)n);
	memcpy(b, data, n);
	return b + n;
}

/* Whoever sends an OPT record (EDNS, RFC 6891) is to get one. */
static uint8_t *put_opt(uint8_t *b)
{
	*b++ = 0; /* the root's name */
	b = put16(b, TYPE_OPT);
	b = put16(b, PAYLOAD);
	memset(b, 0, 6);
	return b + 6;
}

size_t names_answer(const struct names *names, const uint8_t *query, size_t length,
		    uint8_t answer[NAMES_ANSWER])
{
	const struct names_entry *e = names->entry, *end = e + names->n;
	const uint8_t *rest;
	char name[NAMES_LENGTH];
	unsigned int type, records = 0;
	size_t n, question;
	uint8_t *b;
	bool opt;

	if (length < HEADER || query[2] & (FLAG_ANSWER | OPCODE | FLAG_TRUNCATED) ||
	    get16(query + 4) != 1 || get16(query + 6) || get16(query + 8))
		return 0;
	n = read_name(query + HEADER, length - HEADER, name);
	question = HEADER + n + 4;
	if (!n || length < question)
		return 0;
	while (e < end && strcmp(e->name, name))
		e++;
	if (e == end || get16(query + question - 2) != CLASS_IN)
		return 0;
	type = get16(query + question - 4);
	rest = query + question;
	opt = get16(query + 10) && length - question >= 3 && !rest[0] &&
	      get16(rest + 1) == TYPE_OPT;

	memcpy(answer, query, question);
	b = answer + question;
	if (e->has_four && (type == TYPE_A || type == TYPE_ANY)) {
		b = put_record(b, TYPE_A, &e->four, sizeof(e->four));
		records++;
	}
	if (e->has_six && (type == TYPE_6 || type == TYPE_ANY)) {
		b = put_record(b, TYPE_6, &e->six, sizeof(e->six));
		records++;
	}
	if (opt)
		b = put_opt(b);
	answer[2] = (uint8_t)(FLAG_ANSWER | (query[2] & FLAG_WANTED));
	answer[3] = (uint8_t)(FLAG_OFFERED | (query[3] & FLAG_UNCHECKED));
	put16(answer + 6, records);
	put16(answer + 8, 0);
	put16(answer + 10, opt);
	return (size_t)(b - answer);
}
