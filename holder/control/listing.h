/* SPDX-License-Identifier: GPL-2.0-only */
/* The connections of a stack, page by page; listing.c has the theory. */
#ifndef GUISE_HOLDER_LISTING_H
#define GUISE_HOLDER_LISTING_H

#include "setup/connection.h"

#include <stdio.h>

/* A page has fewer bytes; it is one packet of the control socket. */
#define LISTING_PAGE 32768

struct place;

struct listing {
	bool open;
	struct guise_nl_dump dump;
	unsigned int part; /* of which dump, of several */
	uint64_t given;    /* connections, in the pages so far */
	struct place *places;
	size_t n_places;
	uint64_t *cookies; /* of the first round */
	size_t n_cookies;
};

void listing_init(struct listing *l);
/*
 * The page that begins with connection number `from`: JSON, to be freed. from is 0, or what
 * the page before named as the next. NULL, with a sentence: there is no such page.
 */
char *listing_page(struct listing *l, struct guise_stack *s, uint64_t from);
void listing_end(struct listing *l);

/* The row of one connection; interface: its name, or NULL. */
void listing_row(FILE *out, const struct guise_connection *c, const char *interface);

#endif
