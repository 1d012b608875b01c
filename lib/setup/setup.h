/* SPDX-License-Identifier: GPL-2.0-only */
/* Configuration of a stack beyond guise.h: what a holder's plan needs as well. */
#ifndef GUISE_SETUP_SETUP_H
#define GUISE_SETUP_SETUP_H

#include "guise/guise.h"

/* The interface's index in this thread's namespace, or -ENODEV with a
 * sentence that names those there are. */
int guise_ifindex(struct guise_stack *s, const char *dev);

/* A packet that matches all that is set here is looked up in that routing table. */
struct guise_rule {
	const char *from, *to; /* prefixes, or NULL */
	const char *iif, *oif; /* interfaces, which may come later, or NULL */
	uint32_t fwmark, priority, table;
};

int guise_rule_add(struct guise_stack *s, const struct guise_rule *rule);

/* A bridge with these n interfaces as its ports, all of them up. */
int guise_bridge_add(struct guise_stack *s, const char *name, const char *const *ports, int n);

/* How many addresses of the peer MPTCP takes, how many subflows it makes. */
int guise_mptcp_limits(struct guise_stack *s, unsigned int add_addr, unsigned int subflows);

#endif
