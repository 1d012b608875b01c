/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A send or a receive whose count outlives the thread that makes it.
 *
 * Whoever moves bytes of a stream may be killed when the host's kernel has moved them and
 * before anybody could note how many: then nobody knows where in the stream it is. So the
 * kernel itself notes it. sendmmsg(2) and recvmmsg(2) write the count of each message into
 * msg_len before they return, and a kernel's own path is not cut short by SIGKILL. The
 * struct lies in memory of all members, and so the next one reads it there.
 *
 * How it is used: the caller calls guise_counted_begin(), then says in its own record, in
 * one store, that a call is under way; it makes the call; it takes the count over and says
 * that no call is under way, in one store again. Who finds a call under way whose thread
 * is no more takes over guise_counted() likewise: 0 where the call was not made, or moved
 * nothing.
 *
 * Limit: should the page of the struct be swapped out during the call, and the thread be
 * killed in that moment, the kernel gives up writing the count.
 */
#ifndef GUISE_LINK_COUNTED_H
#define GUISE_LINK_COUNTED_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct guise_counted {
	struct mmsghdr m; /* pointers in it mean something to the caller of the moment alone */
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
/* control: NULL, or room for so many bytes of control messages; *size becomes what there is. */
long guise_counted_receive(struct guise_counted *c, int fd, const struct iovec *iov, void *control,
			   size_t *size);

#endif
