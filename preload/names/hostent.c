// SPDX-License-Identifier: GPL-2.0-only
/*
 * gethostbyname, gethostbyaddr and their forms: what getaddrinfo replaced, and
 * many programs still call. The answer is copied into the caller's buffer, or
 * into one that lives until the next call.
 */
#include "preload/locks.h"
#include "preload/preload.h"
#include "preload/names/resolver.h"

#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Where an answer goes. */
struct place {
	struct hostent *host;
	char *at, *end;
};

struct question {
	struct place place;
	int status;
	bool too_small;
};

static void *take(struct place *p, size_t bytes, size_t align)
{
	char *at = p->at + (-(uintptr_t)p->at & (align - 1));

	if (at > p->end || (size_t)(p->end - at) < bytes)
		return NULL;
	p->at = at + bytes;
	return at;
}

static size_t length(char *const *list)
{
	size_t n = 0;

	while (list[n])
		n++;
	return n;
}

static char **take_list(struct place *p, char *const *from)
{
	return take(p, (length(from) + 1) * sizeof(char *), _Alignof(char *));
}

static char *take_copy(struct place *p, const char *from, size_t bytes, size_t align)
{
	char *to = take(p, bytes, align);

	return to ? memcpy(to, from, bytes) : NULL;
}

static bool copy_addresses(struct place *p, struct hostent *to, const struct hostent *from)
{
	char **list = to->h_addr_list = take_list(p, from->h_addr_list);

	if (!list)
		return false;
	for (char **a = from->h_addr_list; *a; a++) {
		*list = take_copy(p, *a, (size_t)from->h_length, _Alignof(struct in6_addr));
		if (!*list++)
			return false;
	}
	*list = NULL;
	return true;
}

/* c-ares gives the name of an address among its aliases, too. */
static bool copy_names(struct place *p, struct hostent *to, const struct hostent *from)
{
	char **list = to->h_aliases = take_list(p, from->h_aliases);

	to->h_name = list ? take_copy(p, from->h_name, strlen(from->h_name) + 1, 1) : NULL;
	if (!to->h_name)
		return false;
	for (char **a = from->h_aliases; *a; a++) {
		if (!strcasecmp(*a, from->h_name))
			continue;
		*list = take_copy(p, *a, strlen(*a) + 1, 1);
		if (!*list++)
			return false;
	}
	*list = NULL;
	return true;
}

static bool copy(struct place *p, const struct hostent *from)
{
	struct hostent *to = p->host;

	to->h_addrtype = from->h_addrtype;
	to->h_length = from->h_length;
	return copy_addresses(p, to, from) && copy_names(p, to, from);
}

static void answered(void *data, int status, int timeouts, struct hostent *host)
{
	struct question *q = data;

	(void)timeouts;
	q->status = status;
	if (!status)
		q->too_small = !copy(&q->place, host);
}

/* As the _r calls return: 0 (*result NULL: there is none) or an errno. */
static int reply(const struct question *q, struct hostent **result, int *error)
{
	*result = NULL;
	if (q->too_small) {
		*error = NETDB_INTERNAL;
		errno = ERANGE;
		return ERANGE;
	}
	*error = resolver_h_errno(q->status);
	switch (*error) {
	case NETDB_SUCCESS:
		*result = q->place.host;
		return 0;
	case HOST_NOT_FOUND:
	case NO_DATA:
		return 0;
	case TRY_AGAIN:
		return EAGAIN;
	default:
		return EINVAL;
	}
}

HOOK int gethostbyname2_r(const char *name, int family, struct hostent *host, char *buf, size_t n,
			  struct hostent **result, int *error)
{
	struct question q = { .place = { host, buf, buf + n }, .status = ARES_ENOTFOUND };
	char room[RESOLVER_NAME_ROOM];
	struct resolver r;
	int err;

	if (!preload_stack())
		return HOST(gethostbyname2_r)(name, family, host, buf, n, result, error);
	if (family != AF_INET && family != AF_INET6) {
		*result = NULL;
		*error = NETDB_INTERNAL;
		errno = EAFNOSUPPORT;
		return EAFNOSUPPORT;
	}
	err = resolver_open(&r, 0);
	if (err) {
		q.status = err;
	} else {
		ares_gethostbyname(r.channel, resolver_name(name, family, room), family, answered,
				   &q);
		resolver_run(&r);
		resolver_close(&r);
	}
	return reply(&q, result, error);
}

HOOK int gethostbyname_r(const char *name, struct hostent *host, char *buf, size_t n,
			 struct hostent **result, int *error)
{
	if (!preload_stack())
		return HOST(gethostbyname_r)(name, host, buf, n, result, error);
	return gethostbyname2_r(name, AF_INET, host, buf, n, result, error);
}

HOOK int gethostbyaddr_r(const void *addr, socklen_t len, int family, struct hostent *host,
			 char *buf, size_t n, struct hostent **result, int *error)
{
	struct question q = { .place = { host, buf, buf + n }, .status = ARES_ENOTFOUND };
	struct resolver r;
	int err;

	if (!preload_stack())
		return HOST(gethostbyaddr_r)(addr, len, family, host, buf, n, result, error);
	err = resolver_open(&r, 0);
	if (err) {
		q.status = err;
	} else {
		ares_gethostbyaddr(r.channel, addr, (int)len, family, answered, &q);
		resolver_run(&r);
		resolver_close(&r);
	}
	return reply(&q, result, error);
}

/* ---- the forms without a buffer: one, shared by them all, as in libc -------- */

struct answer {
	struct hostent host;
	char *buf;
	size_t size;
};

static struct answer last;

static bool grow(struct answer *a)
{
	size_t size = a->size ? 2 * a->size : 1024;
	char *buf = realloc(a->buf, size);

	if (!buf)
		return false;
	a->buf = buf;
	a->size = size;
	return true;
}

/* Where the program finds it until the next one. No name is looked up under the lock. */
static struct hostent *keep(const struct hostent *found)
{
	struct place place;
	bool kept;

	guise_own_lock(PRELOAD_LOCK_HOST);
	do {
		place = (struct place){ &last.host, last.buf, last.buf + last.size };
		kept = last.size && copy(&place, found);
	} while (!kept && grow(&last));
	guise_own_unlock(PRELOAD_LOCK_HOST);
	return kept ? &last.host : NULL;
}

/* What the _r call said, in a buffer that was long enough or could not be. */
static struct hostent *tell(const struct hostent *result, struct answer *own, int error)
{
	struct hostent *kept = result ? keep(result) : NULL;

	free(own->buf);
	if (!kept)
		h_errno = result ? NETDB_INTERNAL : error;
	return kept;
}

HOOK struct hostent *gethostbyname2(const char *name, int family)
{
	int error = NETDB_INTERNAL, err = ERANGE;
	struct hostent *result = NULL;
	struct answer own = { 0 };

	if (!preload_stack())
		return HOST(gethostbyname2)(name, family);
	while (err == ERANGE && grow(&own))
		err = gethostbyname2_r(name, family, &own.host, own.buf, own.size, &result, &error);
	return tell(result, &own, error);
}

HOOK struct hostent *gethostbyname(const char *name)
{
	return preload_stack() ? gethostbyname2(name, AF_INET) : HOST(gethostbyname)(name);
}

HOOK struct hostent *gethostbyaddr(const void *addr, socklen_t len, int family)
{
	int error = NETDB_INTERNAL, err = ERANGE;
	struct hostent *result = NULL;
	struct answer own = { 0 };

	if (!preload_stack())
		return HOST(gethostbyaddr)(addr, len, family);
	while (err == ERANGE && grow(&own))
		err = gethostbyaddr_r(addr, len, family, &own.host, own.buf, own.size, &result,
				      &error);
	return tell(result, &own, error);
}
