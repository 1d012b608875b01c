// SPDX-License-Identifier: GPL-2.0-only
/*
 * Default options for the sanitizers that a program is built with.
 *
 * A sanitizer's runtime calls functions of these names when it starts, to ask for
 * its defaults; a definition in the program itself takes precedence over these.
 *
 * AddressSanitizer refuses to run if it is not the first library, because it wants
 * to see all calls. On a stack the preload library is the first one, so that check is
 * turned off: every call that reaches libc still passes through the sanitizer.
 *
 * ThreadSanitizer takes the stack's memory for the program's. It does not know that all
 * access to this memory is ordered by the virtual CPU, and would report races where there
 * are none. So it is told to report nothing that the preload library does.
 */
#include "preload/preload.h"

HOOK const char *__asan_default_options(void);
HOOK const char *__tsan_default_suppressions(void);

/*
 * Leaks are reported as the program's own options say. A guise that is itself built with the
 * sanitizer runs all sorts of programs: there leaks are reported only on request.
 */
const char *__asan_default_options(void)
{
#ifdef __SANITIZE_ADDRESS__
	return "verify_asan_link_order=0:detect_leaks=0";
#else
	return "verify_asan_link_order=0";
#endif
}

const char *__tsan_default_suppressions(void)
{
	return "called_from_lib:libguise-preload.so\n";
}
