// SPDX-License-Identifier: GPL-2.0-only
/* Which addresses of this thread's namespace packets can leave from. */
#include "region/stack.h"
#include "setup/nl.h"
#include "setup/nl_dump.h"
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

static void take_link(struct found *f, const struct nlmsghdr *h)
{
	const unsigned int needed = IFF_UP | IFF_LOWER_UP;
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

/* One address, of which packets are sent from the local end: of a point-to-point interface the
 * other is its peer's. */
struct ends {
	size_t bytes; /* of its family */
	const void *local, *address;
};

static void take_end(void *arg, unsigned int type, const void *data, size_t len)
{
	struct ends *e = arg;

	if (len == e->bytes && type == IFA_LOCAL)
		e->local = data;
	else if (len == e->bytes && type == IFA_ADDRESS)
		e->address = data;
}

static void take_address(struct found *f, const struct nlmsghdr *h)
{
	struct guise_address a = { 0 };
	struct ends e = { 0 };
	struct ifaddrmsg body;
	const size_t head = NLMSG_LENGTH(sizeof(body));

	if (h->nlmsg_type != RTM_NEWADDR || h->nlmsg_len < head)
		return;
	memcpy(&body, NLMSG_DATA(h), sizeof(body));
	if (!is_usable(f, (int)body.ifa_index) || f->addresses == f->most)
		return;
	e.bytes = body.ifa_family == AF_INET ? 4 : 16;
	guise_nl_attributes((const char *)h + head, h->nlmsg_len - head, take_end, &e);
	if (!e.local)
		e.local = e.address;
	if (!e.local)
		return;
	a.family = body.ifa_family;
	memcpy(a.addr, e.local, e.bytes);
	f->address[f->addresses++] = a;
}

/* Asks for all of what a request lists. 0 or -errno with a sentence. */
static int list(struct guise_stack *s, struct guise_nl *m, const char *what,
		void (*take)(struct found *f, const struct nlmsghdr *h), struct found *f)
{
	const struct nlmsghdr *h;
	struct guise_nl_dump d;
	int err;

	guise_nl_dump_init(&d);
	err = guise_nl_dump_begin(&d, s, NETLINK_ROUTE, m, what);
	while (!err && (h = guise_nl_dump_next(&d, &err)))
		take(f, h);
	guise_nl_dump_end(&d);
	return err;
}

int guise_addresses(struct guise_stack *s, struct guise_address *address, unsigned int most)
{
	struct found f = { .address = address, .most = most };
	struct rtgenmsg all = { .rtgen_family = AF_UNSPEC };
	struct ifinfomsg links = { 0 };
	struct guise_nl m;
	int err;

	guise_nl_begin(&m, RTM_GETLINK, NLM_F_DUMP, &links, sizeof(links));
	err = list(s, &m, "interfaces", take_link, &f);
	if (err)
		return err;
	guise_nl_begin(&m, RTM_GETADDR, NLM_F_DUMP, &all, sizeof(all));
	err = list(s, &m, "addresses", take_address, &f);
	return err ? err : (int)f.addresses;
}
