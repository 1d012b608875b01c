/* SPDX-License-Identifier: GPL-2.0-only */
/* The directives of a plan, one line each; docs/plan.md says what they mean. */
#ifndef GUISE_HOLDER_DIRECTIVES_H
#define GUISE_HOLDER_DIRECTIVES_H

#include <stddef.h>

struct plan;

enum when {
	SETTING,  /* before the boot */
	STACK,    /* on the booted stack; boots it */
	ANYWHERE, /* known as soon as it is parsed */
};

/* The words of its line, the name among them: 0 or -errno with a sentence. */
typedef int directive_does(struct plan *p, char **word, int words);

struct directive {
	const char *name;
	enum when when;
	int min, max; /* words after the name */
	const char *usage;
	directive_does *apply; /* ANYWHERE: called while parsing */
	directive_does
		*change; /* the same while the stack has programs; NULL: it cannot come then */
	directive_does
		*remove; /* takes it back, by a line that may have one word; NULL: nothing does */
};

extern const struct directive plan_directives[];
extern const size_t plan_n_directives;

/* fd=N, N in *fd */
int directive_fd(const char *directive, const char *word, int *fd);

#endif
