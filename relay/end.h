/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One end of a connection, or a listener: a descriptor of the stack or of the host, and the
 * function that is called when it is ready. Nothing here blocks.
 */
#ifndef GUISE_RELAY_END_H
#define GUISE_RELAY_END_H

#include "guise/guise.h"
#include "guise/syscall.h"
#include "host/sys.h"
#include "relay/list.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/socket.h>

struct engine;

struct end {
	struct engine *engine;
	void *owner;
	void (*ready)(struct end *e, uint32_t events);
	int fd;      /* -1: closed */
	bool inside; /* of the stack */
	uint32_t watched;
	struct list rest; /* a listener that is not watched for a while: engine_rest() */
};

struct guise_stack *engine_stack(const struct engine *g);

/* The call of that name on the end's descriptor, with five more arguments. */
#define end_call(e, name, b, c, d, x, f)                                                          \
	((e)->inside ? guise_call(engine_stack((e)->engine), GUISE_NR_##name, (e)->fd, (long)(b), \
				  (long)(c), (long)(d), (long)(x), (long)(f))                     \
		     : host_sys6(SYS_##name, (e)->fd, (long)(b), (long)(c), (long)(d), (long)(x), \
				 (long)(f)))

void end_init(struct end *e, struct engine *g, bool inside, int fd, void *owner,
	      void (*ready)(struct end *e, uint32_t events));
/* Opens a non-blocking socket, as e->fd. Returns it, or -errno. */
int end_socket(struct end *e, int family, int type, int protocol);
int end_option(struct end *e, int level, int name, int value);
/* Has a socket of the stack use that link only; "": any. */
int end_bind_to(struct end *e, const char *ifname);
/* Lets the socket be bound to addresses that the stack does not have. */
int end_transparent(struct end *e, int family);
/* Watches for these events. 0: for none, not even for errors and hang-ups. */
int end_watch(struct end *e, uint32_t events);
/* The socket's pending error: 0 or -errno. */
int end_error(struct end *e);
void end_close(struct end *e);
/* Closes a connection so that its peer sees a reset. */
void end_reset(struct end *e);

static inline socklen_t address_length(const struct sockaddr_storage *a)
{
	return a->ss_family == AF_INET ? 16 : 28;
}

#endif
