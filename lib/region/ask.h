/* SPDX-License-Identifier: GPL-2.0-only */
/* What a member asks of the holder while it lives; ask.c. */
#ifndef GUISE_REGION_ASK_H
#define GUISE_REGION_ASK_H

#include "region/stack.h"

#include <sys/types.h>

/* Asks for the calling process (pid 0) or another member. 0; -ESRCH: it is not traced;
 * -ETIMEDOUT: the holder does not answer. */
int guise_ask(struct guise_stack *s, enum guise_ask what, pid_t pid);
/* For callers that have GUISE_LOCK_ASK: asks, and does not wait. What this process waits for an
 * answer to, or GUISE_ASK_ANSWERED. Whether there is an answer, which is then forgotten. */
void guise_ask_later(struct guise_stack *s, enum guise_ask what, int32_t about);
enum guise_ask guise_asked(const struct guise_stack *s);
bool guise_answered(struct guise_stack *s);

/* After joining: lets the holder trace this process, where the host demands that (Yama). */
void guise_allow_tracer(struct guise_stack *s);
/* The same in a forked child, before the holder hears of it. */
void guise_allow_tracer_forked(struct guise_stack *s);

/* Answers what a member asks about something; proc: its index. Returns 0 or -errno. */
typedef int guise_answerer(void *context, enum guise_ask what, unsigned int proc, int32_t about);

/* In the holder: a thread that answers, by handle(). 0 or -errno. */
int guise_answers_start(struct guise_stack *s, pthread_t *thread, guise_answerer *handle,
			void *context);
void guise_answers_stop(struct guise_stack *s, pthread_t thread);

#endif
