// SPDX-License-Identifier: GPL-2.0-only
/* See originals.h. */
#include "originals.h"

#include <dlfcn.h>
#include <errno.h>

void *preload_originals[ORIGINALS];

static const char *const names[ORIGINALS] = {
#define CALL(name, class, test, note) #name,
#include "calls.h"
};

/* For a call that this libc does not have. */
static long missing(void)
{
	errno = ENOSYS;
	return -1;
}

/*
 * Two threads may both look; they find the same. dlsym() may call malloc,
 * whose replacement may read a file: then this is entered again, for another
 * name, which is fine.
 */
void *preload_find_original(enum preload_original which)
{
	void *function = dlsym(RTLD_NEXT, names[which]);

	if (!function)
		function = (void *)missing;
	__atomic_store_n(&preload_originals[which], function, __ATOMIC_RELAXED);
	return function;
}

void preload_find_originals(void)
{
	for (unsigned int i = 0; i < ORIGINALS; i++)
		preload_original(i);
}
