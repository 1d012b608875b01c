// SPDX-License-Identifier: GPL-2.0-only
/*
 * A file may have any name, and what guise says of it goes to a terminal, which obeys some
 * characters: they could hide or forge lines, or type for the user. These are the control
 * characters, with those from U+0080 to U+009F, and the ones that change the direction of text.
 * internal/plain does the same in the command line, and more exactly.
 */
#include "host/plain.h"

/* How many bytes at c are a character that a terminal obeys; 0: none. */
static int obeyed(const unsigned char *c)
{
	if (*c < ' ' || *c == 0x7f)
		return 1;
	if (c[0] == 0xc2 && c[1] >= 0x80 && c[1] <= 0x9f)
		return 2;
	/* U+200E, U+200F; U+202A to U+202E; U+2066 to U+2069 */
	if (c[0] == 0xe2 && c[1] == 0x80 &&
	    (c[2] == 0x8e || c[2] == 0x8f || (c[2] >= 0xaa && c[2] <= 0xae)))
		return 3;
	return c[0] == 0xe2 && c[1] == 0x81 && c[2] >= 0xa6 && c[2] <= 0xa9 ? 3 : 0;
}

void guise_plain(char *line)
{
	char *to = line;

	for (const char *from = line; *from;) {
		int n = obeyed((const unsigned char *)from);

		*to++ = n ? '?' : *from;
		from += n ? n : 1;
	}
	*to = '\0';
}
