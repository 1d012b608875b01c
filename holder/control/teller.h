/* SPDX-License-Identifier: GPL-2.0-only */
/* Answers that take the virtual CPU, by a thread of their own; teller.c has the theory. */
#ifndef GUISE_HOLDER_TELLER_H
#define GUISE_HOLDER_TELLER_H

#include <pthread.h>
#include <stdbool.h>

struct guise_stack;

struct teller {
	struct guise_stack *s;
	pthread_t thread;
	bool running;
	int questions[2]; /* a pipe of descriptors: the clients that asked */
};

void teller_init(struct teller *t);
/*
 * Tells the client what only the stack knows. Never waits; a client that cannot be told is told
 * nothing.
 */
void teller_ask(struct teller *t, struct guise_stack *s, int client);
void teller_stop(struct teller *t);

#endif
