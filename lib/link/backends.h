/* SPDX-License-Identifier: GPL-2.0-only */
/* The backends by name: one for each kind of kinds.h. */
#ifndef GUISE_LINK_BACKENDS_H
#define GUISE_LINK_BACKENDS_H

#include "link/link.h"

#define KIND(name, ...) extern const struct guise_link_backend guise_link_##name;
#include "link/kinds.h"

#endif
