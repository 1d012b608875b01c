/* SPDX-License-Identifier: GPL-2.0-only */
/* Locks of guise's own; the rule that all of them keep stands in locks.c. */
#ifndef GUISE_HOST_LOCKS_H
#define GUISE_HOST_LOCKS_H

#include <stdbool.h>
#include <stdint.h>

/* How many there can be above libguise's: preload/locks.h has their names. */
#define GUISE_LOCKS_ABOVE 8

/* All of libguise's, in the order in which a thread may take several. */
enum guise_lock {
	GUISE_LOCK_BEGIN = GUISE_LOCKS_ABOVE, /* what is begun once: slot.c */
	GUISE_LOCK_STACKS,                    /* the list of this process's stacks: map.c */
	GUISE_LOCK_ASK,                       /* this process's request to the holder: ask.c */
	GUISE_LOCK_SIGNALS,                   /* the program's handlers: signal.c */
	GUISE_LOCK_MIRRORS,                   /* a servant's copies of rings: mirror.c */
	GUISE_LOCK_SLOTS,                     /* threads that take a slot: gate.c */
	GUISE_LOCKS
};

/* number: of enum guise_lock, or of enum preload_lock. A thread does not take one that it has. */
void guise_own_lock(unsigned int number);
void guise_own_unlock(unsigned int number);

/* This thread has one of them, or is in the middle of a fork. */
bool guise_own_locked(void);
/* The signals that this thread had blocked before it took the first, as a set of the kernel's. */
unsigned long guise_own_mask(void);

/* Calls begin() under that lock, unless *begun says that it was called. When this returns,
 * begin() has returned as well, in whichever thread. */
void guise_own_once(unsigned int number, bool *begun, void (*begin)(void));

/*
 * Called around every call that makes a child with memory of its own. From prepare() on the
 * thread has all locks, and may call functions that take them. May be nested: for each prepare()
 * the parent calls parent() and the child child().
 */
void guise_own_fork_prepare(void);
void guise_own_fork_parent(void);
void guise_own_fork_child(void);

/* A word that is 0 in a child that guise did not see begin: the host's kernel clears it in each
 * child with memory of its own, and guise_slots_forked() sets it to 1. Kernels before
 * MADV_WIPEONFORK do not clear it. */
uint32_t *guise_own_word(void);

#endif
