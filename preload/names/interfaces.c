// SPDX-License-Identifier: GPL-2.0-only
/*
 * getifaddrs and the names of interfaces. libc asks netlink over a socket of
 * its own, which no hook sees; here the same questions go to the stack. The
 * answers are laid out so that libc's freeifaddrs() and if_freenameindex(),
 * which are not hooked, free them: one block that starts with the first
 * interface, and a name each beside the array.
 */
#include "preload/preload.h"

#include <ifaddrs.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netpacket/packet.h>
#include <stdlib.h>
#include <string.h>

#define REPLY   32768 /* the kernel never puts more into one message of a dump */
#define LONG_LL 24    /* bytes of the longest link address (InfiniBand), rounded up */

union address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr_ll ll;
	char room[sizeof(struct sockaddr_ll) + LONG_LL];
};

/* ifa comes first: the block of all entries is freed by the first one's address. */
struct entry {
	struct ifaddrs ifa;
	unsigned int index;
	char name[IF_NAMESIZE];
	union address addr, mask, other; /* other: broadcast, or the far end */
	struct rtnl_link_stats stats;
};

struct entries {
	struct entry *at;
	size_t n, links; /* the first `links` are interfaces, the rest addresses */
	bool no_memory;
};

typedef void (*taker)(struct entries *to, struct nlmsghdr *h);

/* One dump of rtnetlink: 0 or -errno. */
static long dump(struct guise_stack *s, uint16_t type, taker take, struct entries *to)
{
	struct {
		struct nlmsghdr h;
		struct rtgenmsg g;
	} ask = {
		.h = { .nlmsg_len = sizeof(ask),
		       .nlmsg_type = type,
		       .nlmsg_seq = 1,
		       .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		.g = { .rtgen_family = AF_UNSPEC },
	};
	char *reply = malloc(REPLY);
	long sfd, n = -ENOMEM;
	bool done = false;

	if (!reply)
		return n;
	sfd = guise_call(s, GUISE_NR_socket, AF_NETLINK, SOCK_RAW, NETLINK_ROUTE, 0, 0, 0);
	if (sfd < 0) {
		free(reply);
		return sfd;
	}
	n = guise_call(s, GUISE_NR_sendto, sfd, (long)&ask, sizeof(ask), 0, 0, 0);
	while (n > 0 && !done) {
		struct nlmsghdr *h = (void *)reply;

		n = guise_call(s, GUISE_NR_recvfrom, sfd, (long)reply, REPLY, 0, 0, 0);
		for (long left = n; NLMSG_OK(h, left) && !done; h = NLMSG_NEXT(h, left)) {
			done = h->nlmsg_type == NLMSG_DONE || h->nlmsg_type == NLMSG_ERROR;
			if (!done)
				take(to, h);
		}
	}
	guise_call(s, GUISE_NR_close, sfd, 0, 0, 0, 0, 0);
	free(reply);
	return n < 0 ? n : to->no_memory ? -ENOMEM : 0;
}

static struct entry *add(struct entries *to)
{
	struct entry *more;

	/* Room doubles at each power of two. */
	if (!(to->n & (to->n - 1))) {
		more = realloc(to->at, (to->n ? 2 * to->n : 1) * sizeof(*more));
		if (!more) {
			to->no_memory = true;
			return NULL;
		}
		to->at = more;
	}
	memset(&to->at[to->n], 0, sizeof(*to->at));
	return &to->at[to->n++];
}

static void take_name(struct entry *e, const struct rtattr *a)
{
	size_t n = RTA_PAYLOAD(a);

	memcpy(e->name, RTA_DATA(a), n < IF_NAMESIZE ? n : IF_NAMESIZE - 1);
}

static void take_link_address(union address *to, const struct ifinfomsg *i, const struct rtattr *a)
{
	size_t n = RTA_PAYLOAD(a);

	if (n > sizeof(*to) - offsetof(struct sockaddr_ll, sll_addr))
		return;
	to->ll.sll_family = AF_PACKET;
	to->ll.sll_ifindex = i->ifi_index;
	to->ll.sll_hatype = i->ifi_type;
	to->ll.sll_halen = (unsigned char)n;
	memcpy(to->room + offsetof(struct sockaddr_ll, sll_addr), RTA_DATA(a), n);
}

static void take_link(struct entries *to, struct nlmsghdr *h)
{
	struct ifinfomsg *i = NLMSG_DATA(h);
	long left = IFLA_PAYLOAD(h);
	struct entry *e;

	e = h->nlmsg_type == RTM_NEWLINK ? add(to) : NULL;
	if (!e)
		return;
	e->index = (unsigned int)i->ifi_index;
	e->ifa.ifa_flags = i->ifi_flags;
	e->addr.ll = (struct sockaddr_ll){ .sll_family = AF_PACKET,
					   .sll_ifindex = i->ifi_index,
					   .sll_hatype = i->ifi_type };
	for (struct rtattr *a = IFLA_RTA(i); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		switch (a->rta_type) {
		case IFLA_IFNAME:
			take_name(e, a);
			break;
		case IFLA_ADDRESS:
			take_link_address(&e->addr, i, a);
			break;
		case IFLA_BROADCAST:
			take_link_address(&e->other, i, a);
			break;
		case IFLA_STATS:
			if (RTA_PAYLOAD(a) >= sizeof(e->stats))
				memcpy(&e->stats, RTA_DATA(a), sizeof(e->stats));
			break;
		}
	}
	to->links = to->n;
}

static void take_inet(union address *to, const struct ifaddrmsg *i, const struct rtattr *a)
{
	if (i->ifa_family == AF_INET && RTA_PAYLOAD(a) >= sizeof(struct in_addr)) {
		to->in.sin_family = AF_INET;
		memcpy(&to->in.sin_addr, RTA_DATA(a), sizeof(struct in_addr));
	} else if (i->ifa_family == AF_INET6 && RTA_PAYLOAD(a) >= sizeof(struct in6_addr)) {
		to->in6.sin6_family = AF_INET6;
		memcpy(&to->in6.sin6_addr, RTA_DATA(a), sizeof(struct in6_addr));
		if (IN6_IS_ADDR_LINKLOCAL(&to->in6.sin6_addr) ||
		    IN6_IS_ADDR_MC_LINKLOCAL(&to->in6.sin6_addr))
			to->in6.sin6_scope_id = i->ifa_index;
	}
}

static void make_mask(union address *to, const struct ifaddrmsg *i)
{
	unsigned char *bytes = i->ifa_family == AF_INET ? (void *)&to->in.sin_addr
							: (void *)&to->in6.sin6_addr;
	unsigned int bits = i->ifa_prefixlen, most = i->ifa_family == AF_INET ? 32 : 128;

	to->any.sa_family = i->ifa_family;
	for (bits = bits > most ? most : bits; bits >= 8; bits -= 8)
		*bytes++ = 0xff;
	if (bits)
		*bytes = (unsigned char)(0xff << (8 - bits));
}

static void take_address(struct entries *to, struct nlmsghdr *h)
{
	struct ifaddrmsg *i = NLMSG_DATA(h);
	long left = IFA_PAYLOAD(h);
	struct entry *e;

	if (h->nlmsg_type != RTM_NEWADDR || (i->ifa_family != AF_INET && i->ifa_family != AF_INET6))
		return;
	e = add(to);
	if (!e)
		return;
	e->index = i->ifa_index;
	for (size_t k = 0; k < to->links; k++)
		if (to->at[k].index == e->index) {
			e->ifa.ifa_flags = to->at[k].ifa.ifa_flags;
			memcpy(e->name, to->at[k].name, sizeof(e->name));
		}
	for (struct rtattr *a = IFA_RTA(i); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		switch (a->rta_type) {
		case IFA_LABEL:
			memset(e->name, 0, sizeof(e->name));
			take_name(e, a);
			break;
		case IFA_BROADCAST:
			take_inet(&e->other, i, a);
			break;
		case IFA_LOCAL:
			/* Then IFA_ADDRESS, which came before, is the far end, if only in name. */
			e->other = e->addr;
			take_inet(&e->addr, i, a);
			break;
		case IFA_ADDRESS:
			take_inet(&e->addr, i, a);
			break;
		}
	}
	make_mask(&e->mask, i);
}

static struct sockaddr *if_set(union address *a)
{
	return a->any.sa_family ? &a->any : NULL;
}

HOOK int getifaddrs(struct ifaddrs **result)
{
	struct guise_stack *s = preload_stack();
	struct entries e = { 0 };
	long err;

	if (!s)
		return HOST(getifaddrs)(result);
	err = dump(s, RTM_GETLINK, take_link, &e);
	if (!err)
		err = dump(s, RTM_GETADDR, take_address, &e);
	if (err) {
		free(e.at);
		return (int)libc_result(err);
	}
	for (size_t i = 0; i < e.n; i++) {
		struct entry *at = &e.at[i];

		at->ifa.ifa_next = i + 1 < e.n ? &at[1].ifa : NULL;
		at->ifa.ifa_name = at->name;
		at->ifa.ifa_addr = if_set(&at->addr);
		at->ifa.ifa_netmask = if_set(&at->mask);
		at->ifa.ifa_broadaddr = if_set(&at->other);
		at->ifa.ifa_data = i < e.links ? &at->stats : NULL;
	}
	*result = e.n ? &e.at->ifa : NULL;
	return 0;
}

HOOK struct if_nameindex *if_nameindex(void)
{
	struct guise_stack *s = preload_stack();
	struct if_nameindex *list = NULL;
	struct entries e = { 0 };
	long err;

	if (!s)
		return HOST(if_nameindex)();
	err = dump(s, RTM_GETLINK, take_link, &e);
	if (!err)
		list = calloc(e.n + 1, sizeof(*list));
	for (size_t i = 0; list && i < e.n; i++) {
		list[i].if_index = e.at[i].index;
		list[i].if_name = strdup(e.at[i].name);
		if (!list[i].if_name) {
			if_freenameindex(list);
			list = NULL;
		}
	}
	free(e.at);
	if (!list)
		errno = err ? (int)-err : ENOMEM;
	return list;
}

/* SIOCGIFINDEX or SIOCGIFNAME: 0 or -errno. */
static long ask(struct guise_stack *s, unsigned long request, struct ifreq *r)
{
	long err, sfd = guise_call(s, GUISE_NR_socket, AF_INET, SOCK_DGRAM, 0, 0, 0, 0);

	if (sfd < 0)
		return sfd;
	err = guise_call(s, GUISE_NR_ioctl, sfd, (long)request, (long)r, 0, 0, 0);
	guise_call(s, GUISE_NR_close, sfd, 0, 0, 0, 0, 0);
	return err;
}

HOOK unsigned int if_nametoindex(const char *name)
{
	struct guise_stack *s = preload_stack();
	struct ifreq r = { 0 };
	long err = -ENODEV;

	if (!s)
		return HOST(if_nametoindex)(name);
	if (strlen(name) < IF_NAMESIZE) {
		memcpy(r.ifr_name, name, strlen(name));
		err = ask(s, SIOCGIFINDEX, &r);
	}
	return libc_result(err) < 0 ? 0 : (unsigned int)r.ifr_ifindex;
}

HOOK char *if_indextoname(unsigned int index, char name[IF_NAMESIZE])
{
	struct guise_stack *s = preload_stack();
	struct ifreq r = { .ifr_ifindex = (int)index };
	long err;

	if (!s)
		return HOST(if_indextoname)(index, name);
	err = ask(s, SIOCGIFNAME, &r);
	if (libc_result(err == -ENODEV ? -ENXIO : err) < 0)
		return NULL;
	return memcpy(name, r.ifr_name, IF_NAMESIZE);
}
