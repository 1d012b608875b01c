// SPDX-License-Identifier: GPL-2.0-only
/*
 * The plan: parsed whole, then applied line by line. An unknown word
 * is therefore found before anything has been done. Settings must stand before
 * the first line that needs the stack, which is when it is booted; those that are
 * about the holder itself may stand anywhere.
 */
#include "holder/plan.h"

#include "holder/control/control.h"
#include "holder/directives.h"
#include "holder/isolation.h"
#include "holder/relay/relay.h"

#include "guise/layout.h"
#include "host/sys.h"
#include "region/stack.h"
#include "setup/setup.h"
#include "setup/units.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int unknown_directive(const char *name)
{
	char known[256] = "";
	size_t len = 0;

	for (size_t i = 0; i < plan_n_directives && len < sizeof(known); i++)
		len += (size_t)snprintf(known + len, sizeof(known) - len, "%s%s", i ? ", " : "",
					plan_directives[i].name);
	return guise_fail(EINVAL, "unknown directive \"%s\"; known are %s", name, known);
}

/* The line's directive; NULL with the sentence. */
static const struct directive *find_directive(const struct plan_line *l, bool add)
{
	const struct directive *d = plan_directives;
	const int given = l->words - 1;

	while (d < plan_directives + plan_n_directives && strcmp(d->name, l->word[0]))
		d++;
	if (d == plan_directives + plan_n_directives) {
		unknown_directive(l->word[0]);
		return NULL;
	}
	/* What is taken back says itself what it needs. */
	if (given < (add ? d->min : 1) || given > d->max) {
		guise_fail(EINVAL, "expected \"%s%s%s\"", d->name, *d->usage ? " " : "", d->usage);
		return NULL;
	}
	return d;
}

static int parse_line(struct plan *p, struct plan_line *l)
{
	const struct directive *d = find_directive(l, true);

	if (!d)
		return -EINVAL;
	l->directive = d;
	if (d->when == SETTING && p->lines && p->line[p->lines - 1].directive->when == STACK)
		return guise_fail(EINVAL,
				  "%s must stand before the first line that needs the stack",
				  d->name);
	return d->when == ANYWHERE ? d->apply(p, l->word, l->words) : 0;
}

int plan_parse(struct plan *p, char *text)
{
	struct guise_options defaults = GUISE_OPTIONS_INIT;
	size_t bytes = strlen(text);
	char *line, *word, *rest, **next;
	int number = 0;

	memset(p, 0, sizeof(*p));
	p->options = defaults;
	/* A word has a letter and a blank at least, and a line has a word. */
	p->all_words = calloc(bytes / 2 + 2, sizeof(*p->all_words));
	p->line = calloc(bytes / 2 + 2, sizeof(*p->line));
	p->relay = calloc(1, sizeof(*p->relay));
	if (!p->all_words || !p->line || !p->relay) {
		guise_fail(ENOMEM, "out of memory for the plan");
		return 1;
	}
	next = p->all_words;
	while ((line = strsep(&text, "\n"))) {
		struct plan_line *l = &p->line[p->lines];

		number++;
		l->number = number;
		l->word = next;
		l->words = 0;
		for (word = strtok_r(line, " \t\r", &rest); word;
		     word = strtok_r(NULL, " \t\r", &rest)) {
			if (!l->words && *word == '#')
				break;
			l->word[l->words++] = word;
		}
		if (!l->words)
			continue;
		next += l->words;
		if (parse_line(p, l))
			return number;
		/* What is about the end is known now, and needs no second look. */
		if (l->directive->when != ANYWHERE)
			p->lines++;
	}
	return 0;
}

static bool boot(struct plan *p)
{
	int err;

	p->s = guise_create(&p->options, &err);
	return p->s;
}

int plan_apply(struct plan *p)
{
	for (int i = 0; i < p->lines; i++) {
		const struct plan_line *l = &p->line[i];

		if (l->directive->when == STACK && !p->s && !boot(p))
			return l->number;
		if (l->directive->apply(p, l->word, l->words) < 0)
			return l->number;
	}
	if (!p->s && !boot(p))
		return p->lines ? p->line[p->lines - 1].number : 1;
	return 0;
}

/* Splits a line, in place; the number of its words. */
static int split(char *line, char **word, int most)
{
	char *rest, *next;
	int n = 0;

	for (next = strtok_r(line, " \t\r", &rest); next && n < most;
	     next = strtok_r(NULL, " \t\r", &rest))
		word[n++] = next;
	return next ? most + 1 : n;
}

/* Puts the descriptors that came along in place of their numbers; room is for the words. */
static int give(char **word, int words, const int *fd, unsigned int fds, char room[][16])
{
	unsigned int number, used = 0;
	int end;

	for (int i = 0; i < words; i++) {
		if (strncmp(word[i], "fd=", 3))
			continue;
		end = 0;
		if (sscanf(word[i], "fd=%u%n", &number, &end) != 1 || word[i][end] ||
		    number >= fds || used == fds)
			return guise_fail(EINVAL,
					  "%s: expected fd=N, of a descriptor that comes along",
					  word[i]);
		snprintf(room[used], sizeof(room[used]), "fd=%d", fd[number]);
		word[i] = room[used++];
	}
	return 0;
}

int plan_change(struct plan *p, char *line, const int *fd, unsigned int fds)
{
	char *words[PLAN_CHANGE_WORDS], **word = words, room[PLAN_CHANGE_FDS][16];
	struct plan_line l = { 0 };
	const struct directive *d;
	directive_does *does;
	bool add;

	l.words = split(line, words, PLAN_CHANGE_WORDS);
	if (l.words > PLAN_CHANGE_WORDS || !l.words)
		return guise_fail(EINVAL, "change: expected 1 to %d words", PLAN_CHANGE_WORDS);
	add = strcmp(words[0], "no") != 0;
	word += !add;
	l.words -= !add;
	l.word = word;
	if (!l.words)
		return guise_fail(EINVAL, "change no: expected a line of a plan");
	d = find_directive(&l, add);
	if (!d)
		return -EINVAL;
	if (!d->change)
		return guise_fail(EINVAL, "change: %s cannot change while the stack has programs",
				  d->name);
	does = add ? d->change : d->remove;
	if (!does)
		return guise_fail(EINVAL, "change no: %s cannot be taken back", d->name);
	if (add && give(word, l.words, fd, fds < PLAN_CHANGE_FDS ? fds : PLAN_CHANGE_FDS, room))
		return -EINVAL;
	return does(p, word, l.words);
}

int plan_guests(const struct plan *p)
{
	int fd;

	for (int i = 0; i < p->lines; i++)
		if (!strcmp(p->line[i].directive->name, "guests") &&
		    !directive_fd("guests", p->line[i].word[2], &fd))
			return fd;
	return -1;
}

void plan_free(struct plan *p)
{
	control_free(p->control);
	free(p->relay);
	free(p->user);
	free(p->cmdline);
	free(p->line);
	free(p->all_words);
}
