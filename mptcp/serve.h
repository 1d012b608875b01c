/* SPDX-License-Identifier: GPL-2.0-only */
/* The end that answers, until a signal ends it. */
#ifndef GUISE_MPTCP_SERVE_H
#define GUISE_MPTCP_SERVE_H

#include <stdbool.h>

/* address: NULL for all; 0 at a signal, 2 for an address or a port that cannot be had, 125 when it
 * fails */
int serve(const char *address, const char *port, bool as_json);

#endif
