/* SPDX-License-Identifier: GPL-2.0-only */
/* A buffer in up to four pieces, each an allocation of its own exact size. */
#ifndef GUISE_FUZZ_PIECES_H
#define GUISE_FUZZ_PIECES_H

#include "random.h"

#include "guise/layout.h"

#include <stdlib.h>

struct pieces {
	struct guise_iov iov[4];
	uint32_t first; /* the ones before are the caller's */
	uint32_t n;
};

static inline void pieces_make(struct pieces *p, struct rng *r, uint32_t first, uint64_t total)
{
	p->first = first;
	p->n = first + 1 + rng_below(r, 4 - first);
	for (uint32_t i = first; i < p->n; i++) {
		uint64_t part = i + 1 == p->n ? total : rng_below(r, (uint32_t)total + 1);

		p->iov[i] = (struct guise_iov){ malloc(part ? part : 1), part };
		if (!p->iov[i].base)
			abort();
		total -= part;
	}
}

static inline void pieces_free(struct pieces *p)
{
	for (uint32_t i = p->first; i < p->n; i++)
		free(p->iov[i].base);
}

#endif
