// SPDX-License-Identifier: GPL-2.0-only
/*
 * getnameinfo: the name of an address by the resolver, the name of a port by
 * libc (that one is a file's matter), numbers where there is no name or none
 * is wanted.
 */
#include "preload/preload.h"
#include "preload/names/resolver.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* NI_IDN_ALLOW_UNASSIGNED and NI_IDN_USE_STD3_ASCII_RULES: libc takes them and does nothing. */
#define OLD_IDN_FLAGS 0xc0
#define KNOWN_FLAGS                                                                      \
	(NI_NUMERICHOST | NI_NUMERICSERV | NI_NOFQDN | NI_NAMEREQD | NI_DGRAM | NI_IDN | \
	 OLD_IDN_FLAGS)

static int copy(char *to, socklen_t room, const char *text)
{
	size_t n = strlen(text);

	if (n >= room)
		return EAI_OVERFLOW;
	memcpy(to, text, n + 1);
	return 0;
}

/* NI_NOFQDN: without the domain, where it is this machine's own. */
static void cut_domain(char *name)
{
	char own[NI_MAXHOST] = "";
	const char *domain;
	size_t n = strlen(name), m;

	if (gethostname(own, sizeof(own) - 1))
		return;
	domain = strchr(own, '.');
	m = domain ? strlen(domain) : 0;
	if (m && n > m && !strcasecmp(name + n - m, domain))
		name[n - m] = 0;
}

struct name {
	int status;
	char text[NI_MAXHOST];
};

static void answered(void *data, int status, int timeouts, struct hostent *host)
{
	struct name *name = data;

	(void)timeouts;
	name->status = status;
	if (!status)
		snprintf(name->text, sizeof(name->text), "%s", host->h_name);
}

static int look_up(const struct sockaddr *addr, char *to, socklen_t room, int flags)
{
	const struct sockaddr_in *in = (const void *)addr;
	const struct sockaddr_in6 *in6 = (const void *)addr;
	struct name name = { .status = ARES_ENOTFOUND };
	struct resolver r;
	int err;

	err = resolver_open(&r, 0);
	if (err)
		return resolver_eai(err);
	if (addr->sa_family == AF_INET)
		ares_gethostbyaddr(r.channel, &in->sin_addr, sizeof(in->sin_addr), AF_INET,
				   answered, &name);
	else
		ares_gethostbyaddr(r.channel, &in6->sin6_addr, sizeof(in6->sin6_addr), AF_INET6,
				   answered, &name);
	resolver_run(&r);
	resolver_close(&r);
	if (name.status)
		return resolver_eai(name.status);
	if (flags & NI_NOFQDN)
		cut_domain(name.text);
	return copy(to, room, name.text);
}

static int number(const struct sockaddr *addr, char *to, socklen_t room)
{
	const struct sockaddr_in *in = (const void *)addr;
	const struct sockaddr_in6 *in6 = (const void *)addr;
	char text[INET6_ADDRSTRLEN + 1 + IF_NAMESIZE];
	char name[IF_NAMESIZE];
	size_t n;

	if (addr->sa_family == AF_INET) {
		inet_ntop(AF_INET, &in->sin_addr, text, sizeof(text));
		return copy(to, room, text);
	}
	inet_ntop(AF_INET6, &in6->sin6_addr, text, sizeof(text));
	n = strlen(text);
	if (in6->sin6_scope_id) {
		bool local = IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr) ||
			     IN6_IS_ADDR_MC_LINKLOCAL(&in6->sin6_addr);

		if (local && if_indextoname(in6->sin6_scope_id, name))
			snprintf(text + n, sizeof(text) - n, "%%%s", name);
		else
			snprintf(text + n, sizeof(text) - n, "%%%u", in6->sin6_scope_id);
	}
	return copy(to, room, text);
}

static int host_name(const struct sockaddr *addr, char *host, socklen_t room, int flags)
{
	int err = EAI_NONAME;

	if (!(flags & NI_NUMERICHOST))
		err = look_up(addr, host, room, flags);
	if (err == EAI_NONAME || err == EAI_NODATA)
		err = flags & NI_NAMEREQD ? EAI_NONAME : number(addr, host, room);
	return err;
}

static int service_name(in_port_t port, char *service, socklen_t room, int flags)
{
	struct servent entry, *found = NULL;
	char buf[1024], text[8];

	if (!(flags & NI_NUMERICSERV) &&
	    !getservbyport_r(port, flags & NI_DGRAM ? "udp" : "tcp", &entry, buf, sizeof(buf),
			     &found) &&
	    found)
		return copy(service, room, found->s_name);
	snprintf(text, sizeof(text), "%u", ntohs(port));
	return copy(service, room, text);
}

HOOK int getnameinfo(const struct sockaddr *addr, socklen_t len, char *host, socklen_t host_room,
		     char *service, socklen_t service_room, int flags)
{
	bool inet;
	int err = 0;

	inet = addr && ((addr->sa_family == AF_INET && len >= sizeof(struct sockaddr_in)) ||
			(addr->sa_family == AF_INET6 && len >= sizeof(struct sockaddr_in6)));
	if (!inet || !preload_stack())
		return HOST(getnameinfo)(addr, len, host, host_room, service, service_room, flags);
	if (flags & ~KNOWN_FLAGS)
		return EAI_BADFLAGS;
	if (flags & NI_NAMEREQD && !host && !service)
		return EAI_NONAME;
	if (host && host_room)
		err = host_name(addr, host, host_room, flags);
	/* The port is at the same place in both families' addresses. */
	if (!err && service && service_room)
		err = service_name(((const struct sockaddr_in *)(const void *)addr)->sin_port,
				   service, service_room, flags);
	return err;
}
