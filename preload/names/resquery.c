// SPDX-License-Identifier: GPL-2.0-only
/*
 * res_query and its family: DNS messages as they are, for programs that parse
 * records themselves. The forms with a state (res_nquery) ask the same servers
 * as the others: the state's own list is not used.
 */
#include "preload/preload.h"
#include "preload/names/resolver.h"

#include <resolv.h>
#include <stdio.h>
#include <string.h>

struct message {
	unsigned char *answer;
	int room, n, status;
};

static void answered(void *data, int status, int timeouts, unsigned char *bytes, int n)
{
	struct message *m = data;

	(void)timeouts;
	m->status = status;
	if (status || !bytes)
		return;
	m->n = n < m->room ? n : m->room;
	memcpy(m->answer, bytes, (size_t)m->n);
}

static int result(const struct message *m)
{
	if (!m->status)
		return m->n;
	h_errno = resolver_h_errno(m->status);
	if (h_errno == TRY_AGAIN)
		errno = ETIMEDOUT;
	return -1;
}

typedef void (*question)(ares_channel, const char *, int, int, ares_callback, void *);

static int ask(question put, const char *name, int class, int type, unsigned char *answer, int room)
{
	struct message m = { .answer = answer, .room = room };
	struct resolver r;

	m.status = resolver_open(&r, 0);
	if (!m.status) {
		put(r.channel, name, class, type, answered, &m);
		resolver_run(&r);
		resolver_close(&r);
	}
	return result(&m);
}

HOOK int res_nquery(res_state state, const char *name, int class, int type, unsigned char *answer,
		    int room)
{
	if (!preload_stack())
		return HOST(res_nquery)(state, name, class, type, answer, room);
	return ask(ares_query, name, class, type, answer, room);
}

HOOK int res_nsearch(res_state state, const char *name, int class, int type, unsigned char *answer,
		     int room)
{
	if (!preload_stack())
		return HOST(res_nsearch)(state, name, class, type, answer, room);
	return ask(ares_search, name, class, type, answer, room);
}

HOOK int res_nquerydomain(res_state state, const char *name, const char *domain, int class,
			  int type, unsigned char *answer, int room)
{
	char whole[NS_MAXDNAME + 1];

	if (!preload_stack())
		return HOST(res_nquerydomain)(state, name, domain, class, type, answer, room);
	if (snprintf(whole, sizeof(whole), "%s%s%s", name, domain ? "." : "",
		     domain ? domain : "") >= (int)sizeof(whole)) {
		h_errno = NO_RECOVERY;
		return -1;
	}
	return ask(ares_query, whole, class, type, answer, room);
}

/* The answer counts whatever it says: its code is for the caller to read. */
HOOK int res_nsend(res_state state, const unsigned char *query, int n, unsigned char *answer,
		   int room)
{
	struct message m = { .answer = answer, .room = room };
	struct resolver r;

	if (!preload_stack())
		return HOST(res_nsend)(state, query, n, answer, room);
	m.status = resolver_open(&r, ARES_FLAG_NOCHECKRESP);
	if (!m.status) {
		ares_send(r.channel, query, n, answered, &m);
		resolver_run(&r);
		resolver_close(&r);
	}
	return result(&m);
}

HOOK int res_query(const char *name, int class, int type, unsigned char *answer, int room)
{
	if (!preload_stack())
		return HOST(res_query)(name, class, type, answer, room);
	return ask(ares_query, name, class, type, answer, room);
}

HOOK int res_search(const char *name, int class, int type, unsigned char *answer, int room)
{
	if (!preload_stack())
		return HOST(res_search)(name, class, type, answer, room);
	return ask(ares_search, name, class, type, answer, room);
}

HOOK int res_querydomain(const char *name, const char *domain, int class, int type,
			 unsigned char *answer, int room)
{
	if (!preload_stack())
		return HOST(res_querydomain)(name, domain, class, type, answer, room);
	return res_nquerydomain(NULL, name, domain, class, type, answer, room);
}

HOOK int res_send(const unsigned char *query, int n, unsigned char *answer, int room)
{
	if (!preload_stack())
		return HOST(res_send)(query, n, answer, room);
	return res_nsend(NULL, query, n, answer, room);
}

/* Programs linked before glibc 2.34 know them by these names. */
HOOK int __res_nquery(res_state state, const char *name, int class, int type, unsigned char *answer,
		      int room) SAME_AS(res_nquery);
HOOK int __res_nsearch(res_state state, const char *name, int class, int type,
		       unsigned char *answer, int room) SAME_AS(res_nsearch);
HOOK int __res_nquerydomain(res_state state, const char *name, const char *domain, int class,
			    int type, unsigned char *answer, int room) SAME_AS(res_nquerydomain);
HOOK int __res_nsend(res_state state, const unsigned char *query, int n, unsigned char *answer,
		     int room) SAME_AS(res_nsend);
HOOK int __res_query(const char *name, int class, int type, unsigned char *answer, int room)
	SAME_AS(res_query);
HOOK int __res_search(const char *name, int class, int type, unsigned char *answer, int room)
	SAME_AS(res_search);
HOOK int __res_querydomain(const char *name, const char *domain, int class, int type,
			   unsigned char *answer, int room) SAME_AS(res_querydomain);
HOOK int __res_send(const unsigned char *query, int n, unsigned char *answer, int room)
	SAME_AS(res_send);
