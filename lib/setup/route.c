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

/* The addresses of a route, which must be of one family. */
struct addresses {
	struct guise_prefix to, gateway, source;
};

static int parse_host(const char *text, const char *what, struct guise_prefix *p)
{
	int err = guise_prefix_parse(text, p, what);

	if (!err && p->len != 8 * guise_prefix_bytes(p))
		return guise_fail(EINVAL, "%s %s: expected an address without a length", what,
				  text);
	return err;
}

static int parse_addresses(const struct guise_route_spec *r, struct addresses *a)
{
	int err = guise_prefix_parse(r->dst, &a->to, "route");

	if (!err && r->via)
		err = parse_host(r->via, "gateway", &a->gateway);
	if (!err && r->src)
		err = parse_host(r->src, "src", &a->source);
	if (err)
		return err;
	/* "default" is of the family of the others. */
	if (!a->to.len && a->to.family == AF_INET) {
		if (r->via)
			a->to.family = a->gateway.family;
		else if (r->src)
			a->to.family = a->source.family;
	}
	if (r->via && a->to.family != a->gateway.family)
		return guise_fail(EINVAL, "route %s via %s: one is IPv4, the other IPv6", r->dst,
				  r->via);
	if (r->src && a->to.family != a->source.family)
		return guise_fail(EINVAL, "route %s src %s: one is IPv4, the other IPv6", r->dst,
				  r->src);
	return 0;
}

int guise_route_change(struct guise_stack *s, const struct guise_route_spec *r, bool add)
{
	const unsigned int table = r->table ? r->table : RT_TABLE_MAIN;
	const char *via = r->via, *dev = r->dev, *dst = r->dst;
	struct rtmsg body = { 0 };
	struct addresses a;
	struct guise_nl m;
	int err, index = 0;

	if (!via && !dev)
		return guise_fail(EINVAL, "route %s: needs a gateway (via) or an interface (dev)",
				  dst);
	err = parse_addresses(r, &a);
	if (err)
		return err;
	if (dev) {
		index = guise_ifindex(s, dev);
		if (index < 0)
			return index;
	}

	body.rtm_family = a.to.family;
	body.rtm_dst_len = a.to.len;
	body.rtm_table = short_table(table);
	body.rtm_protocol = RTPROT_STATIC;
	body.rtm_scope = via || a.to.family == AF_INET6 ? RT_SCOPE_UNIVERSE : RT_SCOPE_LINK;
	body.rtm_type = RTN_UNICAST;
	if (r->onlink)
		body.rtm_flags = RTNH_F_ONLINK;
	guise_nl_begin(&m, add ? RTM_NEWROUTE : RTM_DELROUTE, add ? NLM_F_CREATE | NLM_F_EXCL : 0,
		       &body, sizeof(body));
	guise_nl_u32(&m, RTA_TABLE, table);
	if (a.to.len)
		guise_nl_put(&m, RTA_DST, a.to.addr, guise_prefix_bytes(&a.to));
	if (via)
		guise_nl_put(&m, RTA_GATEWAY, a.gateway.addr, guise_prefix_bytes(&a.gateway));
	if (r->src)
		guise_nl_put(&m, RTA_PREFSRC, a.source.addr, guise_prefix_bytes(&a.source));
	if (dev)
		guise_nl_u32(&m, RTA_OIF, (uint32_t)index);
	if (r->metric)
		guise_nl_u32(&m, RTA_PRIORITY, r->metric);
	return guise_nl_talk(s, NETLINK_ROUTE, &m, NULL, NULL, "route %s%s%s%s%s", dst,
			     via ? " via " : "", via ? via : "", dev ? " dev " : "",
			     dev ? dev : "");
}

int guise_route_add(struct guise_stack *s, const char *dst, const char *via, const char *dev,
		    unsigned int table)
{
	const struct guise_route_spec r = { .dst = dst, .via = via, .dev = dev, .table = table };

	return guise_route_change(s, &r, true);
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

static int rule_of_family(struct guise_stack *s, const struct guise_rule *rule, int family,
			  bool add)
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
	guise_nl_begin(&m, add ? RTM_NEWRULE : RTM_DELRULE, add ? NLM_F_CREATE | NLM_F_EXCL : 0,
		       &body, sizeof(body));
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
int guise_rule_change(struct guise_stack *s, const struct guise_rule *rule, bool add)
{
	struct guise_prefix from = { 0 }, to = { 0 };
	int err = rule_prefixes(rule, &from, &to);

	if (!err && !rule->table)
		err = guise_fail(EINVAL, "rule from %s: table 0 does not exist; use 1 and above",
				 rule->from ? rule->from : "all");
	if (err)
		return err;
	if (rule->from || rule->to)
		return rule_of_family(s, rule, rule->from ? from.family : to.family, add);
	err = rule_of_family(s, rule, AF_INET, add);
	return err ? err : rule_of_family(s, rule, AF_INET6, add);
}
