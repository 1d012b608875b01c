/* SPDX-License-Identifier: GPL-2.0-only */
/* The deadline of what the holder waits for at its end; deadline.c has the theory. */
#ifndef GUISE_HOLDER_DEADLINE_H
#define GUISE_HOLDER_DEADLINE_H

/* What to do after so many seconds: force() is called on a thread of its own, and does not return.
 * Only one thread may call these. */
void deadline_init(unsigned int seconds, void (*force)(void *arg), void *arg);
/* From now on there is a deadline; or there was progress, and the time begins anew. */
void deadline_renew(void);
/* There is none any more. */
void deadline_met(void);

#endif
