// SPDX-License-Identifier: GPL-2.0-only
#include "head.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define LENGTH_DIGITS 9

/* The value of "NAME: value" in a line, or NULL. */
static const char *value(const char *line, const char *name)
{
	size_t n = strlen(name);

	if (strncasecmp(line, name, n) || line[n] != ':')
		return NULL;
	line += n + 1;
	while (*line == ' ' || *line == '\t')
		line++;
	return line;
}

static bool read_first(struct head *h, const char *line)
{
	const char *space = strchr(line, ' '), *last = strrchr(line, ' ');

	if (!strncmp(line, "HTTP/1.", 7)) {
		h->answer = true;
		h->keeps = line[7] == '1';
		return space;
	}
	if (!space || last == space || strncmp(last, " HTTP/1.", 8))
		return false;
	h->request = true;
	h->keeps = last[8] == '1';
	h->post = !strncmp(line, "POST ", 5);
	return h->post || !strncmp(line, "GET ", 4);
}

static bool read_field(struct head *h, const char *line)
{
	const char *v;

	if ((v = value(line, "Content-Length"))) {
		size_t digits = strspn(v, "0123456789");

		if (!digits || digits > LENGTH_DIGITS || v[digits] || h->says_length)
			return false;
		h->length = strtoull(v, NULL, 10);
		h->says_length = true;
	} else if (value(line, "Transfer-Encoding")) {
		return h->answer; /* whose body has a length that is not known */
	} else if ((v = value(line, "Connection"))) {
		if (!strcasecmp(v, "close"))
			h->keeps = false;
	} else if ((v = value(line, "Server"))) {
		h->ours = h->answer && !strncmp(v, HEAD_NAME, strlen(HEAD_NAME));
	}
	return true;
}

int head_read(struct head *h, const char *bytes, size_t n)
{
	char line[HEAD_MOST];
	size_t at = 0;
	bool first = true;

	memset(h, 0, sizeof(*h));
	if (n > HEAD_MOST)
		n = HEAD_MOST;
	while (at < n) {
		const char *end = memchr(bytes + at, '\n', n - at);
		size_t length;

		if (!end)
			break;
		length = (size_t)(end - bytes) - at;
		memcpy(line, bytes + at, length);
		at += length + 1;
		if (length && line[length - 1] == '\r')
			length--;
		line[length] = '\0';
		if (strlen(line) != length)
			return HEAD_BAD;
		if (!first && !length)
			return (int)at;
		if (first ? !read_first(h, line) : !read_field(h, line))
			return HEAD_BAD;
		first = false;
	}
	return n == HEAD_MOST ? HEAD_BAD : HEAD_MORE;
}
