/* SPDX-License-Identifier: GPL-2.0-only */
/* The program's side of a served stack. See client.c. */
#ifndef GUISE_SERVED_CLIENT_H
#define GUISE_SERVED_CLIENT_H

#include "region/heir.h"
#include "region/join.h"
#include "region/stack.h"
#include "region/wait.h"
#include "served/ring.h"

/*
 * A program's part of a ring. Of the stack it belongs to, `control` is the channel to the servant,
 * which hangs up when the servant is gone, and the first GUISE_LANE_BELLS bells are the ring's.
 */
struct guise_served {
	struct guise_ring *ring;
	uint32_t used[GUISE_LANES / 32]; /* lanes that have a thread */
	bool lost;                       /* the child of a fork: its servant did not come */
	bool sandboxed;                  /* no system call but futex(2) where data is moved */
	struct guise_proc place;         /* what others keep in the region */
};

/* Maps the ring of fd, which it takes. NULL with the sentence. */
struct guise_served *guise_served_open(int fd);
void guise_served_close(struct guise_served *v);

/* The room of this thread's lane, for GUISE_LANE_ROOM bytes; NULL: there is no lane for it. */
char *guise_served_room(struct guise_stack *s, uint32_t *lane);

/* As guise_call() and guise_call_polling(); ps may be NULL. */
long guise_served_call(struct guise_stack *s, struct guise_pollset *ps, uint64_t nr,
		       const uint64_t arg[6]);

/* join.c: puts the ring and the bells of a servant's answer into s, which has the channel. It takes
 * the descriptors. 0, or -errno with the sentence. */
int guise_served_join(struct guise_stack *s, const struct guise_join_reply *r, const int *fd);
/* As guise_heir_prepare() and guise_heir_become(). */
int guise_served_prepare(struct guise_stack *s, int ticket, struct guise_heir *heir,
			 const struct guise_mark *marks, unsigned int n, int keep);
void guise_served_become(struct guise_stack *s, struct guise_heir *heir);
/* GUISE_NR_GIVE of a descriptor of the stack (what), GUISE_NR_TAKE (what: keep it there). */
long guise_served_pass(struct guise_stack *s, enum guise_join_kind kind, int what, int placeholder);

/* Memory with what comes into the ring of a packet socket: its descriptor and number, or -errno;
 * and it is not needed any more. */
long guise_served_map(struct guise_stack *s, int what, int *number);
void guise_served_unmap(struct guise_stack *s, int number);

/* The program has another user. 1: it is the stack's; or 0, or -errno with the sentence. */
long guise_served_identify(struct guise_stack *s);
/* Another structure of the same stack, as whose member the process goes on with copies of all its
 * sockets. The caller frees s. NULL: it stays served. */
struct guise_stack *guise_served_rise(struct guise_stack *s, int ticket);

/* sandbox.c: the program is about to get a filter of system calls, or has one. Waits for threads
 * that would make a call that the filter may not allow. */
void guise_served_sandbox(struct guise_served *v);
/* Whether this process has one. If that cannot be known: yes. */
bool guise_served_filtered(void);

/* client.c: s has no servant: each call gives ENETDOWN. */
void guise_served_lose(struct guise_stack *s);

/* change.c: this process is served from now on, with all its sockets, and keep, a descriptor of the
 * stack (-1: none). 0; or -errno with the sentence, and the sockets are lost. Nothing is done
 * where it is served already. */
int guise_give_up(struct guise_stack *s, int ticket, int keep);

/* For handlers of signals: the thread is not to sleep on. */
void guise_served_wake(void);
/* This thread ends, or it is the only one of a forked child: it has no lane any more. */
void guise_served_thread_ends(void);
void guise_served_forked(void);

#endif
