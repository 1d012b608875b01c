/* SPDX-License-Identifier: GPL-2.0-only */
/* Configuration of a stack beyond guise.h: what a holder's plan needs as well. */
#ifndef GUISE_SETUP_SETUP_H
#define GUISE_SETUP_SETUP_H

#include "guise/guise.h"

#include <stdbool.h>

/* The interface's index in this thread's namespace, or -ENODEV with a
 * sentence that names those there are. */
int guise_ifindex(struct guise_stack *s, const char *dev);

/* A packet that matches all that is set here is looked up in that routing table. */
struct guise_rule {
	const char *from, *to; /* prefixes, or NULL */
	const char *iif, *oif; /* interfaces, which may come later, or NULL */
	uint32_t fwmark, priority, table;
};

/* add: else it is removed. */
int guise_rule_change(struct guise_stack *s, const struct guise_rule *rule, bool add);

/* What is NULL or 0 is left to Linux. */
struct guise_route_spec {
	const char *dst;             /* "default" or a prefix */
	const char *via, *dev, *src; /* gateway, interface, own address */
	unsigned int table, metric;
	bool onlink; /* the gateway is on the link, whatever the addresses say */
};

int guise_route_change(struct guise_stack *s, const struct guise_route_spec *r, bool add);

int guise_addr_del(struct guise_stack *s, const char *dev, const char *addr);

/* Takes an endpoint away, and ends the subflows of its address, the first ones of connections
 * included. */
int guise_mptcp_endpoint_del(struct guise_stack *s, const char *addr);

/* Whether the endpoint's subflows are used only when no other can be. */
int guise_mptcp_endpoint_backup(struct guise_stack *s, const char *addr, bool backup);

/* A bridge with these n interfaces as its ports, all of them up. */
int guise_bridge_add(struct guise_stack *s, const char *name, const char *const *ports, int n);

/* How many addresses of the peer MPTCP takes, how many subflows it makes. */
int guise_mptcp_limits(struct guise_stack *s, unsigned int add_addr, unsigned int subflows);

struct guise_address {
	uint8_t family; /* AF_INET, AF_INET6 */
	uint8_t addr[16];
};

/* The addresses of interfaces that are up and have a carrier, in this thread's namespace: how many
 * there are, most at the most; or -errno. */
int guise_addresses(struct guise_stack *s, struct guise_address *address, unsigned int most);

#endif
