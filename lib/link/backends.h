/* SPDX-License-Identifier: GPL-2.0-only */
/* The backends by name: one line here, one in link.c's table, one file each. */
#ifndef GUISE_LINK_BACKENDS_H
#define GUISE_LINK_BACKENDS_H

#include "link/link.h"

extern const struct guise_link_backend guise_link_tap;
extern const struct guise_link_backend guise_link_tun;
extern const struct guise_link_backend guise_link_pair;
extern const struct guise_link_backend guise_link_stream;
extern const struct guise_link_backend guise_link_passt;

#endif
