// SPDX-License-Identifier: GPL-2.0-only
/* Bytes that are no UTF-8 (a file may have any name) go as they are: readers replace them. */
#include "holder/json.h"

void json_string(FILE *out, const char *text)
{
	putc('"', out);
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			putc('\\', out);
		if (c < 0x20)
			fprintf(out, "\\u%04x", c);
		else
			putc(c, out);
	}
	putc('"', out);
}
