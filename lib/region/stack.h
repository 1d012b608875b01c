/* SPDX-License-Identifier: GPL-2.0-only */
/* A stack as one process sees it, and what the parts of lib/ share. */
#ifndef GUISE_REGION_STACK_H
#define GUISE_REGION_STACK_H

#include "guise/guise.h"
#include "guise/layout.h"
#include "link/link.h"
#include "region/state.h"

#include <stdbool.h>
#include <pthread.h>

enum guise_users { GUISE_USERS_UNKNOWN, GUISE_USERS_HOLDERS, GUISE_USERS_FOREIGN };

struct guise_served; /* served/client.h */

/* How this process's threads call a stack. It changes under all locks; see gate.c. */
enum guise_route {
	GUISE_DIRECT,
	GUISE_ROUTE_CHANGES, /* threads wait at the gate */
	GUISE_SERVED,
};

/* Descriptors of links that have come, and are in no place yet; additions.c. */
struct guise_arrival {
	bool full;
	uint32_t now; /* links_now then */
	uint32_t generation[GUISE_MAX_LINKS];
	int fd[GUISE_MAX_LINKS][GUISE_LINK_FDS];
};

struct guise_stack {
	uint32_t route; /* enum guise_route; futex */
	/* Another process makes the calls; but for control and bell all else is unset. */
	struct guise_served *served;
	struct guise_region *region;
	struct guise_slot *slots;   /* slots[0] is nobody */
	struct guise_host_ops *ops; /* this process's table */
	const struct guise_image *image;
	void (*resume)(struct guise_slot *slot);
	unsigned int proc; /* our index in region->procs */

	int memfd;               /* the region */
	int monitor_fd;          /* the creator's: the records of the monitor (guise/monitor.h) */
	int image_fd;            /* the kernel image, or a sealed copy; image.c */
	int bell[GUISE_BELLS];   /* pipes, to wake threads in ppoll; bell.c */
	unsigned int bells;      /* how many of them this process has */
	bool bells_missed;       /* one of its threads had to wake another by one of the first */
	uint64_t additions_next; /* when it asks for more, if the holder did not answer; ns */
	uint32_t links_seen;     /* region->links_now, when it got the descriptors of its links */
	struct guise_arrival arrival;
	int alive;        /* read end of a pipe: hangs up when the holder is gone; -1 */
	int control;      /* to the holder; -1 in the creator */
	bool holder_gone; /* alive has hung up */
	bool creator;
	bool pump_running, pump_stop, pump_poked;
	int pump_bell; /* eventfd: wakes the pump alone; -1 where none runs */
	pthread_t pump;
	uint32_t burials[GUISE_MAX_PROCS / 32]; /* holder: dead members, for the pump */
	int console_fd;
	int tracer;                  /* the process that may trace this one */
	bool tracer_allowed;         /* where the host demands that (Yama) */
	enum guise_users users;      /* whether ids mean the same as to the holder; identity.c */
	bool serves;                 /* a servant: it is what its program is; identity.c */
	bool entered;                /* in place of another program, whose identity it has yet */
	uint32_t ending;             /* thread that ends this process, or 0; leave.c */
	uint32_t known;              /* the number of threads that refer to this; slot.c */
	uint32_t threads_ending;     /* futex: the number of threads that give back their slots */
	uint32_t left;               /* only this structure is there still */
	struct guise_slot *end_slot; /* taken to end with, by a thread that never made a call */
	struct guise_link_port port[GUISE_MAX_LINKS];
	struct guise_stack *next; /* stacks of this process */
};

/* Sets this thread's error sentence; returns -err. */
int guise_fail(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* This thread's slot in s, attached (a kernel task of its own); NULL on
 * failure with the error set. */
struct guise_slot *guise_slot(struct guise_stack *s);

/* No slot from this index on has ever been used. */
static inline uint32_t guise_slots_end(const struct guise_stack *s)
{
	return __atomic_load_n(&s->region->slots_end, __ATOMIC_ACQUIRE);
}

/* What the stack knows of this process; of a served one, what the process knows itself. */
struct guise_proc *guise_own_place(const struct guise_stack *s);

/* Counts something for the summary: one of the region's counters. */
void guise_count(struct guise_stack *s, enum guise_count what, uint64_t n);

/* The stacks of this process that it calls directly, linked by next. */
struct guise_stack *guise_stacks(void);
void guise_stacks_add(struct guise_stack *s);
void guise_stacks_remove(struct guise_stack *s);
/* What handlers of signals ask of them (signals.c). */
extern const struct guise_signal_stacks guise_stacks_signals;

/*
 * Maps the region of s->memfd and the text of s->image_fd where the region's
 * header says, and sets region, slots, ops, image and resume. 0 or -errno;
 * EADDRINUSE when this process has something else there.
 */
int guise_region_map(struct guise_stack *s);
/* Once the kernel has booted this process no longer writes what is constant from then on; each
 * process calls this for itself. 0, or -errno with a sentence. */
int guise_region_protect(const struct guise_stack *s);
void guise_region_unmap(struct guise_stack *s);

/* One that has nothing yet: all descriptors are -1. NULL with the sentence. */
struct guise_stack *guise_stack_new(void);
/* Closes all descriptors of s, and takes its links away from this process. */
void guise_stack_close(struct guise_stack *s);
/* Unmaps and closes all that is set in s. Frees s when no thread refers to it any more. */
void guise_stack_free(struct guise_stack *s);

/* In a forked child: drops what it inherited of the parent's place in s, so that
 * the holder sees the parent end when it ends; the child may join anew. */
void guise_abandon(struct guise_stack *s);

/*
 * To be called before a call that ends this process, or its program, and kills its other
 * threads: from then on none of them is inside a stack, or enters one. May be called again.
 * guise_stay_after_all() takes it back if that call has failed.
 */
void guise_leave_quietly(void);
void guise_stay_after_all(void);
/* leave() is called at exit() and quick_exit(), instead of guise_leave_quietly(). */
void guise_leave_at_end(void (*leave)(void));

/* Fills this process's table of host services. */
void guise_host_ops_init(struct guise_stack *s);

#endif
