// SPDX-License-Identifier: GPL-2.0-only
/*
 * What each line of a plan does. Those about the stack change it by lib/setup and lib/link; those
 * about the holder itself are noted in the plan. Some may come, or be taken back, while programs
 * are on the stack: plan_change().
 */
#include "holder/directives.h"

#include "holder/plan.h"

#include "holder/control/control.h"
#include "holder/isolation.h"
#include "holder/relay/relay.h"

#include "guise/layout.h"
#include "host/sys.h"
#include "region/stack.h"
#include "setup/setup.h"
#include "setup/units.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEMORY_MIN (32ULL << 20)

#define MANY INT_MAX

/* The words from word[0] on, with one blank between; to be freed. */
static char *join_words(char **word, int words)
{
	size_t size = 1;
	char *text, *end;

	for (int i = 0; i < words; i++)
		size += strlen(word[i]) + 1;
	text = malloc(size);
	if (!text) {
		guise_fail(ENOMEM, "out of memory");
		return NULL;
	}
	end = text;
	*end = '\0';
	for (int i = 0; i < words; i++)
		end += sprintf(end, "%s%s", i ? " " : "", word[i]);
	return text;
}

static int parse_table(const char *word, unsigned int *table)
{
	uint64_t n;
	int err = guise_unit_count(word, "table", &n);

	*table = (unsigned int)n;
	return err;
}

static int apply_name(struct plan *p, char **word, int words)
{
	(void)words;
	p->options.name = word[1];
	return 0;
}

static int apply_memory(struct plan *p, char **word, int words)
{
	uint64_t bytes;
	int err = guise_unit_size(word[1], "memory", UINT64_MAX, &bytes);

	(void)words;
	if (err)
		return err;
	if (bytes < MEMORY_MIN)
		return guise_fail(EINVAL, "memory %s: a stack needs at least 32M", word[1]);
	p->options.memory = bytes;
	return 0;
}

/* Known before the stack is: the image is opened by who still may open any file. */
static int apply_kernel(struct plan *p, char **word, int words)
{
	(void)words;
	p->options.kernel = word[1];
	return 0;
}

static int apply_clock(struct plan *p, char **word, int words)
{
	if (!strcmp(word[1], "real") && words == 2) {
		p->options.simulated = 0;
		return 0;
	}
	if (!strcmp(word[1], "sim") && words == 3) {
		p->options.simulated = 1;
		return guise_unit_seed(word[2], "clock sim", &p->options.seed);
	}
	return guise_fail(EINVAL, "clock: expected \"clock real\" or \"clock sim SEED\"");
}

static int apply_cmdline(struct plan *p, char **word, int words)
{
	free(p->cmdline);
	p->cmdline = join_words(word + 1, words - 1);
	p->options.cmdline = p->cmdline;
	return p->cmdline ? 0 : -ENOMEM;
}

static int apply_boot(struct plan *p, char **word, int words)
{
	/* The line's being there has booted the stack. */
	(void)p, (void)word, (void)words;
	return 0;
}

static int apply_served(struct plan *p, char **word, int words)
{
	(void)word;
	(void)words;
	p->served = true;
	return 0;
}

/* Known before the stack is: it is another process's that builds it. */
static int apply_user(struct plan *p, char **word, int words)
{
	(void)words;
	if (!p->user)
		p->user = calloc(1, sizeof(*p->user));
	if (!p->user)
		return guise_fail(ENOMEM, "out of memory");
	return isolation_named(p->user, word[1]);
}

static int apply_keep(struct plan *p, char **word, int words)
{
	(void)word, (void)words;
	p->keep = true;
	return 0;
}

static int apply_undo(struct plan *p, char **word, int words)
{
	(void)words;
	p->undo_program = word[1];
	p->undo_journal = word[2];
	return 0;
}

int directive_fd(const char *directive, const char *word, int *fd)
{
	int end = 0;

	if (sscanf(word, "fd=%d%n", fd, &end) != 1 || word[end] || *fd < 0)
		return guise_fail(EINVAL, "%s: \"%s\" is not fd=N", directive, word);
	return 0;
}

static int apply_follow(struct plan *p, char **word, int words)
{
	int err;

	if (!p->control)
		return guise_fail(EINVAL, "follow must stand after control");
	err = directive_fd(word[0], word[2], &p->follow.config);
	if (!err)
		err = directive_fd(word[0], word[3], &p->follow.report);
	p->follow.opener = -1;
	if (!err && words > 4)
		err = directive_fd(word[0], word[4], &p->follow.opener);
	p->follow.program = word[1];
	return err;
}

static int apply_control(struct plan *p, char **word, int words)
{
	int fd, err = directive_fd(word[0], word[1], &fd);

	if (err)
		return err;
	if (p->control)
		return guise_fail(EINVAL, "control: there is one already");
	if (*word[2] != '/' || (words == 4 && *word[3] != '/'))
		return guise_fail(EINVAL, "control: expected paths that begin with /");
	p->control = control_new(fd, word[2], words == 4 ? word[3] : NULL);
	return p->control ? 0 : -ENOMEM;
}

static int apply_tell(struct plan *p, char **word, int words)
{
	(void)words;
	if (!p->control)
		return guise_fail(EINVAL, "tell must stand after control");
	return control_tell(p->control, word[1]);
}

/* link IFNAME KIND [WHAT] [OPTION...] is guise_link_add()'s "kind:what,option" */
static int add_link(struct plan *p, char **word, int words)
{
	char spec[256];
	size_t len;
	int i;

	len = (size_t)snprintf(spec, sizeof(spec), "%s", word[2]);
	for (i = 3; i < words && len < sizeof(spec); i++)
		len += (size_t)snprintf(spec + len, sizeof(spec) - len, "%c%s", i == 3 ? ':' : ',',
					word[i]);
	if (len >= sizeof(spec))
		return guise_fail(EINVAL, "link %s: longer than %zu characters", word[1],
				  sizeof(spec) - 1);
	return guise_link_add(p->s, word[1], spec);
}

static int apply_link(struct plan *p, char **word, int words)
{
	int fd, ret = add_link(p, word, words);

	if (ret < 0)
		return ret;
	/* The link has a copy; ours would keep the device after the link. */
	if (words > 3 && sscanf(word[3], "fd=%d", &fd) == 1)
		host_sys(SYS_close, fd);
	return 0;
}

static int apply_hold(struct plan *p, char **word, int words)
{
	int fd;

	(void)words;
	if (directive_fd("hold", word[1], &fd))
		return -EINVAL;
	if (p->n_held == PLAN_HELD)
		return guise_fail(ENOSPC, "hold: at most %d descriptors", PLAN_HELD);
	p->held[p->n_held++] = fd;
	return 0;
}

/* The holder does not yet watch for the end of such a link's other side. */
static int add_link_later(struct plan *p, char **word, int words)
{
	const struct guise_link_kind *kind = guise_link_kind(word[2]);

	if (words < 4 || strncmp(word[3], "fd=", 3))
		return guise_fail(EINVAL, "link %s: expected the descriptor of an open link (fd=N)",
				  word[1]);
	if (kind && (kind->backend->end || kind->backend->epitaph))
		return guise_fail(EINVAL,
				  "link %s: a %s cannot come while the stack has programs; it is "
				  "given when the stack is made",
				  word[1], word[2]);
	return add_link(p, word, words);
}

static int remove_link(struct plan *p, char **word, int words)
{
	(void)words;
	return guise_link_del(p->s, word[1]);
}

static int apply_bridge(struct plan *p, char **word, int words)
{
	return guise_bridge_add(p->s, word[1], (const char *const *)word + 2, words - 2);
}

static int apply_up(struct plan *p, char **word, int words)
{
	(void)words;
	return guise_link_set(p->s, word[1], 1);
}

static int remove_up(struct plan *p, char **word, int words)
{
	(void)words;
	return guise_link_set(p->s, word[1], 0);
}

static int apply_carrier(struct plan *p, char **word, int words)
{
	(void)words;
	if (strcmp(word[2], "on") && strcmp(word[2], "off"))
		return guise_fail(EINVAL, "carrier %s: \"%s\" is neither on nor off", word[1],
				  word[2]);
	return guise_link_carrier(p->s, word[1], !strcmp(word[2], "on"));
}

static int apply_mtu(struct plan *p, char **word, int words)
{
	uint64_t mtu;
	int err = guise_unit_count(word[2], "mtu", &mtu);

	(void)words;
	return err ? err : guise_link_mtu(p->s, word[1], (int)(mtu < INT_MAX ? mtu : INT_MAX));
}

static int apply_address(struct plan *p, char **word, int words)
{
	(void)words;
	relay_add_local(p->relay, word[2]);
	return guise_addr_add(p->s, word[1], word[2]);
}

static int remove_address(struct plan *p, char **word, int words)
{
	if (words < 3)
		return guise_fail(EINVAL, "address %s: expected \"address IFNAME ADDR/LEN\"",
				  word[1]);
	return guise_addr_del(p->s, word[1], word[2]);
}

static int parse_route(char **word, int words, struct guise_route_spec *r)
{
	uint64_t metric;

	*r = (struct guise_route_spec){ .dst = word[1] };
	for (int i = 2; i < words; i += 2) {
		if (!strcmp(word[i], "onlink")) {
			r->onlink = true;
			i--;
			continue;
		}
		if (i + 1 == words)
			return guise_fail(EINVAL, "route %s: %s needs a value", word[1], word[i]);
		if (!strcmp(word[i], "via")) {
			r->via = word[i + 1];
		} else if (!strcmp(word[i], "dev")) {
			r->dev = word[i + 1];
		} else if (!strcmp(word[i], "src")) {
			r->src = word[i + 1];
		} else if (!strcmp(word[i], "metric")) {
			if (guise_unit_count(word[i + 1], "metric", &metric))
				return -EINVAL;
			r->metric = (unsigned int)metric;
		} else if (strcmp(word[i], "table")) {
			return guise_fail(EINVAL,
					  "route %s: unknown word \"%s\"; known are via, dev, "
					  "src, metric, onlink, table",
					  word[1], word[i]);
		} else if (parse_table(word[i + 1], &r->table)) {
			return -EINVAL;
		}
	}
	return 0;
}

static int change_route(struct plan *p, char **word, int words, bool add)
{
	struct guise_route_spec r;
	int err = parse_route(word, words, &r);

	return err ? err : guise_route_change(p->s, &r, add);
}

static int apply_route(struct plan *p, char **word, int words)
{
	return change_route(p, word, words, true);
}

static int remove_route(struct plan *p, char **word, int words)
{
	return change_route(p, word, words, false);
}

static int change_rule(struct plan *p, char **word, int words, bool add)
{
	struct guise_rule rule = { 0 };
	struct {
		const char *name;
		const char **text;
		uint32_t *number;
	} known[] = {
		{ "from", &rule.from, NULL },     { "to", &rule.to, NULL },
		{ "iif", &rule.iif, NULL },       { "oif", &rule.oif, NULL },
		{ "fwmark", NULL, &rule.fwmark }, { "priority", NULL, &rule.priority },
		{ "table", NULL, &rule.table },
	};
	const size_t n = sizeof(known) / sizeof(known[0]);

	for (int i = 1; i < words; i += 2) {
		uint64_t value;
		size_t k = 0;

		while (k < n && strcmp(word[i], known[k].name))
			k++;
		if (k == n)
			return guise_fail(EINVAL,
					  "rule: unknown word \"%s\"; known are from, to, iif, "
					  "oif, fwmark, priority, table",
					  word[i]);
		if (i + 1 == words)
			return guise_fail(EINVAL, "rule: %s needs a value", word[i]);
		if (known[k].text) {
			*known[k].text = word[i + 1];
			continue;
		}
		if (guise_unit_count(word[i + 1], word[i], &value))
			return -EINVAL;
		*known[k].number = (uint32_t)value;
	}
	return guise_rule_change(p->s, &rule, add);
}

static int apply_rule(struct plan *p, char **word, int words)
{
	return change_rule(p, word, words, true);
}

static int remove_rule(struct plan *p, char **word, int words)
{
	return change_rule(p, word, words, false);
}

static int apply_qdisc(struct plan *p, char **word, int words)
{
	char *spec = join_words(word + 2, words - 2);
	int err;

	if (!spec)
		return -ENOMEM;
	err = guise_qdisc_set(p->s, word[1], spec);
	free(spec);
	return err;
}

static int apply_sysctl(struct plan *p, char **word, int words)
{
	char *value = join_words(word + 2, words - 2);
	int err;

	if (!value)
		return -ENOMEM;
	err = guise_sysctl_set(p->s, word[1], value);
	free(value);
	return err;
}

static int apply_mptcp(struct plan *p, char **word, int words)
{
	uint64_t add_addr, subflows;
	char *flags;
	int err;

	if (!strcmp(word[1], "limits") && words == 4) {
		err = guise_unit_count(word[2], "mptcp limits", &add_addr);
		if (!err)
			err = guise_unit_count(word[3], "mptcp limits", &subflows);
		return err ? err
			   : guise_mptcp_limits(p->s, (unsigned int)add_addr,
						(unsigned int)subflows);
	}
	if (!strcmp(word[1], "endpoint") && words >= 5 && !strcmp(word[3], "dev")) {
		flags = join_words(word + 5, words - 5);
		if (!flags)
			return -ENOMEM;
		err = guise_mptcp_endpoint(p->s, word[2], word[4], flags);
		free(flags);
		return err;
	}
	return guise_fail(EINVAL, "mptcp: expected \"mptcp endpoint ADDR dev IFNAME FLAG...\" or "
				  "\"mptcp limits ADD_ADDR SUBFLOWS\"");
}

/* One that is there already gets other flags: whether it is a backup. */
static int change_mptcp(struct plan *p, char **word, int words)
{
	bool backup = false;
	int err = apply_mptcp(p, word, words);

	for (int i = 5; i < words; i++)
		backup = backup || !strcmp(word[i], "backup");
	return err == -EEXIST ? guise_mptcp_endpoint_backup(p->s, word[2], backup) : err;
}

static int remove_mptcp(struct plan *p, char **word, int words)
{
	if (words < 5 || strcmp(word[1], "endpoint") || strcmp(word[3], "dev"))
		return guise_fail(EINVAL, "mptcp: expected \"mptcp endpoint ADDR dev IFNAME\"");
	return guise_mptcp_endpoint_del(p->s, word[2]);
}

/* A stack in simulated time has no host beside it. */
static int need_host(const struct plan *p, const char *directive)
{
	return p->options.simulated ? guise_fail(EINVAL, "%s: not in simulated time", directive)
				    : 0;
}

static int apply_relay(struct plan *p, char **word, int words)
{
	int err = need_host(p, word[0]);

	(void)words;
	return err ? err : relay_add_map(p->relay, word[1], word[2]);
}

static int apply_resolver(struct plan *p, char **word, int words)
{
	int err = need_host(p, word[0]);

	return err ? err : relay_add_resolver(p->relay, word[1], words > 2 ? word[2] : NULL);
}

static int change_nameservers(struct plan *p, char **word, int words)
{
	int err = need_host(p, word[0]);

	return err ? err : resolvers_set(&p->relay->resolvers, word + 1, words - 1);
}

static int apply_host(struct plan *p, char **word, int words)
{
	int err = need_host(p, word[0]);

	(void)words;
	return err ? err : names_add(&p->relay->names, word[1], word[2]);
}

static int apply_publish(struct plan *p, char **word, int words)
{
	bool udp = !strcmp(word[2], "udp");
	int fd, err = need_host(p, word[0]);
	uint64_t port;

	(void)words;
	if (!err)
		err = directive_fd(word[0], word[1], &fd);
	if (err)
		return err;
	if (!udp && strcmp(word[2], "tcp"))
		return guise_fail(EINVAL, "publish: \"%s\" is neither tcp nor udp", word[2]);
	err = guise_unit_count(word[3], "publish", &port);
	if (err)
		return err;
	if (!port || port > 65535)
		return guise_fail(EINVAL, "publish: %s is no port", word[3]);
	return relay_add_publication(p->relay, fd, udp, (unsigned int)port);
}

static int apply_privileges(struct plan *p, char **word, int words)
{
	static const char *const names[] = {
		[GUISE_PRIVILEGES_ALL] = "all",
		[GUISE_PRIVILEGES_HOST] = "host",
		[GUISE_PRIVILEGES_KEPT] = "kept",
	};

	(void)words;
	for (uint32_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(word[1], names[i])) {
			p->s->region->privileges = i;
			return 0;
		}
	return guise_fail(EINVAL, "privileges: \"%s\" is none of all, host and kept", word[1]);
}

static int apply_guests(struct plan *p, char **word, int words)
{
	int err = need_host(p, word[0]);

	return err ? err : guests_parse(&p->relay->guests, p->s, word, words);
}

const struct directive plan_directives[] = {
	{ "name", SETTING, 1, 1, "NAME", apply_name, NULL, NULL },
	{ "memory", SETTING, 1, 1, "BYTES|NM", apply_memory, NULL, NULL },
	{ "kernel", ANYWHERE, 1, 1, "NAME", apply_kernel, NULL, NULL },
	{ "clock", SETTING, 1, 2, "real | sim SEED", apply_clock, NULL, NULL },
	{ "cmdline", SETTING, 1, MANY, "TEXT...", apply_cmdline, NULL, NULL },
	{ "boot", STACK, 0, 0, "", apply_boot, NULL, NULL },
	{ "privileges", STACK, 1, 1, "all|host|kept", apply_privileges, NULL, NULL },
	{ "link", STACK, 2, MANY, "IFNAME KIND [WHAT] [OPTION...]", apply_link, add_link_later,
	  remove_link },
	{ "bridge", STACK, 2, MANY, "IFNAME PORT...", apply_bridge, NULL, NULL },
	{ "up", STACK, 1, 1, "IFNAME", apply_up, apply_up, remove_up },
	{ "carrier", STACK, 2, 2, "IFNAME on|off", apply_carrier, apply_carrier, NULL },
	{ "mtu", STACK, 2, 2, "IFNAME N", apply_mtu, apply_mtu, NULL },
	{ "address", STACK, 2, 2, "IFNAME ADDR/LEN", apply_address, apply_address, remove_address },
	{ "route", STACK, 3, 12,
	  "DST [via ADDR] [dev IFNAME] [src ADDR] [metric N] [onlink] [table N]", apply_route,
	  apply_route, remove_route },
	{ "rule", STACK, 2, 14,
	  "[from PREFIX] [to PREFIX] [iif IFNAME] [oif IFNAME] [fwmark N] [priority N] table N",
	  apply_rule, apply_rule, remove_rule },
	{ "qdisc", STACK, 2, MANY, "IFNAME SPEC...", apply_qdisc, apply_qdisc, NULL },
	{ "sysctl", STACK, 2, MANY, "KEY VALUE...", apply_sysctl, apply_sysctl, NULL },
	{ "mptcp", STACK, 3, MANY, "endpoint ADDR dev IFNAME FLAG... | limits ADD_ADDR SUBFLOWS",
	  change_mptcp, change_mptcp, remove_mptcp },
	{ "relay", STACK, 2, 2, "ADDR[:PORT] HOST-ADDR[:PORT]", apply_relay, NULL, NULL },
	{ "resolver", STACK, 1, 2, "ADDR[:PORT] [SERVER[:PORT]]", apply_resolver, NULL, NULL },
	{ "nameservers", STACK, 0, MANY, "[ADDR dev IFNAME]...", change_nameservers,
	  change_nameservers, NULL },
	{ "host", STACK, 2, 2, "NAME ADDR", apply_host, NULL, NULL },
	{ "publish", STACK, 3, 3, "fd=N tcp|udp PORT", apply_publish, NULL, NULL },
	{ "guests", STACK, 3, 5, "IFNAME fd=N [mptcp] ADDR...", apply_guests, NULL, NULL },
	{ "served", ANYWHERE, 0, 0, "", apply_served, NULL, NULL },
	{ "user", ANYWHERE, 1, 1, "NAME", apply_user, NULL, NULL },
	{ "keep", ANYWHERE, 0, 0, "", apply_keep, NULL, NULL },
	{ "control", ANYWHERE, 2, 3, "fd=N PATH [NAME-PATH]", apply_control, NULL, NULL },
	{ "tell", ANYWHERE, 1, 1, "KEY=VALUE", apply_tell, NULL, NULL },
	{ "follow", ANYWHERE, 3, 4, "PROGRAM fd=CONFIG fd=REPORT [fd=OPENER]", apply_follow, NULL,
	  NULL },
	{ "undo", ANYWHERE, 2, 2, "PROGRAM JOURNAL", apply_undo, NULL, NULL },
	{ "hold", ANYWHERE, 1, 1, "fd=N", apply_hold, NULL, NULL },
};

const size_t plan_n_directives = sizeof(plan_directives) / sizeof(plan_directives[0]);
