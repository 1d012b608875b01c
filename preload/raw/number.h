/* SPDX-License-Identifier: GPL-2.0-only */
/* System calls by number whose arguments are laid out otherwise than the hook's; see syscall.c. */
#ifndef GUISE_PRELOAD_NUMBER_H
#define GUISE_PRELOAD_NUMBER_H

#include "preload/raw/trap.h"

#include <sys/syscall.h>

/* One function for each DECODED number of the list. Its result is the kernel's: -errno. */
#define DECODED(number, call) long number_##number(const struct preload_arguments *x);
#include "preload/calls.h"

/* The call of the host by that very number. */
long number_on_host(long nr, const struct preload_arguments *x);

/* The result of a hook, as the kernel would return it. A hook that may wait is called between
 * these two, because a system call by number is no cancellation point even if its hook is. */
void number_hook_begins(int *cancel_state);
long number_hook_returned(long ret, int cancel_state);

#define AS_KERNEL(call)                                     \
	({                                                  \
		int state_;                                 \
		number_hook_begins(&state_);                \
		number_hook_returned((long)(call), state_); \
	})

#endif
