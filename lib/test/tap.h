/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a unit test says: a line "ok N - name" for each thing it shows, then
 * the plan "1..N". It ends with `return tap_end();`.
 */
#ifndef GUISE_TEST_TAP_H
#define GUISE_TEST_TAP_H

#include "guise/guise.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static int tap_count, tap_bad;

__attribute__((format(printf, 2, 3))) static inline bool tap(bool good, const char *name, ...)
{
	va_list ap;

	tap_bad += !good;
	printf("%sok %d - ", good ? "" : "not ", ++tap_count);
	va_start(ap, name);
	vprintf(name, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
	return good;
}

/* A call of guise that must be done. */
static inline void tap_done(int err, const char *name)
{
	if (!tap(err >= 0, "%s", name))
		printf("# %s\n", guise_error());
}

/* One that must fail, with a word in its sentence. */
static inline void tap_fails(int err, int expected, const char *word)
{
	if (!tap(err == -expected && strstr(guise_error(), word), "an error that says: %s", word))
		printf("# %d: %s\n", err, guise_error());
}

/* Something that cannot be shown here, and why. */
static inline void tap_skip(const char *name, const char *why)
{
	printf("ok %d - %s # skip %s\n", ++tap_count, name, why);
}

static inline int tap_end(void)
{
	printf("1..%d\n", tap_count);
	return tap_bad ? 1 : 0;
}

#endif
