/* SPDX-License-Identifier: GPL-2.0-only */
/* What the warden does for the carrier; requests.c. */
#ifndef GUISE_HOLDER_REQUESTS_H
#define GUISE_HOLDER_REQUESTS_H

#include "holder/isolation.h"

#include "region/rights.h"

#include <stdbool.h>
#include <stdint.h>

#define REQUESTS_HELD 64

struct requests {
	int channel;
	struct isolation_user user;
	int listener;               /* the control socket; -1: none */
	uint64_t guests;            /* the number of their network namespace; 0: none */
	struct guise_rights rights; /* the user's */
	uint64_t deadline;          /* of guise_host_now(); 0: none */
	bool listens;               /* commands are answered */
	unsigned int bells;
	int held[REQUESTS_HELD];
	unsigned int n_held;
};

/* Answers the one that has come. False: the carrier has hung up. */
bool requests_answer(struct requests *r);

#endif
