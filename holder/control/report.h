/* SPDX-License-Identifier: GPL-2.0-only */
/* What there is to say of a living stack, as JSON; docs/plan.md lists the keys. */
#ifndef GUISE_HOLDER_REPORT_H
#define GUISE_HOLDER_REPORT_H

#include "region/serve.h"

struct report_facts {
	uint64_t age_ms;
	bool ending;
	const char *told; /* members of a JSON object */
};

/* What the holder and the region's counters tell, without the virtual CPU. To be
 * freed; NULL with the error set. */
char *report_of_the_holder(const struct guise_server *v, const struct report_facts *facts);

/* What the kernel of the stack tells: false where it cannot. Waits for the virtual CPU. */
bool report_of_the_stack(struct guise_stack *s, char *text, size_t size);

/* The number of sockets in the text of /proc/net/sockstat; -1: none is there. */
long report_sockets(const char *sockstat);

#endif
