/* SPDX-License-Identifier: GPL-2.0-only */
/* What the user writes for a link: "kind[:rest][,mac=M][,mtu=N][,offload=off]". */
#ifndef GUISE_LINK_SPEC_H
#define GUISE_LINK_SPEC_H

#include "link/link.h"

#include <stdbool.h>
#include <stdint.h>

struct guise_link_spec {
	const struct guise_link_kind *kind;
	char rest[128]; /* after "kind:", for the backend */
	bool has_mac;
	uint8_t mac[6];
	uint32_t mtu; /* 0: not given */
	bool offload_off;
};

/* 0, or -EINVAL with a sentence that names what would be valid. */
int guise_link_spec_parse(const char *text, struct guise_link_spec *spec);

/* A name that Linux takes for an interface; else -EINVAL with a sentence. */
int guise_link_name_check(const char *name);

#endif
