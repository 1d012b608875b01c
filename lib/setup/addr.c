// SPDX-License-Identifier: GPL-2.0-only
/* Addresses of interfaces. */
#include "setup/nl.h"
#include "setup/prefix.h"
#include "setup/setup.h"

#include <arpa/inet.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <string.h>

static int change(struct guise_stack *s, const char *dev, const char *addr, bool add)
{
	struct ifaddrmsg body = { 0 };
	struct guise_prefix p;
	struct guise_nl m;
	uint32_t broadcast;
	int index, err;

	err = guise_prefix_parse(addr, &p, "address");
	if (err)
		return err;
	index = guise_ifindex(s, dev);
	if (index < 0)
		return index;

	body.ifa_family = p.family;
	body.ifa_prefixlen = p.len;
	body.ifa_index = (uint32_t)index;
	guise_nl_begin(&m, add ? RTM_NEWADDR : RTM_DELADDR, add ? NLM_F_CREATE | NLM_F_EXCL : 0,
		       &body, sizeof(body));
	guise_nl_put(&m, IFA_LOCAL, p.addr, guise_prefix_bytes(&p));
	guise_nl_put(&m, IFA_ADDRESS, p.addr, guise_prefix_bytes(&p));
	if (p.family == AF_INET && p.len && p.len < 31) {
		memcpy(&broadcast, p.addr, sizeof(broadcast));
		broadcast |= htonl(0xffffffffU >> p.len);
		guise_nl_u32(&m, IFA_BROADCAST, broadcast);
	}
	/* Detection would keep the address unusable for a second. */
	if (p.family == AF_INET6)
		guise_nl_u32(&m, IFA_FLAGS, IFA_F_NODAD);
	return guise_nl_talk(s, NETLINK_ROUTE, &m, NULL, NULL, "address %s on %s", addr, dev);
}

int guise_addr_add(struct guise_stack *s, const char *dev, const char *addr)
{
	return change(s, dev, addr, true);
}

int guise_addr_del(struct guise_stack *s, const char *dev, const char *addr)
{
	return change(s, dev, addr, false);
}
