/* SPDX-License-Identifier: GPL-2.0-only */
/* What the kernel under test says. */
#ifndef GUISE_FUZZ_CONSOLE_H
#define GUISE_FUZZ_CONSOLE_H

#include <stddef.h>

/* The descriptor for struct guise_options; -1, with errno. One for each process. */
int console_open(void);
/*
 * Reads what was said since it was asked last, and puts the end of that into last, unless nothing
 * was. NULL, or a line by which the kernel warns of a bug in itself.
 */
const char *console_alarm(char *last, size_t room);

#endif
