// SPDX-License-Identifier: GPL-2.0-only
/* See service.h. The rules and their order are libc's. */
#include "preload/names/service.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>

static const struct kind {
	int socktype, protocol;
	bool usual; /* among the answers when nothing was asked for */
	bool any_protocol;
	bool no_services; /* no names, no ports by name */
	const char *name;
} kinds[] = {
	{ .socktype = SOCK_STREAM, .protocol = IPPROTO_TCP, .usual = true, .name = "tcp" },
	{ .socktype = SOCK_DGRAM, .protocol = IPPROTO_UDP, .usual = true, .name = "udp" },
	{ .socktype = SOCK_DCCP, .protocol = IPPROTO_DCCP, .name = "dccp" },
	{ .socktype = SOCK_DGRAM, .protocol = IPPROTO_UDPLITE, .name = "udplite" },
	{ .socktype = SOCK_STREAM, .protocol = IPPROTO_SCTP, .name = "sctp" },
	{ .socktype = SOCK_SEQPACKET, .protocol = IPPROTO_SCTP, .name = "sctp" },
	{ .socktype = SOCK_RAW,
	  .usual = true,
	  .any_protocol = true,
	  .no_services = true,
	  .name = "raw" },
};

#define KINDS (sizeof(kinds) / sizeof(*kinds))

_Static_assert(KINDS <= SERVICES_MAX, "a list has room for one service of each kind");

static bool matches(const struct kind *k, const struct addrinfo *hints)
{
	return (!hints->ai_socktype || hints->ai_socktype == k->socktype) &&
	       (!hints->ai_protocol || k->any_protocol || hints->ai_protocol == k->protocol);
}

static void add(struct service *to, const struct kind *k, const struct addrinfo *hints,
		in_port_t port)
{
	to->socktype = k->socktype;
	to->protocol = k->any_protocol ? hints->ai_protocol : k->protocol;
	to->port = port;
}

/* 1: found; 0: there is none; EAI_MEMORY. */
static int look_up(const char *name, const struct kind *k, in_port_t *port)
{
	struct servent entry, *found = NULL;
	size_t size = 1024;
	char *buf = NULL, *more;
	int err;

	do {
		more = realloc(buf, size);
		if (!more) {
			free(buf);
			return EAI_MEMORY;
		}
		buf = more;
		size *= 2;
		err = getservbyname_r(name, k->name, &entry, buf, size / 2, &found);
	} while (err == ERANGE);
	if (found)
		*port = (in_port_t)entry.s_port;
	free(buf);
	return found != NULL;
}

static int by_name(const char *name, const struct addrinfo *hints, struct service *list)
{
	in_port_t port;
	int n = 0, ret;

	for (size_t i = 0; i < KINDS; i++) {
		if (kinds[i].no_services || !matches(&kinds[i], hints))
			continue;
		ret = look_up(name, &kinds[i], &port);
		if (ret < 0)
			return ret;
		if (ret)
			add(&list[n++], &kinds[i], hints, port);
		/* One kind was asked for: the first that fits is it. */
		if (hints->ai_socktype || hints->ai_protocol)
			break;
	}
	return n ? n : EAI_SERVICE;
}

int service_find(const char *name, const struct addrinfo *hints, struct service list[SERVICES_MAX])
{
	bool asked = hints->ai_socktype || hints->ai_protocol, named = false;
	const struct kind *first = kinds;
	unsigned long port = 0;
	char *end;
	int n = 0;

	/* "-1" is a name to libc. */
	if (name && *name) {
		port = strtoul(name, &end, 10);
		if (*end && hints->ai_flags & AI_NUMERICSERV)
			return EAI_NONAME;
		named = *end || (int)port == -1;
	}
	while (asked && first < kinds + KINDS && !matches(first, hints))
		first++;
	if (first == kinds + KINDS)
		return hints->ai_socktype ? EAI_SOCKTYPE : EAI_SERVICE;
	if (name && *name) {
		if (asked && first->no_services)
			return EAI_SERVICE;
		if (named)
			return by_name(name, hints, list);
	}
	if (asked) {
		add(&list[0], first, hints, htons((in_port_t)port));
		return 1;
	}
	for (size_t i = 0; i < KINDS; i++)
		if (kinds[i].usual)
			add(&list[n++], &kinds[i], hints, htons((in_port_t)port));
	return n;
}
