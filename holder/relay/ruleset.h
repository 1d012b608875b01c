/* SPDX-License-Identifier: GPL-2.0-only */
/* What inside the stack leads packets to the relays. */
#ifndef GUISE_HOLDER_RULESET_H
#define GUISE_HOLDER_RULESET_H

#include "holder/relay/relay.h"

/* The queue that connection requests wait in, and the marks with which they
 * leave it: go on to the relay; refused; its host, or its network, cannot be reached. */
#define RULESET_QUEUE       0x6775
#define RULESET_GO          0x67750001u
#define RULESET_REFUSE      0x67750002u
#define RULESET_UNREACHABLE 0x67750003u
#define RULESET_NO_ROUTE    0x67750004u

/* The address is the stack's own, without being on an interface. */
int ruleset_local(struct guise_stack *s, const struct sockaddr_storage *addr);

/* The rules for all maps, published ports and guests of r. */
int ruleset_apply(const struct relay *r);

#endif
