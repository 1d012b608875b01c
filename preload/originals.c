// SPDX-License-Identifier: GPL-2.0-only
/* See originals.h. */
#include "preload/originals.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>

void *preload_originals[ORIGINALS];

static const char *const names[ORIGINALS] = {
#define CALL(name, class, test, note) #name,
#include "preload/calls.h"
};

/* For a call that this libc does not have. */
static long missing(void)
{
	errno = ENOSYS;
	return -1;
}

/*
 * Where the originals are looked up. If this library is built with AddressSanitizer, in libc
 * itself, because the next library is the sanitizer's runtime: it would report a bad pointer of
 * the program, which the host's kernel is to answer with EFAULT, as an error of guise's. Only
 * new threads are made through the runtime, which must know them.
 */
static void *after(void)
{
#ifdef __SANITIZE_ADDRESS__
	return dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
#else
	return RTLD_NEXT;
#endif
}

/*
 * Two threads may both look; they find the same. dlsym() may call malloc,
 * whose replacement may read a file: then this is entered again, for another
 * name, which is fine.
 */
void *preload_find_original(enum preload_original which)
{
	bool of_threads = which == ORIGINAL_pthread_create || which == ORIGINAL_thrd_create;
	void *function = dlsym(of_threads ? RTLD_NEXT : after(), names[which]);

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
