/* SPDX-License-Identifier: GPL-2.0-only */
/* Whether the program's pointers are good, before guise itself follows them. */
#ifndef GUISE_HOST_PROBE_H
#define GUISE_HOST_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 0, or -EFAULT where a page of it cannot be read (written). Needs
 * guise_fault_handler(). */
int guise_readable(const void *memory, size_t bytes);
int guise_writable(void *memory, size_t bytes);

/* If pc is that of a probe that faulted: where it continues; else 0. */
uintptr_t guise_probe_fixup(uintptr_t pc);

#endif
