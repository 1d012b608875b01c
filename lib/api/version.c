// SPDX-License-Identifier: GPL-2.0-only
/* Which guise this is, and whose kernel its stacks in this process run. */
#include "region/stack.h"

#include <stdio.h>

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)

const char *guise_version(void)
{
	static __thread char text[128];
	const struct guise_stack *s = guise_stacks();

	if (!s)
		return TEXT(GUISE_VERSION);
	snprintf(text, sizeof(text), "%s (Linux %s)", TEXT(GUISE_VERSION), s->image->release);
	return text;
}
