// SPDX-License-Identifier: GPL-2.0-only
/* MPTCP's path manager: which addresses it announces and uses, and how many. */
#include "region/stack.h"
#include "setup/nl.h"
#include "setup/nl_dump.h"
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

/* An endpoint: its address, and its interface's index in this namespace, 0 for any. */
struct endpoint {
	int family; /* of generic netlink */
	struct guise_prefix address;
	int index;
	uint8_t id; /* 0: none is known */
	uint32_t flags;
};

static int parse_endpoint(struct guise_stack *s, const char *addr, const char *dev,
			  struct endpoint *e)
{
	int err = guise_prefix_parse(addr, &e->address, "mptcp endpoint");

	if (err)
		return err;
	if (e->address.len != 8 * guise_prefix_bytes(&e->address))
		return guise_fail(EINVAL, "mptcp endpoint %s: expected an address without a length",
				  addr);
	e->index = dev ? guise_ifindex(s, dev) : 0;
	if (e->index < 0)
		return e->index;
	e->family = find_family(s);
	return e->family < 0 ? e->family : 0;
}

/* What one of the stack's endpoints says of itself. */
struct listed {
	const struct endpoint *wanted;
	bool same; /* address */
	uint8_t id;
};

static void take_field(void *arg, unsigned int type, const void *data, size_t len)
{
	struct listed *l = arg;
	const struct guise_prefix *p = &l->wanted->address;
	const unsigned int address = p->family == AF_INET6 ? MPTCP_PM_ADDR_ATTR_ADDR6
							   : MPTCP_PM_ADDR_ATTR_ADDR4;

	if (type == address && len == guise_prefix_bytes(p))
		l->same = !memcmp(data, p->addr, len);
	else if (type == MPTCP_PM_ADDR_ATTR_ID && len == sizeof(l->id))
		memcpy(&l->id, data, sizeof(l->id));
}

static void take_endpoint(void *arg, unsigned int type, const void *data, size_t len)
{
	if (type == MPTCP_PM_ATTR_ADDR)
		guise_nl_attributes(data, len, take_field, arg);
}

/* Sets its id, if the stack has it. */
static int find_endpoint(struct guise_stack *s, struct endpoint *e)
{
	struct genlmsghdr body = { .cmd = MPTCP_PM_CMD_GET_ADDR, .version = MPTCP_PM_VER };
	const size_t head = NLMSG_HDRLEN + GENL_HDRLEN;
	const struct nlmsghdr *h;
	struct guise_nl_dump d;
	struct guise_nl m;
	int err;

	guise_nl_dump_init(&d);
	guise_nl_begin(&m, (uint16_t)e->family, NLM_F_DUMP, &body, sizeof(body));
	err = guise_nl_dump_begin(&d, s, NETLINK_GENERIC, &m, "mptcp endpoints");
	while (!err && (h = guise_nl_dump_next(&d, &err))) {
		struct listed l = { .wanted = e };

		if (h->nlmsg_type == e->family && h->nlmsg_len >= head)
			guise_nl_attributes((const char *)h + head, h->nlmsg_len - head,
					    take_endpoint, &l);
		if (l.same)
			e->id = l.id;
	}
	guise_nl_dump_end(&d);
	return err;
}

/* id: 0 stands for the first subflows of connections. */
static int tell(struct guise_stack *s, uint8_t cmd, const struct endpoint *e, int id,
		const char *addr)
{
	struct genlmsghdr body = { .cmd = cmd, .version = MPTCP_PM_VER };
	const struct guise_prefix *p = &e->address;
	struct guise_nl m;
	size_t nest;

	guise_nl_begin(&m, (uint16_t)e->family, 0, &body, sizeof(body));
	nest = guise_nl_nest(&m, MPTCP_PM_ATTR_ADDR | NLA_F_NESTED, NULL, 0);
	guise_nl_u16(&m, MPTCP_PM_ADDR_ATTR_FAMILY, p->family);
	guise_nl_put(&m, p->family == AF_INET ? MPTCP_PM_ADDR_ATTR_ADDR4 : MPTCP_PM_ADDR_ATTR_ADDR6,
		     p->addr, guise_prefix_bytes(p));
	if (id >= 0)
		guise_nl_u8(&m, MPTCP_PM_ADDR_ATTR_ID, (uint8_t)id);
	guise_nl_u32(&m, MPTCP_PM_ADDR_ATTR_FLAGS, e->flags);
	if (e->index)
		guise_nl_u32(&m, MPTCP_PM_ADDR_ATTR_IF_IDX, (uint32_t)e->index);
	guise_nl_end(&m, nest);
	return guise_nl_talk(s, NETLINK_GENERIC, &m, NULL, NULL, "mptcp endpoint %s", addr);
}

int guise_mptcp_endpoint(struct guise_stack *s, const char *addr, const char *dev,
			 const char *flags)
{
	struct endpoint e = { 0 };
	int err = parse_endpoint(s, addr, dev, &e);

	if (!err)
		err = parse_flags(flags ? flags : "", &e.flags);
	return err ? err : tell(s, MPTCP_PM_CMD_ADD_ADDR, &e, -1, addr);
}

int guise_mptcp_endpoint_backup(struct guise_stack *s, const char *addr, bool backup)
{
	struct endpoint e = { 0 };
	int err = parse_endpoint(s, addr, NULL, &e);

	if (!err)
		err = find_endpoint(s, &e);
	if (err)
		return err;
	if (!e.id)
		return guise_fail(ENOENT, "mptcp endpoint %s: the stack has none of this address",
				  addr);
	e.flags = backup ? MPTCP_PM_ADDR_FLAG_BACKUP : 0;
	return tell(s, MPTCP_PM_CMD_SET_FLAGS, &e, e.id, addr);
}

int guise_mptcp_endpoint_del(struct guise_stack *s, const char *addr)
{
	struct endpoint e = { 0 };
	int err = parse_endpoint(s, addr, NULL, &e); /* the interface may be gone */

	if (!err)
		err = find_endpoint(s, &e);
	if (err)
		return err;
	if (!e.id)
		return guise_fail(ENOENT, "mptcp endpoint %s: the stack has none of this address",
				  addr);
	err = tell(s, MPTCP_PM_CMD_DEL_ADDR, &e, e.id, addr);
	/* A connection's first subflow belongs to no endpoint. */
	return err ? err : tell(s, MPTCP_PM_CMD_DEL_ADDR, &e, 0, addr);
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
