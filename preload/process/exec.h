/* SPDX-License-Identifier: GPL-2.0-only */
/* What exec and posix_spawn share: the next program's environment, and the sockets it gets. */
#ifndef GUISE_PRELOAD_EXEC_H
#define GUISE_PRELOAD_EXEC_H

#include "preload/preload.h"

#include "region/heir.h"

#include <limits.h>

/* ---- environment.c ---- */

#define EXEC_OTHERS 5 /* variables besides guise's own three that are put back */

/* Whether it has GUISE_PRELOAD=off. */
bool exec_switched_off(char *const *env);
/* How many there are before the NULL, of variables or arguments. */
size_t exec_lines(char *const *env);
/* How long the line for LD_PRELOAD may get. */
size_t exec_room(char *const *env);
/*
 * env for a program on the stack, into line, which has room for it and 4 + EXEC_OTHERS more;
 * longer has exec_room(). place: the end of the place that waits for it, or -1.
 */
void exec_furnish(char **line, char *longer, char *number, char *where, char *const *env,
		  int place);

/* ---- passing.c ---- */

/*
 * Prepares a place for the next program, if any private socket passes to it. Where there is no
 * place the program would lose its sockets: so exec and posix_spawn fail then, as fork does, with
 * EAGAIN or ENOMEM.
 */
int exec_prepare(struct guise_heir *heir, char *const *env, bool spawn);

/* ---- exec.c ---- */

/* Whether the list of variables or arguments is memory that can be read. */
bool exec_readable(char *const *env);
/*
 * Whether a program is to be loaded without its capabilities, and by what; and its arguments
 * then, for which there must be room for two more.
 */
bool exec_is_loaded_bare(const char *path, char *const *argv, char *const *envp,
			 char loader[PATH_MAX]);
void exec_load_bare(char **arguments, const char *path, char *const *argv);

#endif
