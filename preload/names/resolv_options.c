// SPDX-License-Identifier: GPL-2.0-only
/* The resolver options of resolv.conf(5) that c-ares leaves to its caller. */
#include "preload/names/resolver.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* libc's limits */
#define MOST_SECONDS  30
#define MOST_ATTEMPTS 5

static bool number(const char *word, size_t length, const char *name, int least, int most,
		   int *value)
{
	size_t n = strlen(name);
	char *end;
	long v;

	if (length <= n || strncmp(word, name, n))
		return false;
	v = strtol(word + n, &end, 10);
	if (end != word + length)
		return false;
	*value = (int)(v < least ? least : v > most ? most : v);
	return true;
}

void resolver_options_read(struct resolver_options *o, const char *words)
{
	int seconds;

	while (*words) {
		size_t n = strcspn(words, " \t\r\n");

		if (number(words, n, "timeout:", 1, MOST_SECONDS, &seconds))
			o->timeout_ms = 1000 * seconds;
		else if (n == strlen("use-vc") && !strncmp(words, "use-vc", n))
			o->use_vc = true;
		else
			number(words, n, "attempts:", 1, MOST_ATTEMPTS, &o->attempts);
		words += n;
		words += strspn(words, " \t\r\n");
	}
}

void resolver_options_line(struct resolver_options *o, const char *line)
{
	if (!strncmp(line, "options", 7) && isspace((unsigned char)line[7]))
		resolver_options_read(o, line + 8);
}
