/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The memory that a served program and its servant share, and nobody else has.
 *
 * A program that may not map the region of its stack is *served*: it writes a call into this
 * ring, and its servant, a process of the stack's user, makes the call. The ring has a lane for
 * each thread of the program; the servant has a thread for each lane that was ever used.
 *
 *	offset			what
 *	0			struct guise_ring
 *	GUISE_RING_LANES	struct guise_lane for each lane
 *	GUISE_RING_ROOMS	for each lane GUISE_LANE_ROOM bytes: what its call's pointers
 *				point to
 *
 * A call: the program writes number and arguments, then the next number into `asked`, and wakes
 * whoever sleeps on it. The servant makes the call, writes the result, then that number into
 * `answered`, and wakes the program by `event`. Pointers among the arguments are the program's own
 * addresses of the ring; the port translates them, and refuses all others (asm/uaccess.h). So
 * structures with pointers in them need no care on the servant's side, and the kernel copies
 * from and to the ring itself.
 *
 * The servant believes nothing that is in here: it reads each word once, and the port treats the
 * memory as any program's, which may change at each moment. The program may believe its servant,
 * as it believes a kernel.
 *
 * In the program waiting needs futex(2) alone, unless its call waits for descriptors of the host
 * as well. Then it sleeps in ppoll(2) on these and on one of the bells, eventfds with
 * EFD_SEMAPHORE, which several lanes share: whoever turns `polls` from SLEEPS to RUNG writes to
 * it once, and the lane's thread reads it once.
 */
#ifndef GUISE_SERVED_RING_H
#define GUISE_SERVED_RING_H

#include "guise/layout.h"

#include <stdbool.h>
#include <stdint.h>

#define GUISE_RING_MAGIC 0x676e6952u
#define GUISE_LANES      1024
#define GUISE_LANE_ROOM  (1ul << 20)
#define GUISE_LANE_BELLS 8
#define GUISE_RING_MARKS (GUISE_LANE_ROOM / sizeof(struct guise_mark)) /* in the room of a lane */

#define GUISE_LANE_SPIN_NS 100000u /* before a thread sleeps; see lane.c */

/* Only what is touched takes memory. */
#define GUISE_RING_LANES ((uint64_t)GUISE_HOST_PAGE_MAX)
#define GUISE_RING_ROOMS (GUISE_RING_LANES + GUISE_LANES * sizeof(struct guise_lane))
#define GUISE_RING_SIZE  (GUISE_RING_ROOMS + GUISE_LANES * GUISE_LANE_ROOM)

enum guise_lane_polls {
	GUISE_LANE_AWAKE,
	GUISE_LANE_SLEEPS, /* in ppoll(2), on its bell */
	GUISE_LANE_RUNG,
};

struct guise_lane {
	uint32_t asked; /* futex; written by the program */
	uint32_t servant_sleeps;
	uint32_t interrupt; /* by the program: end the call with this number */
	uint32_t yields;    /* by the program: its thread makes sched_yield(2) now and then */
	uint64_t nr, arg[6];

	uint32_t answered __attribute__((aligned(64))); /* by the servant */
	uint32_t event; /* futex; grows when the program is to look */
	uint32_t program_sleeps;
	uint32_t polls; /* enum guise_lane_polls */
	int64_t ret;
	uint64_t signals; /* bit n-1: the program raises signal n */
	uint32_t restart; /* the call is repeated if its handlers have SA_RESTART */
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct guise_lane) == 192, "shared by two programs");
_Static_assert(GUISE_RING_ROOMS % GUISE_HOST_PAGE_MAX == 0, "rooms begin at a page");

struct guise_ring {
	uint32_t magic, abi;
	uint64_t address; /* where the program has it mapped */
	uint32_t bell;    /* futex: a lane is used for the first time, or a call is to end */
	uint32_t lanes;   /* by the program: so many were ever used */
	uint32_t servant; /* robust futex: FUTEX_OWNER_DIED when the servant has ended */
	uint32_t pad;
	uint64_t count[GUISE_COUNTS]; /* by the program */
};

static inline struct guise_lane *guise_ring_lane(const void *ring, unsigned int i)
{
	return (struct guise_lane *)((uintptr_t)ring + GUISE_RING_LANES) + i;
}

static inline char *guise_ring_room(const void *ring, unsigned int i)
{
	return (char *)((uintptr_t)ring + GUISE_RING_ROOMS + i * GUISE_LANE_ROOM);
}

/* lane.c: what both sides do. guise_ring_map() gives 0 or -errno. */
int guise_ring_map(int fd, struct guise_ring **ring);
void guise_ring_unmap(struct guise_ring *ring);
/* The servant looks at its bell. */
void guise_ring_call_servant(struct guise_ring *ring);
/* How a thread waits without sleeping (lane.c). */
struct guise_lane_spin {
	uint32_t ns;      /* for how long */
	uint32_t crowded; /* in so many waits it offers the processor to nobody */
	uint32_t next;    /* what that will be the next time */
	uint64_t since;   /* of the last wait */
};
#define GUISE_LANE_SPIN ((struct guise_lane_spin){ .ns = GUISE_LANE_SPIN_NS, .next = 64 })

/* Waits without sleeping for a word to be another one than `old`: whether it is. yields: the
 * thread may make system calls. */
bool guise_lane_spin(struct guise_lane_spin *spin, const uint32_t *word, uint32_t old, bool yields);
/* It has slept after that, and the word is another one. */
void guise_lane_slept(struct guise_lane_spin *spin);
/* The program's thread looks at the lane, if it sleeps in ppoll(2). bell: the lane's. */
void guise_lane_ring(struct guise_lane *lane, int bell);

#endif
