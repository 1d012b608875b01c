/* SPDX-License-Identifier: GPL-2.0-only */
/* A queueing discipline as text, parsed: "netem delay 20ms 2ms loss 0.2%". */
#ifndef GUISE_SETUP_QDISC_SPEC_H
#define GUISE_SETUP_QDISC_SPEC_H

#include <stdbool.h>
#include <stdint.h>

enum guise_qdisc_kind {
	GUISE_QDISC_NONE,
	GUISE_QDISC_NETEM,
	GUISE_QDISC_FQ,
	GUISE_QDISC_FQ_CODEL,
	GUISE_QDISC_TBF,
	GUISE_QDISC_PFIFO,
	GUISE_QDISC_BFIFO,
};

/* Every word that some discipline takes; times are in ns, rates in bytes/s,
 * sizes in bytes, shares of 2^32 - 1. */
enum guise_qdisc_word {
	GUISE_Q_DELAY, /* delay, jitter, correlation */
	GUISE_Q_LOSS,  /* share, correlation; so the next three */
	GUISE_Q_DUPLICATE,
	GUISE_Q_REORDER,
	GUISE_Q_CORRUPT,
	GUISE_Q_GAP,
	GUISE_Q_RATE,
	GUISE_Q_LIMIT,
	GUISE_Q_SEED,
	GUISE_Q_ECN,
	GUISE_Q_NOECN,
	GUISE_Q_FLOW_LIMIT,
	GUISE_Q_QUANTUM,
	GUISE_Q_INITIAL_QUANTUM,
	GUISE_Q_MAXRATE,
	GUISE_Q_PACING,
	GUISE_Q_NOPACING,
	GUISE_Q_FLOWS,
	GUISE_Q_TARGET,
	GUISE_Q_INTERVAL,
	GUISE_Q_BURST,
	GUISE_Q_LATENCY,
	GUISE_Q_WORDS,
};

struct guise_qdisc {
	enum guise_qdisc_kind kind;
	const char *name; /* the kernel's name of the kind */
	struct {
		bool set;
		uint64_t v[3]; /* what was not given is 0 */
	} word[GUISE_Q_WORDS];
};

/* 0, or -EINVAL with a sentence that names what would be valid. */
int guise_qdisc_parse(const char *text, struct guise_qdisc *q);

#endif
