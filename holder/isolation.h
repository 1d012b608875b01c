/* SPDX-License-Identifier: GPL-2.0-only */
/* How a process of the holder gives up what it does not need; isolation.c has the stages. */
#ifndef GUISE_HOLDER_ISOLATION_H
#define GUISE_HOLDER_ISOLATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#define ISOLATION_GROUPS 64

/* The stack's user. */
struct isolation_user {
	uid_t uid;
	gid_t gid;
	unsigned int groups;
	gid_t group[ISOLATION_GROUPS];
};

/* What could not be given up on this host: bits. */
enum isolation_left {
	ISOLATION_NAMESPACES = 1, /* it sees the host's */
	ISOLATION_ROOT = 2,       /* it sees the host's files */
	ISOLATION_CALLS = 4,      /* it may make all system calls */
};

/* The user that this process is. */
void isolation_self(struct isolation_user *u);
/* The user of that name, or number, with its groups: 0, or -errno with a sentence. */
int isolation_named(struct isolation_user *u, const char *name);
/* The same as one word, for a command line. */
void isolation_write(const struct isolation_user *u, char *text, size_t size);
bool isolation_read(struct isolation_user *u, const char *text);

/* Writes what is left, as a member of a JSON object: "unconfined":["calls"] */
void isolation_write_left(unsigned int left, FILE *out);

/* Whether the command line asks what this host allows, and the answer: the exit status. */
bool isolation_wanted(int argc, char **argv);
int isolation_try(void);

/* Stages 2 to 6, in a process of one thread. 0, or -errno with a sentence: then it must end. */
int isolation_begin(const struct isolation_user *u, unsigned int *left);
/* Stage 7. forks: this process makes others, too. */
void isolation_seal(bool forks, unsigned int *left);

#endif
