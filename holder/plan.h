/* SPDX-License-Identifier: GPL-2.0-only */
/* A plan, read and carried out; docs/plan.md says what may stand in one. */
#ifndef GUISE_HOLDER_PLAN_H
#define GUISE_HOLDER_PLAN_H

#include "guise/guise.h"

#include <stdbool.h>

#define PLAN_MAX_BYTES (1u << 20)
#define PLAN_HELD      32

struct control;
struct directive;
struct isolation_user;
struct relay;

struct plan_line {
	int number; /* as people count */
	const struct directive *directive;
	char **word; /* word[0] is the directive's name */
	int words;
};

struct plan {
	struct plan_line *line;
	int lines;
	char **all_words;

	/* What the lines before the boot, and those about the holder itself, have set. */
	struct guise_options options;
	char *cmdline;
	bool served;                 /* all programs are */
	struct isolation_user *user; /* whose it is; NULL: who starts it */
	bool keep;
	const char *undo_program, *undo_journal;
	int held[PLAN_HELD]; /* descriptors that the warden keeps open until its end */
	int n_held;
	struct {
		const char *program;        /* NULL: none */
		int config, report, opener; /* opener -1: none */
	} follow; /* what follows the host's interfaces; warden/follower.c */

	struct guise_stack *s;   /* once booted */
	struct relay *relay;     /* what its relays are to do */
	struct control *control; /* NULL: no command can reach it */
};

/*
 * Parses text, which it changes and keeps pointers into. Applies nothing yet; keep, undo and
 * control are known afterwards. 0, or the number of the line that is wrong, with a sentence
 * in guise_error().
 */
int plan_parse(struct plan *p, char *text);

/* Boots the stack and configures it, line by line. 0, or the number of the
 * line that failed. p->s may be set even then. */
int plan_apply(struct plan *p);

#define PLAN_CHANGE_WORDS 32
#define PLAN_CHANGE_FDS   3

/*
 * Applies a line, or "no LINE", while the stack has programs; the text is changed. fd=N in a link's
 * line is the Nth of those descriptors, which stay the caller's. 0 or -errno with a sentence. For
 * one thread.
 */
int plan_change(struct plan *p, char *line, const int *fd, unsigned int fds);

/* The descriptor of the guests' namespace, or -1. */
int plan_guests(const struct plan *p);

/* Not the stack. */
void plan_free(struct plan *p);

#endif
