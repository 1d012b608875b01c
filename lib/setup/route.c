// SPDX-License-Identifier: GPL-2.0-only
/* Routes and the rules that choose among their tables. */
#include "region/stack.h"
#include "setup/nl.h"
#include "setup/prefix.h"
#include "setup/setup.h"

#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>

/* The header's field is a byte; a larger table goes into an attribute only. */
static uint8_t short_table(unsigned int table)
{
	return table < 256 ? (uint8_t)table : RT_TABLE_UNSPEC;
}

int guise_route_add(struct guise_stack *s, const char *dst, const char *via, const char *dev,
		    unsigned int table)
{
	struct rtmsg body = { 0 };
	struct guise_prefix to, gateway;
	struct guise_nl m;
	int err, index = 0;

	if (!via && !dev)
		return guise_fail(EINVAL, "route %s: needs a gateway (via) or an interface (dev)",
				  dst);
	err = guise_prefix_parse(dst, &to, "route");
	if (!err && via)
		err = guise_prefix_parse(via, &gateway, "gateway");
	if (err)
		return err;
	if (via && gateway.len != 8 * guise_prefix_bytes(&gateway))
		return guise_fail(EINVAL, "gateway %s: expected an address without a length", via);
	/* "default" is of the gateway's family. */
	if (via && !to.len && to.family == AF_INET)
		to.family = gateway.family;
	if (via && to.family != gateway.family)
		return guise_fail(EINVAL, "route %s via %s: one is IPv4, the other IPv6", dst, via);
	if (dev) {
		index = guise_ifindex(s, dev);
		if (index < 0)
			return index;
	}
	if (!table)
		table = RT_TABLE_MAIN;

	body.rtm_family = to.family;
	body.rtm_dst_len = to.len;
	body.rtm_table = short_table(table);
	body.rtm_protocol = RTPROT_STATIC;
	body.rtm_scope = via || to.family == AF_INET6 ? RT_SCOPE_UNIVERSE : RT_SCOPE_LINK;
	body.rtm_type = RTN_UNICAST;
	guise_nl_begin(&m, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, &body, sizeof(body));
	guise_nl_u32(&m, RTA_TABLE, table);
	if (to.len)
		guise_nl_put(&m, RTA_DST, to.addr, guise_prefix_bytes(&to));
	if (via)
		guise_nl_put(&m, RTA_GATEWAY, gateway.addr, guise_prefix_bytes(&gateway));
	if (dev)
		guise_nl_u32(&m, RTA_OIF, (uint32_t)index);
	return guise_nl_talk(s, NETLINK_ROUTE, &m, NULL, NULL, "route %s%s%s%s%s", dst,
			     via ? " via " : "", via ? via : "", dev ? " dev " : "",
			     dev ? dev : "");
}

/* The addresses of a rule, which must be of one family. */
static int rule_prefixes(const struct guise_rule *rule, struct guise_prefix *from,
			 struct guise_prefix *to)
{
	int err = 0;

	if (rule->from)
		err = guise_prefix_parse(rule->from, from, "rule from");
	if (!err && rule->to)
		err = guise_prefix_parse(rule->to, to, "rule to");
	if (!err && rule->from && rule->to && from->family != to->family)
		err = guise_fail(EINVAL, "rule from %s to %s: one is IPv4, the other IPv6",
				 rule->from, rule->to);
	return err;
}

static int rule_of_family(struct guise_stack *s, const struct guise_rule *rule, int family)
{
	struct fib_rule_hdr body = { .action = FR_ACT_TO_TBL, .family = (uint8_t)family };
	struct guise_prefix from = { 0 }, to = { 0 };
	struct guise_nl m;
	int err = rule_prefixes(rule, &from, &to);

	if (err)
		return err;
	body.src_len = from.len;
	body.dst_len = to.len;
	body.table = short_table(rule->table);
	guise_nl_begin(&m, RTM_NEWRULE, NLM_F_CREATE | NLM_F_EXCL, &body, sizeof(body));
	if (from.len)
		guise_nl_put(&m, FRA_SRC, from.addr, guise_prefix_bytes(&from));
	if (to.len)
		guise_nl_put(&m, FRA_DST, to.addr, guise_prefix_bytes(&to));
	if (rule->iif)
		guise_nl_str(&m, FRA_IIFNAME, rule->iif);
	if (rule->oif)
		guise_nl_str(&m, FRA_OIFNAME, rule->oif);
	if (rule->fwmark)
		guise_nl_u32(&m, FRA_FWMARK, rule->fwmark);
	if (rule->priority)
		guise_nl_u32(&m, FRA_PRIORITY, rule->priority);
	guise_nl_u32(&m, FRA_TABLE, rule->table);
	return guise_nl_talk(s, NETLINK_ROUTE, &m, NULL, NULL, "rule from %s to %s table %u",
			     rule->from ? rule->from : "all", rule->to ? rule->to : "all",
			     rule->table);
}

/* One that names no address is for both families. */
int guise_rule_add(struct guise_stack *s, const struct guise_rule *rule)
{
	struct guise_prefix from = { 0 }, to = { 0 };
	int err = rule_prefixes(rule, &from, &to);

	if (!err && !rule->table)
		err = guise_fail(EINVAL, "rule from %s: table 0 does not exist; use 1 and above",
				 rule->from ? rule->from : "all");
	if (err)
		return err;
	if (rule->from || rule->to)
		return rule_of_family(s, rule, rule->from ? from.family : to.family);
	err = rule_of_family(s, rule, AF_INET);
	return err ? err : rule_of_family(s, rule, AF_INET6);
}
