/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A send or a receive whose count is not lost when the thread that makes it is killed.
 *
 * A thread that moves bytes of a stream may be killed when the host's kernel has moved them,
 * and before the thread has stored how many. Then the position in the stream would not be
 * known. So the host's kernel itself stores the number: sendmmsg(2) and recvmmsg(2) write the
 * count of each message into msg_len before they return, and SIGKILL does not end a thread
 * within the kernel's code. The struct is in memory that all members map, so that the next
 * thread can read it.
 *
 * Use: the caller calls guise_counted_begin(), and then stores in its own record, in one
 * store, that a call is under way. It makes the call. Then it adds the count to its record
 * and stores that no call is under way, again in one store. A thread that finds a call under
 * way whose thread is dead does this last step in its place; guise_counted() is 0 if the call
 * was not made, or moved nothing.
 *
 * Limit: if the page of the struct is swapped out during the call, and the thread is killed
 * at that moment, the kernel does not write the count.
 */
#ifndef GUISE_LINK_COUNTED_H
#define GUISE_LINK_COUNTED_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct guise_counted {
	struct mmsghdr m; /* its pointers are valid only for the current caller */
};

static inline void guise_counted_begin(struct guise_counted *c)
{
	__atomic_store_n(&c->m.msg_len, 0, __ATOMIC_RELEASE);
}

static inline uint32_t guise_counted(const struct guise_counted *c)
{
	return __atomic_load_n(&c->m.msg_len, __ATOMIC_ACQUIRE);
}

/* Bytes, or -errno. Neither waits. */
long guise_counted_send(struct guise_counted *c, int fd, const struct iovec *iov, size_t n);
/* control: NULL, or room for *size bytes of control messages; sets *size to their length. */
long guise_counted_receive(struct guise_counted *c, int fd, const struct iovec *iov, void *control,
			   size_t *size);

#endif
