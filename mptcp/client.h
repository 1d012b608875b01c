/* SPDX-License-Identifier: GPL-2.0-only */
/* The end that asks: connects, talks, waits for further paths, and takes down what it saw. */
#ifndef GUISE_MPTCP_CLIENT_H
#define GUISE_MPTCP_CLIENT_H

#include "verdict.h"

struct question {
	const char *host, *port, *shown; /* shown: both, for messages */
	double patience;                 /* seconds, for an answer */
	double settle; /* seconds without a new path after which none is awaited */
};

void client_ask(const struct question *q, struct evidence *e);

#endif
