// SPDX-License-Identifier: GPL-2.0-only
/*
 * The environment of the next program. It stays on the stack, whatever this one did to its
 * environment: LD_PRELOAD and GUISE_STACK are put back where they are missing. GUISE_PLACE names
 * the end of the place that waits for it (passing.c). GUISE_PRELOAD=off is for programs that join
 * by libguise themselves: the library is taken out.
 */
#include "preload/process/exec.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PRELOAD "LD_PRELOAD="
#define STACK   "GUISE_STACK="
#define PLACE   "GUISE_PLACE="

/* Other variables that are put back into an environment without them, as they were at the start. */
static const char *const others[] = { "GUISE_MPTCP", "GUISE_DNS", "GUISE_RESOLV_CONF",
				      "GUISE_HOSTS", "GUISE_OUTSIDE" };
_Static_assert(sizeof(others) / sizeof(*others) == EXEC_OTHERS, "room for them, see exec.h");

static char *other[EXEC_OTHERS]; /* NAME=VALUE, or NULL */
static char library[PATH_MAX];

void preload_exec_begin(void)
{
	Dl_info self;

	if (dladdr(&preload, &self) && self.dli_fname && strlen(self.dli_fname) < sizeof(library))
		strcpy(library, self.dli_fname);
	for (size_t i = 0; i < EXEC_OTHERS; i++) {
		const char *value = secure_getenv(others[i]);

		if (value && asprintf(&other[i], "%s=%s", others[i], value) < 0)
			other[i] = NULL;
	}
}

const char *preload_library(void)
{
	return library;
}

size_t exec_lines(char *const *env)
{
	size_t n = 0;

	while (env && env[n])
		n++;
	return n;
}

static const char *value_of(const char *line, const char *name)
{
	size_t n = strlen(name);

	return strncmp(line, name, n) ? NULL : line + n;
}

/* Our library in a list of them; NULL if it is not there. */
static const char *find_library(const char *list)
{
	size_t n = strlen(library);

	for (const char *at = list; (at = strstr(at, library)); at++)
		if ((at == list || strchr(": ", at[-1])) && strchr(": ", at[n]))
			return at;
	return NULL;
}

bool exec_switched_off(char *const *env)
{
	for (; env && *env; env++)
		if (!strcmp(*env, "GUISE_PRELOAD=off"))
			return true;
	return false;
}

/* env without our library. */
static void strip(char **line, char *longer, char *const *env)
{
	size_t n = 0;

	for (; env && *env; env++) {
		const char *list = value_of(*env, PRELOAD), *at = list ? find_library(list) : NULL;

		line[n++] = at ? longer : *env;
		if (at)
			sprintf(longer, PRELOAD "%.*s%s", (int)(at - list), list,
				at + strlen(library));
	}
	line[n] = NULL;
}

size_t exec_room(char *const *env)
{
	size_t room = sizeof(PRELOAD) + strlen(library) + 1;

	for (; env && *env; env++)
		if (value_of(*env, PRELOAD))
			room += strlen(*env);
	return room;
}

void exec_furnish(char **line, char *longer, char *number, char *where, char *const *env, int place)
{
	const char *list = NULL;
	bool has_stack = false;
	size_t n = 0;

	if (exec_switched_off(env)) {
		strip(line, longer, env);
		return;
	}
	for (; env && *env; env++) {
		if (value_of(*env, PLACE))
			continue;
		if (value_of(*env, PRELOAD)) {
			list = value_of(*env, PRELOAD);
			if (!find_library(list))
				continue;
		}
		has_stack |= value_of(*env, STACK) != NULL;
		line[n++] = *env;
	}
	if (!list || !find_library(list)) {
		strcpy(longer, PRELOAD);
		if (list && *list)
			strcat(strcat(longer, list), ":");
		line[n++] = strcat(longer, library);
	}
	if (!has_stack) {
		sprintf(number, STACK "%d", preload.ticket);
		line[n++] = number;
		for (size_t i = 0; i < EXEC_OTHERS; i++)
			if (other[i])
				line[n++] = other[i];
	}
	if (place >= 0) {
		sprintf(where, PLACE "%d:%u", place, preload_inode(place));
		line[n++] = where;
	}
	line[n] = NULL;
}
