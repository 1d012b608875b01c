// SPDX-License-Identifier: GPL-2.0-only
/* Text for a terminal: what it would obey is gone, all else is as it was. */
#include "host/plain.h"

#include "test/tap.h"

#include <string.h>

static void check(const char *given, const char *wanted)
{
	char line[64];

	strcpy(line, given);
	guise_plain(line);
	tap(!strcmp(line, wanted), "\"%s\"", wanted);
}

int main(void)
{
	check("", "");
	check("/usr/bin/nginx: worker", "/usr/bin/nginx: worker");
	check("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x90\xa7",
	      "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x90\xa7");
	check("a\033[2Jb\rc\nd\te\177", "a?[2Jb?c?d?e?");
	check("\xc2\x9b"
	      "2J",
	      "?2J");
	check("gpj.\xe2\x80\xae"
	      "exe\xe2\x81\xa9",
	      "gpj.?exe?");
	/* The end of a text in the middle of a character. */
	check("\xc2", "\xc2");
	check("\xe2\x80", "\xe2\x80");
	return tap_end();
}
