/* SPDX-License-Identifier: GPL-2.0-only */
/* The program's side of a served stack. See client.c. */
#ifndef GUISE_SERVED_CLIENT_H
#define GUISE_SERVED_CLIENT_H

#include "region/heir.h"
#include "region/join.h"
#include "region/stack.h"
#include "region/wait.h"
#include "served/ring.h"

/* A program's part of a ring. */
struct guise_served {
	struct guise_ring *ring;
	int bell[GUISE_LANE_BELLS];
	uint32_t used[GUISE_LANES / 32]; /* lanes that have a thread */
	bool lost;                       /* the child of a fork: its servant did not come */
	int channel;                     /* to the servant: hangs up when it is gone; -1: none */
	struct guise_proc place;         /* what others keep in the region */
};

/* Maps the ring of fd; NULL with the sentence. Takes fd and the bells when it succeeds. */
struct guise_served *guise_served_open(int fd, const int bell[GUISE_LANE_BELLS], int channel);
void guise_served_close(struct guise_served *v);

/* The room of this thread's lane, for GUISE_LANE_ROOM bytes; NULL: there is no lane for it. */
char *guise_served_room(struct guise_served *v, uint32_t *lane);

/* Its descriptors: the bells, then the channel; -1 where there is none. */
int guise_served_fd(const struct guise_served *v, unsigned int i);

/* As guise_call() and guise_call_polling(); ps may be NULL. */
long guise_served_call(struct guise_served *v, struct guise_pollset *ps, uint64_t nr,
		       const uint64_t arg[6]);

/* join.c: the stack of a servant's answer, with its descriptors, which it takes (and closes on
 * failure, control too). 0, or -errno with the sentence. */
int guise_served_join(struct guise_stack *s, int control, const struct guise_join_reply *r,
		      const int *fd);
/* As guise_heir_prepare() and guise_heir_become(). */
int guise_served_prepare(struct guise_served *v, int ticket, struct guise_heir *heir,
			 const struct guise_mark *marks, unsigned int n, int keep);
/* GUISE_NR_GIVE of a descriptor of the stack (what), GUISE_NR_TAKE (what: keep it there). */
long guise_served_pass(struct guise_served *v, enum guise_join_kind kind, int what,
		       int placeholder);
void guise_served_become(struct guise_stack *s, struct guise_heir *heir);

/* For handlers of signals: the thread is not to sleep on. */
void guise_served_wake(void);
/* This thread ends, or it is the only one of a forked child: it has no lane any more. */
void guise_served_thread_ends(void);
void guise_served_forked(void);

#endif
