// SPDX-License-Identifier: GPL-2.0-only
/* MPTCP's path manager: which addresses it announces and uses, and how many. */
#include "region/stack.h"
#include "setup/nl.h"
#include "setup/prefix.h"
#include "setup/setup.h"

#include <errno.h>
#include <linux/genetlink.h>
#include <linux/mptcp.h>
#include <string.h>

static void take_family(const struct nlmsghdr *h, void *arg)
{
	size_t at = NLMSG_HDRLEN + GENL_HDRLEN;
	struct nlattr a;

	while (at + NLA_HDRLEN <= h->nlmsg_len) {
		memcpy(&a, (const char *)h + at, sizeof(a));
		if (a.nla_len < NLA_HDRLEN)
			return;
		if (a.nla_type == CTRL_ATTR_FAMILY_ID && a.nla_len >= NLA_HDRLEN + 2)
			memcpy(arg, (const char *)h + at + NLA_HDRLEN, 2);
		at += NLA_ALIGN(a.nla_len);
	}
}

/* The number of generic netlink's family "mptcp_pm", or -errno. */
static int find_family(struct guise_stack *s)
{
	struct genlmsghdr body = { .cmd = CTRL_CMD_GETFAMILY, .version = 1 };
	uint16_t family = 0;
	struct guise_nl m;
	int err;

	guise_nl_begin(&m, GENL_ID_CTRL, 0, &body, sizeof(body));
	guise_nl_str(&m, CTRL_ATTR_FAMILY_NAME, MPTCP_PM_NAME);
	err = guise_nl_talk(s, NETLINK_GENERIC, &m, take_family, &family,
			    "mptcp: this stack has no MPTCP path manager");
	return err ? err : family;
}

static int parse_flags(const char *text, uint32_t *flags)
{
	static const struct {
		const char *name;
		uint32_t bit;
	} known[] = {
		{ "signal", MPTCP_PM_ADDR_FLAG_SIGNAL },
		{ "subflow", MPTCP_PM_ADDR_FLAG_SUBFLOW },
		{ "backup", MPTCP_PM_ADDR_FLAG_BACKUP },
		{ "fullmesh", MPTCP_PM_ADDR_FLAG_FULLMESH },
	};
	size_t len, i;

	*flags = 0;
	for (text += strspn(text, " ,"); *text; text += strspn(text, " ,")) {
		len = strcspn(text, " ,");
		for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
			if (strlen(known[i].name) == len && !strncmp(known[i].name, text, len))
				break;
		if (i == sizeof(known) / sizeof(known[0]))
			return guise_fail(EINVAL,
					  "mptcp endpoint: unknown flag \"%.*s\"; known are "
					  "signal, subflow, backup, fullmesh",
					  (int)len, text);
		*flags |= known[i].bit;
		text += len;
	}
	return 0;
}

int guise_mptcp_endpoint(struct guise_stack *s, const char *addr, const char *dev,
			 const char *flags)
{
	struct genlmsghdr body = { .cmd = MPTCP_PM_CMD_ADD_ADDR, .version = MPTCP_PM_VER };
	int family, err, index = 0;
	struct guise_prefix p;
	struct guise_nl m;
	uint32_t bits;
	size_t nest;

	err = guise_prefix_parse(addr, &p, "mptcp endpoint");
	if (!err)
		err = parse_flags(flags ? flags : "", &bits);
	if (err)
		return err;
	if (p.len != 8 * guise_prefix_bytes(&p))
		return guise_fail(EINVAL, "mptcp endpoint %s: expected an address without a length",
				  addr);
	if (dev) {
		index = guise_ifindex(s, dev);
		if (index < 0)
			return index;
	}
	family = find_family(s);
	if (family < 0)
		return family;

	guise_nl_begin(&m, (uint16_t)family, 0, &body, sizeof(body));
	nest = guise_nl_nest(&m, MPTCP_PM_ATTR_ADDR | NLA_F_NESTED, NULL, 0);
	guise_nl_u16(&m, MPTCP_PM_ADDR_ATTR_FAMILY, p.family);
	guise_nl_put(&m, p.family == AF_INET ? MPTCP_PM_ADDR_ATTR_ADDR4 : MPTCP_PM_ADDR_ATTR_ADDR6,
		     p.addr, guise_prefix_bytes(&p));
	guise_nl_u32(&m, MPTCP_PM_ADDR_ATTR_FLAGS, bits);
	if (dev)
		guise_nl_u32(&m, MPTCP_PM_ADDR_ATTR_IF_IDX, (uint32_t)index);
	guise_nl_end(&m, nest);
	return guise_nl_talk(s, NETLINK_GENERIC, &m, NULL, NULL, "mptcp endpoint %s", addr);
}

int guise_mptcp_limits(struct guise_stack *s, unsigned int add_addr, unsigned int subflows)
{
	struct genlmsghdr body = { .cmd = MPTCP_PM_CMD_SET_LIMITS, .version = MPTCP_PM_VER };
	struct guise_nl m;
	int family = find_family(s);

	if (family < 0)
		return family;
	guise_nl_begin(&m, (uint16_t)family, 0, &body, sizeof(body));
	guise_nl_u32(&m, MPTCP_PM_ATTR_RCV_ADD_ADDRS, add_addr);
	guise_nl_u32(&m, MPTCP_PM_ATTR_SUBFLOWS, subflows);
	return guise_nl_talk(s, NETLINK_GENERIC, &m, NULL, NULL, "mptcp limits %u %u", add_addr,
			     subflows);
}
