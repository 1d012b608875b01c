// SPDX-License-Identifier: GPL-2.0-only
/*
 * getaddrinfo.
 *
 * Addresses come from one of: nothing (any, or loopback), a number, or the
 * resolver; each is combined with every service that the question means
 * (service.c). The answer is laid out as libc lays it out, one block for a
 * node and its address, so that libc's freeaddrinfo() frees it.
 *
 * The resolver's answers are in the order of RFC 6724, by the sources that
 * the stack would choose. AI_IDN: only names that are ASCII already.
 */
#include "preload/preload.h"
#include "preload/names/resolver.h"
#include "preload/names/service.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <ifaddrs.h>
#include <stdlib.h>
#include <string.h>

/* AI_IDN_ALLOW_UNASSIGNED and AI_IDN_USE_STD3_ASCII_RULES: libc takes them and does nothing. */
#define OLD_IDN_FLAGS 0x300
#define KNOWN_FLAGS                                                                 \
	(AI_PASSIVE | AI_CANONNAME | AI_NUMERICHOST | AI_ADDRCONFIG | AI_V4MAPPED | \
	 AI_NUMERICSERV | AI_ALL | AI_IDN | AI_CANONIDN | OLD_IDN_FLAGS)

#define ADDRESSES_MAX 64 /* more than DNS gives over UDP */

union address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

struct answer {
	union address address[ADDRESSES_MAX];
	int n, status;
	bool map_v4; /* IPv4 addresses become ::ffff:a.b.c.d */
	char *canonical;
};

static void add_v4(struct answer *a, const struct in_addr *in)
{
	union address *to = &a->address[a->n];

	if (a->n == ADDRESSES_MAX)
		return;
	memset(to, 0, sizeof(*to));
	if (a->map_v4) {
		to->in6.sin6_family = AF_INET6;
		memset(to->in6.sin6_addr.s6_addr + 10, 0xff, 2);
		memcpy(to->in6.sin6_addr.s6_addr + 12, in, sizeof(*in));
	} else {
		to->in.sin_family = AF_INET;
		to->in.sin_addr = *in;
	}
	a->n++;
}

static void add_v6(struct answer *a, const struct in6_addr *in6, uint32_t scope)
{
	union address *to = &a->address[a->n];

	if (a->n == ADDRESSES_MAX)
		return;
	memset(to, 0, sizeof(*to));
	to->in6.sin6_family = AF_INET6;
	to->in6.sin6_addr = *in6;
	to->in6.sin6_scope_id = scope;
	a->n++;
}

/* No name: the address to bind to, or this machine's own. RFC 6724 decides the order. */
static void add_unnamed(struct answer *a, const struct addrinfo *hints)
{
	bool passive = hints->ai_flags & AI_PASSIVE;
	struct in_addr in = { htonl(passive ? INADDR_ANY : INADDR_LOOPBACK) };

	if (hints->ai_family != AF_INET6 && passive)
		add_v4(a, &in);
	if (hints->ai_family != AF_INET)
		add_v6(a, passive ? &in6addr_any : &in6addr_loopback, 0);
	if (hints->ai_family != AF_INET6 && !passive)
		add_v4(a, &in);
}

/* The scope of "fe80::1%eth0": 0 if there is none, -1 if it is not one. */
static long scope_of(const char *text, const struct in6_addr *in6)
{
	unsigned int index = 0;
	char *end;
	long n;

	if (IN6_IS_ADDR_LINKLOCAL(in6) || IN6_IS_ADDR_MC_LINKLOCAL(in6))
		index = if_nametoindex(text);
	if (index)
		return index;
	if (!isdigit((unsigned char)*text))
		return -1;
	n = strtol(text, &end, 10);
	return *end || n > UINT32_MAX ? -1 : n;
}

/* 1: host is a number, and was added; 0: it is none; EAI_*. */
static int add_numeric(struct answer *a, const char *host, const struct addrinfo *hints)
{
	char text[INET6_ADDRSTRLEN];
	size_t n = strcspn(host, "%");
	struct in6_addr in6;
	struct in_addr in;
	long scope = 0;

	/* inet_aton() accepts a name after a blank. */
	if (!host[strcspn(host, " \t\r\n\v\f")] && inet_aton(host, &in)) {
		a->map_v4 = hints->ai_family == AF_INET6;
		if (a->map_v4 && !(hints->ai_flags & AI_V4MAPPED))
			return EAI_ADDRFAMILY;
		add_v4(a, &in);
		return 1;
	}
	if (n >= sizeof(text))
		return 0;
	memcpy(text, host, n);
	text[n] = 0;
	if (inet_pton(AF_INET6, text, &in6) != 1)
		return 0;
	if (hints->ai_family == AF_INET) {
		if (!IN6_IS_ADDR_V4MAPPED(&in6))
			return EAI_ADDRFAMILY;
		memcpy(&in, in6.s6_addr + 12, sizeof(in));
		add_v4(a, &in);
		return 1;
	}
	if (host[n])
		scope = scope_of(host + n + 1, &in6);
	if (scope < 0)
		return EAI_NONAME;
	add_v6(a, &in6, (uint32_t)scope);
	return 1;
}

static void answered(void *data, int status, int timeouts, struct ares_addrinfo *result)
{
	struct ares_addrinfo_cname *cname;
	struct answer *a = data;
	const char *canonical;

	(void)timeouts;
	a->status = status;
	if (status)
		return;
	for (struct ares_addrinfo_node *node = result->nodes; node; node = node->ai_next) {
		const struct sockaddr_in6 *in6 = (const void *)node->ai_addr;

		if (node->ai_family == AF_INET)
			add_v4(a, &((const struct sockaddr_in *)(const void *)node->ai_addr)
					   ->sin_addr);
		else if (node->ai_family == AF_INET6)
			add_v6(a, &in6->sin6_addr, in6->sin6_scope_id);
	}
	canonical = result->name;
	for (cname = result->cnames; cname; cname = cname->next)
		canonical = cname->name;
	if (canonical && !a->canonical)
		a->canonical = strdup(canonical);
	ares_freeaddrinfo(result);
}

static void ask(struct answer *a, const char *host, int family, int flags)
{
	struct ares_addrinfo_hints hints = {
		.ai_family = family,
		.ai_flags = flags & AI_CANONNAME ? ARES_AI_CANONNAME : 0,
	};
	char room[RESOLVER_NAME_ROOM];
	struct resolver r;

	a->status = resolver_open(&r, 0);
	if (a->status)
		return;
	ares_getaddrinfo(r.channel, resolver_name(host, family, room), NULL, &hints, answered, a);
	resolver_run(&r);
	resolver_close(&r);
}

static int add_named(struct answer *a, const char *host, const struct addrinfo *hints)
{
	for (const char *c = host; hints->ai_flags & AI_IDN && *c; c++)
		if (*c & 0x80)
			return EAI_IDN_ENCODE;
	/* No name at all: nobody is asked. */
	if (!host[strspn(host, " \t\r\n\v\f")])
		return EAI_NONAME;
	ask(a, host, hints->ai_family, hints->ai_flags);
	if (hints->ai_family == AF_INET6 && hints->ai_flags & AI_V4MAPPED &&
	    (a->status || hints->ai_flags & AI_ALL)) {
		a->map_v4 = true;
		ask(a, host, AF_INET, hints->ai_flags);
	}
	return a->n ? 0 : resolver_eai(a->status ? a->status : ARES_ENODATA);
}

/* AI_ADDRCONFIG: the family that this machine has addresses of, if it is one. */
static int configured_family(int family)
{
	bool v4 = false, v6 = false;
	struct ifaddrs *list, *i;

	if (getifaddrs(&list))
		return family;
	for (i = list; i; i = i->ifa_next) {
		const struct sockaddr_in *in = (const void *)i->ifa_addr;
		const struct sockaddr_in6 *in6 = (const void *)i->ifa_addr;

		if (!in)
			continue;
		if (in->sin_family == AF_INET)
			v4 |= in->sin_addr.s_addr != htonl(INADDR_LOOPBACK);
		else if (in->sin_family == AF_INET6)
			v6 |= !IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
	}
	freeifaddrs(list);
	if (family == AF_UNSPEC)
		return v4 == v6 ? AF_UNSPEC : v4 ? AF_INET : AF_INET6;
	return (family == AF_INET ? v4 : v6) ? family : -1;
}

static struct addrinfo *make_node(const union address *address, const struct service *service,
				  int flags)
{
	socklen_t len = address->any.sa_family == AF_INET ? sizeof(address->in)
							  : sizeof(address->in6);
	struct addrinfo *node = calloc(1, sizeof(*node) + len);

	if (!node)
		return NULL;
	node->ai_flags = flags;
	node->ai_family = address->any.sa_family;
	node->ai_socktype = service->socktype;
	node->ai_protocol = service->protocol;
	node->ai_addrlen = len;
	node->ai_addr = memcpy(node + 1, address, len);
	/* The port is at the same place in both. */
	((struct sockaddr_in *)(void *)node->ai_addr)->sin_port = service->port;
	return node;
}

static int combine(const struct answer *a, const struct service *services, int n, int flags,
		   struct addrinfo **result)
{
	struct addrinfo *first = NULL, **next = &first;

	for (int i = 0; i < a->n; i++)
		for (int k = 0; k < n; k++) {
			*next = make_node(&a->address[i], &services[k], flags);
			if (!*next) {
				freeaddrinfo(first);
				return EAI_MEMORY;
			}
			next = &(*next)->ai_next;
		}
	*result = first;
	return 0;
}

static int find(const char *host, const char *service, const struct addrinfo *hints,
		struct answer *a, struct addrinfo **result)
{
	struct service services[SERVICES_MAX];
	int n, err;

	n = service_find(service, hints, services);
	if (n < 0)
		return n;
	if (!host) {
		add_unnamed(a, hints);
	} else {
		err = add_numeric(a, host, hints);
		if (!err)
			err = hints->ai_flags & AI_NUMERICHOST ? EAI_NONAME
							       : add_named(a, host, hints);
		if (err < 0)
			return err;
	}
	err = combine(a, services, n, hints->ai_flags, result);
	if (err || !(hints->ai_flags & AI_CANONNAME))
		return err;
	(*result)->ai_canonname = strdup(a->canonical ? a->canonical : host);
	if ((*result)->ai_canonname)
		return 0;
	freeaddrinfo(*result);
	return EAI_MEMORY;
}

HOOK int getaddrinfo(const char *host, const char *service, const struct addrinfo *given,
		     struct addrinfo **result)
{
	struct addrinfo hints = { .ai_flags = AI_V4MAPPED | AI_ADDRCONFIG };
	struct answer *a;
	int err;

	if (!preload_stack())
		return HOST(getaddrinfo)(host, service, given, result);
	if (given)
		hints = *given;
	if (host && !strcmp(host, "*"))
		host = NULL;
	if (service && !strcmp(service, "*"))
		service = NULL;
	if (!host && !service)
		return EAI_NONAME;
	if (hints.ai_flags & ~KNOWN_FLAGS || (hints.ai_flags & AI_CANONNAME && !host))
		return EAI_BADFLAGS;
	if (hints.ai_family != AF_UNSPEC && hints.ai_family != AF_INET &&
	    hints.ai_family != AF_INET6)
		return EAI_FAMILY;
	if (hints.ai_flags & AI_ADDRCONFIG) {
		hints.ai_family = configured_family(hints.ai_family);
		if (hints.ai_family < 0)
			return EAI_NONAME;
	}
	a = calloc(1, sizeof(*a));
	if (!a)
		return EAI_MEMORY;
	err = find(host, service, &hints, a, result);
	free(a->canonical);
	free(a);
	return err;
}
