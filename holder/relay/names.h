/* SPDX-License-Identifier: GPL-2.0-only */
/* The few names that the relay itself knows, and answers to questions of DNS about them. */
#ifndef GUISE_HOLDER_NAMES_H
#define GUISE_HOLDER_NAMES_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NAMES_MOST   8
#define NAMES_LENGTH 128 /* of one */
#define NAMES_ANSWER 512 /* bytes, that the longest answer fits into */

struct names {
	struct names_entry {
		char name[NAMES_LENGTH]; /* a.b.c, in small letters */
		struct in_addr four;
		struct in6_addr six;
		bool has_four, has_six;
	} entry[NAMES_MOST];
	unsigned int n;
};

/* One more address of that name, the only one of its family; 0 or -errno with a sentence. */
int names_add(struct names *names, const char *name, const char *address);

/*
 * Answers a query of that length, without the length that stands before it over TCP. The
 * answer's length, or 0: it is no query, or about a name that somebody else may know.
 */
size_t names_answer(const struct names *names, const uint8_t *query, size_t length,
		    uint8_t answer[NAMES_ANSWER]);

#endif
