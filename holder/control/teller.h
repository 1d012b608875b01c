/* SPDX-License-Identifier: GPL-2.0-only */
/* Answers that take the virtual CPU, by a thread of their own; teller.c has the theory. */
#ifndef GUISE_HOLDER_TELLER_H
#define GUISE_HOLDER_TELLER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define TELLER_CLIENTS 64

struct guise_stack;
struct listing;

struct teller {
	struct guise_stack *s;
	pthread_t thread;
	bool running;
	int questions[2]; /* a pipe of struct teller_question */

	struct listing *listings[TELLER_CLIENTS]; /* the thread's own */
};

struct teller_question {
	enum teller_about {
		TELLER_SOCKETS,     /* how many the stack has */
		TELLER_CONNECTIONS, /* a page of them */
		TELLER_GONE,        /* the client has: for teller_forget() alone */
	} about;
	int client;          /* to whom the answer goes */
	unsigned int number; /* of the client, below TELLER_CLIENTS; these two of connections */
	uint64_t from;
};

void teller_init(struct teller *t);
/*
 * Tells the client what only the stack knows. Never waits; false: the client cannot be told.
 */
bool teller_ask(struct teller *t, struct guise_stack *s, struct teller_question q);
/* The client of that number has gone. */
void teller_forget(struct teller *t, unsigned int number);
void teller_stop(struct teller *t);

#endif
