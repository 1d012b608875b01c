// SPDX-License-Identifier: GPL-2.0-only
#include "report.h"

#include "head.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VERSION 1

static const char *const protocols[] = { [TCP] = "tcp",
					 [FALLBACK] = "fallback",
					 [MPTCP] = "mptcp" };

void report_make(struct report *r, int fd, const struct state *s, const struct flow *flow)
{
	memset(r, 0, sizeof(*r));
	r->protocol = !s->mptcp ? TCP : s->fallback ? FALLBACK : MPTCP;
	r->from = address_remote(fd);
	r->bytes = s->received;
	for (int i = 0; i < s->n_subflows; i++, r->n_subflows++) {
		r->local[i] = s->subflow[i].local;
		r->remote[i] = s->subflow[i].remote;
	}
	if (!flow)
		return;
	if (flow->syn.with || flow->syn.without)
		r->syn.saw = flow->syn.capable ? CAPABLE : PLAIN;
	if (flow->answer.with || flow->answer.without)
		r->answer.saw = flow->answer.capable ? CAPABLE : PLAIN;
	r->syn.version = flow->syn.version;
	r->answer.version = flow->answer.version;
	r->answer.key = flow->answer.key;
	r->in = flow->out.has; /* the other end began it */
	r->out = flow->in.has;
}

struct text {
	char *at;
	size_t n;
};

__attribute__((format(printf, 2, 3))) static void put(struct text *t, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(t->at + t->n, REPORT_MOST - t->n, format, args);
	va_end(args);
	if (n > 0)
		t->n += (size_t)n < REPORT_MOST - t->n ? (size_t)n : REPORT_MOST - 1 - t->n;
}

static void put_saw(struct text *t, const char *name, enum saw saw, uint8_t version, uint64_t key)
{
	if (saw == CAPABLE && key)
		put(t, "%s capable %u %016" PRIx64 "\n", name, version, key);
	else if (saw == CAPABLE)
		put(t, "%s capable %u\n", name, version);
	else
		put(t, "%s %s\n", name, saw == PLAIN ? "plain" : "unseen");
}

static void put_kinds(struct text *t, const char *name, uint16_t kinds)
{
	put(t, "%s", name);
	for (int i = 0; i < MP_KINDS; i++)
		if (kinds & 1 << i)
			put(t, " %s", segment_kinds[i]);
	put(t, "\n");
}

size_t report_write(const struct report *r, char text[REPORT_MOST])
{
	char one[ADDRESS_TEXT], other[ADDRESS_TEXT];
	struct text t = { text, 0 };

	put(&t, HEAD_NAME " %d\nprotocol %s\nfrom %s\n", VERSION, protocols[r->protocol],
	    address_text(&r->from, one));
	put_saw(&t, "syn", r->syn.saw, r->syn.version, 0);
	put_saw(&t, "answer", r->answer.saw, r->answer.version, r->answer.key);
	put_kinds(&t, "in", r->in);
	put_kinds(&t, "out", r->out);
	for (int i = 0; i < r->n_subflows; i++)
		put(&t, "subflow %s %s\n", address_text(&r->local[i], one),
		    address_text(&r->remote[i], other));
	put(&t, "bytes %" PRIu64 "\n", r->bytes);
	return t.n;
}

static uint16_t read_kinds(char *words)
{
	uint16_t kinds = 0;
	char *word;

	while ((word = strsep(&words, " ")))
		for (int i = 0; i < MP_KINDS; i++)
			if (!strcmp(word, segment_kinds[i]))
				kinds |= (uint16_t)(1 << i);
	return kinds;
}

static void read_saw(char *words, enum saw *saw, uint8_t *version, uint64_t *key)
{
	char *word = strsep(&words, " "), *v = strsep(&words, " "), *k = strsep(&words, " ");

	*saw = UNSEEN;
	if (!strcmp(word, "plain"))
		*saw = PLAIN;
	if (strcmp(word, "capable") || !v)
		return;
	*saw = CAPABLE;
	*version = (uint8_t)(strtoul(v, NULL, 10) & 15);
	*key = k ? strtoull(k, NULL, 16) : 0;
}

static bool read_protocol(struct report *r, const char *word)
{
	for (int i = 0; i < 3; i++)
		if (!strcmp(word, protocols[i])) {
			r->protocol = i;
			return true;
		}
	return false;
}

static void read_subflow(struct report *r, char *words)
{
	char *local = strsep(&words, " ");
	int i = r->n_subflows;

	if (i < STATE_SUBFLOWS && words && address_read(&r->local[i], local) &&
	    address_read(&r->remote[i], words))
		r->n_subflows++;
}

/* Names that are not known are those of a later version. */
static bool read_line(struct report *r, char *line)
{
	char *name = strsep(&line, " ");
	uint64_t none;

	if (!line)
		return true;
	if (!strcmp(name, "protocol"))
		return read_protocol(r, line);
	if (!strcmp(name, "from"))
		address_read(&r->from, line);
	else if (!strcmp(name, "syn"))
		read_saw(line, &r->syn.saw, &r->syn.version, &none);
	else if (!strcmp(name, "answer"))
		read_saw(line, &r->answer.saw, &r->answer.version, &r->answer.key);
	else if (!strcmp(name, "in"))
		r->in = read_kinds(line);
	else if (!strcmp(name, "out"))
		r->out = read_kinds(line);
	else if (!strcmp(name, "subflow"))
		read_subflow(r, line);
	else if (!strcmp(name, "bytes"))
		r->bytes = strtoull(line, NULL, 10);
	return true;
}

bool report_read(struct report *r, const char *text, size_t n)
{
	char copy[REPORT_MOST], *lines = copy, *line;
	bool first = true;

	memset(r, 0, sizeof(*r));
	if (n >= sizeof(copy))
		n = sizeof(copy) - 1;
	memcpy(copy, text, n);
	copy[n] = '\0';
	while ((line = strsep(&lines, "\n"))) {
		if (first && strncmp(line, HEAD_NAME " ", sizeof(HEAD_NAME)))
			return false;
		if (!first && !read_line(r, line))
			return false;
		first = false;
	}
	return true;
}
