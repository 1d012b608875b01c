// SPDX-License-Identifier: GPL-2.0-only
/*
 * guise-check-mptcp: says whether a connection is Multipath TCP end to end, which paths it has,
 * and what fell back and why; or answers at the other end. guise check-mptcp starts it.
 *
 * It is an ordinary program that knows nothing of libguise, and comes to a stack as others do, by
 * the preload library: so the same program checks a stack and the host, and what it says of a
 * stack holds for the programs on it.
 */
#include "client.h"
#include "serve.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define USAGE 2

static int usage(void)
{
	fputs("usage: guise-check-mptcp ask HOST PORT SHOWN PATIENCE SETTLE [--json]\n"
	      "       guise-check-mptcp serve ADDRESS PORT [--json]\n"
	      "Started by guise check-mptcp; ADDRESS - is all.\n",
	      stderr);
	return USAGE;
}

static int ask(char **words, bool as_json)
{
	struct question q = { words[0], words[1], words[2], strtod(words[3], NULL),
			      strtod(words[4], NULL) };
	static struct evidence e;

	client_ask(&q, &e);
	if (as_json)
		verdict_print_json(&e, stdout);
	else
		verdict_print(&e, stdout);
	return verdict_status(verdict_of(&e));
}

int main(int argc, char **argv)
{
	bool as_json = argc > 1 && !strcmp(argv[argc - 1], "--json");

	argc -= as_json;
	signal(SIGPIPE, SIG_IGN);
	if (argc == 7 && !strcmp(argv[1], "ask"))
		return ask(argv + 2, as_json);
	if (argc == 4 && !strcmp(argv[1], "serve"))
		return serve(strcmp(argv[2], "-") ? argv[2] : NULL, argv[3], as_json);
	return usage();
}
