/* SPDX-License-Identifier: GPL-2.0-only */
/* The step of `guise run` into the namespaces of a guest. */
#ifndef GUISE_HOLDER_ENTER_H
#define GUISE_HOLDER_ENTER_H

#include <stdbool.h>

/* Whether that is what this process was started for. */
bool enter_wanted(int argc, char **argv);
/* Becomes the program; returns its own exit status when that fails. */
int enter(int argc, char **argv);

#endif
