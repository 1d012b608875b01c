// SPDX-License-Identifier: GPL-2.0-only
/* Which addresses of this thread's namespace packets can leave from. */
#include "region/stack.h"
#include "setup/nl.h"
#include "setup/setup.h"

#include <arpa/inet.h>
#include <linux/if.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <string.h>

#define INTERFACES 256

struct found {
	int index[INTERFACES]; /* of interfaces that are up and have a carrier */
	unsigned int n;
	struct guise_address *address;
	unsigned int addresses, most;
};

static void note_link(const struct nlmsghdr *h, void *arg)
{
	const unsigned int needed = IFF_UP | IFF_LOWER_UP;
	struct found *f = arg;
	struct ifinfomsg body;

	if (h->nlmsg_type != RTM_NEWLINK || h->nlmsg_len < NLMSG_LENGTH(sizeof(body)))
		return;
	memcpy(&body, NLMSG_DATA(h), sizeof(body));
	if ((body.ifi_flags & needed) == needed && f->n < INTERFACES)
		f->index[f->n++] = body.ifi_index;
}

static bool is_usable(const struct found *f, int index)
{
	for (unsigned int i = 0; i < f->n; i++)
		if (f->index[i] == index)
			return true;
	return false;
}

/* The one that packets are sent from: of a point-to-point interface not its peer's. */
static void note_address(const struct nlmsghdr *h, void *arg)
{
	const char *at = (const char *)h + NLMSG_LENGTH(sizeof(struct ifaddrmsg));
	const char *end = (const char *)h + h->nlmsg_len;
	struct guise_address a = { 0 };
	struct found *f = arg;
	struct ifaddrmsg body;
	struct nlattr attr;
	bool local = false, any = false;

	if (h->nlmsg_type != RTM_NEWADDR || h->nlmsg_len < NLMSG_LENGTH(sizeof(body)))
		return;
	memcpy(&body, NLMSG_DATA(h), sizeof(body));
	if (!is_usable(f, (int)body.ifa_index) || f->addresses == f->most)
		return;
	a.family = body.ifa_family;
	for (; end - at >= NLA_HDRLEN; at += NLA_ALIGN(attr.nla_len)) {
		memcpy(&attr, at, sizeof(attr));
		if (attr.nla_len < NLA_HDRLEN || attr.nla_len > end - at)
			break;
		if (attr.nla_len - NLA_HDRLEN != (a.family == AF_INET ? 4 : 16) || local ||
		    (attr.nla_type != IFA_LOCAL && attr.nla_type != IFA_ADDRESS))
			continue;
		local = attr.nla_type == IFA_LOCAL;
		any = true;
		memcpy(a.addr, at + NLA_HDRLEN, (size_t)attr.nla_len - NLA_HDRLEN);
	}
	if (any)
		f->address[f->addresses++] = a;
}

int guise_addresses(struct guise_stack *s, struct guise_address *address, unsigned int most)
{
	struct found f = { .address = address, .most = most };
	struct rtgenmsg all = { .rtgen_family = AF_UNSPEC };
	struct ifinfomsg links = { 0 };
	struct guise_nl m;
	int err;

	guise_nl_begin(&m, RTM_GETLINK, NLM_F_DUMP, &links, sizeof(links));
	err = guise_nl_talk(s, NETLINK_ROUTE, &m, note_link, &f, "interfaces");
	if (err)
		return err;
	guise_nl_begin(&m, RTM_GETADDR, NLM_F_DUMP, &all, sizeof(all));
	err = guise_nl_talk(s, NETLINK_ROUTE, &m, note_address, &f, "addresses");
	return err ? err : (int)f.addresses;
}
