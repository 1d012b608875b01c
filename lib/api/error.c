// SPDX-License-Identifier: GPL-2.0-only
/* The sentence that belongs to a thread's last failure. */
#include "api/error.h"
#include "region/stack.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static __thread struct {
	const char *call; /* set: the sentence is still to be made of these two */
	int err;
	char text[512];
} last;

int guise_fail(int err, const char *fmt, ...)
{
	char text[sizeof(last.text)];
	va_list ap;

	/* Not straight into last.text: guise_error() may be among the arguments. */
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	memcpy(last.text, text, sizeof(text));
	last.call = NULL;
	return -err;
}

long guise_result(const char *call, long ret)
{
	if (ret < 0) {
		last.call = call;
		last.err = (int)-ret;
	}
	return ret;
}

const char *guise_error(void)
{
	char words[128];

	if (last.call) {
		snprintf(last.text, sizeof(last.text), "%s: %s", last.call,
			 strerror_r(last.err, words, sizeof(words)));
		last.call = NULL;
	}
	return last.text[0] ? last.text : "no failure in this thread";
}
