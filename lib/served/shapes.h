/* SPDX-License-Identifier: GPL-2.0-only */
/* Which arguments of a call are pointers, and to what. See shapes.c. */
#ifndef GUISE_SERVED_SHAPES_H
#define GUISE_SERVED_SHAPES_H

#include <stdbool.h>
#include <stdint.h>

enum guise_shape_what {
	GUISE_VALUE,
	GUISE_IN,       /* the call reads so many bytes */
	GUISE_OUT,      /* it writes them */
	GUISE_BOTH,     /* it reads and writes them */
	GUISE_LEFT,     /* ... also when it is interrupted */
	GUISE_STRING,   /* it reads up to a zero byte */
	GUISE_DATA_IN,  /* the data of a transfer: as many bytes as another argument says */
	GUISE_DATA_OUT, /* ... of which the result counts those that came */
	GUISE_MEASURED, /* it writes as many as the word that the next argument points to says */
	GUISE_MEASURE,  /* that word */
};

struct guise_shape_arg {
	uint8_t what;  /* enum guise_shape_what */
	uint8_t count; /* the argument that says how many, + 1; 0: one */
	uint16_t unit; /* bytes of each */
};

enum guise_shape_nest {
	GUISE_UNKNOWN,
	GUISE_FLAT,
	GUISE_NEST_IOV_IN, /* argument 1, and 2 says how many */
	GUISE_NEST_IOV_OUT,
	GUISE_NEST_MSG_IN, /* argument 1 */
	GUISE_NEST_MSG_OUT,
	GUISE_NEST_MMSG_IN, /* argument 1, and 2 says how many */
	GUISE_NEST_MMSG_OUT,
	GUISE_NEST_IOCTL,
	GUISE_NEST_OPTION,
	GUISE_NEST_PSELECT,
};

struct guise_shape {
	uint8_t nest; /* enum guise_shape_nest */
	struct guise_shape_arg arg[6];
};

/* NULL: a served program may not make the call. */
const struct guise_shape *guise_shape_of(uint64_t nr);
/* Whether a served program may make it with these arguments. */
bool guise_shape_allows(uint64_t nr, const uint64_t arg[6]);

#endif
