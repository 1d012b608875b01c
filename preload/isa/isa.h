/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the preload library must know of a processor, beside lib/isa/: a file each. It has the
 * hooks dlsym and dlvsym, too, which lookup.c describes.
 */
#ifndef GUISE_PRELOAD_ISA_H
#define GUISE_PRELOAD_ISA_H

#include <stdbool.h>

/* A request to Valgrind; its answer, 0 where there is none. */
unsigned long preload_isa_valgrind(volatile unsigned long *request);

/* Whether this thread has no thread-local storage. */
bool preload_isa_without_storage(void);

#endif
