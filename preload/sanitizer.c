// SPDX-License-Identifier: GPL-2.0-only
/*
 * What programs built with sanitizers ask every library by these names when
 * they start. A program that has such a function itself is asked instead.
 *
 * AddressSanitizer wants to come first among the libraries, so that all calls go
 * through it; after guise's hooks it still sees every call that reaches libc.
 * ThreadSanitizer takes the stack's memory for the program's and does not know
 * that the virtual CPU orders all access to it: what guise's own code does with
 * it is nothing to report.
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
