// SPDX-License-Identifier: GPL-2.0-only
/* Ends of connections: the same functions for sockets of the stack and of the host. */
#include "relay/end.h"

#include "relay/engine.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

void end_init(struct end *e, struct engine *g, bool inside, int fd, void *owner,
	      void (*ready)(struct end *e, uint32_t events))
{
	*e = (struct end){
		.engine = g,
		.owner = owner,
		.ready = ready,
		.fd = fd,
		.inside = inside,
	};
}

int end_socket(struct end *e, int family, int type, int protocol)
{
	long fd;

	type |= SOCK_NONBLOCK | SOCK_CLOEXEC;
	fd = e->inside ? guise_call(engine_stack(e->engine), GUISE_NR_socket, family, type,
				    protocol, 0, 0, 0)
		       : host_sys(SYS_socket, family, type, protocol);
	if (fd >= 0)
		e->fd = (int)fd;
	return (int)fd;
}

int end_option(struct end *e, int level, int name, int value)
{
	return (int)end_call(e, setsockopt, level, name, &value, sizeof(value), 0);
}

int end_bind_to(struct end *e, const char *ifname)
{
	if (!*ifname)
		return 0;
	return (int)end_call(e, setsockopt, SOL_SOCKET, SO_BINDTODEVICE, ifname, strlen(ifname), 0);
}

int end_transparent(struct end *e, int family)
{
	return family == AF_INET6 ? end_option(e, IPPROTO_IPV6, IPV6_TRANSPARENT, 1)
				  : end_option(e, IPPROTO_IP, IP_TRANSPARENT, 1);
}

int end_watch(struct end *e, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = e };
	int op = !events ? EPOLL_CTL_DEL : e->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
	long ret;

	if (e->rest.next)
		list_remove(&e->rest);
	if (events == e->watched)
		return 0;
	ret = e->inside ? guise_call(e->engine->s, GUISE_NR_epoll_ctl, e->engine->stack_epoll, op,
				     e->fd, (long)&ev, 0, 0)
			: host_sys(SYS_epoll_ctl, e->engine->host_epoll, op, e->fd, &ev);
	if (!ret)
		e->watched = events;
	return (int)ret;
}

int end_error(struct end *e)
{
	socklen_t len = sizeof(int);
	int err = 0;
	long ret = end_call(e, getsockopt, SOL_SOCKET, SO_ERROR, &err, &len, 0);

	return ret < 0 ? (int)ret : -err;
}

/* There is no other copy of the descriptor, so that closing it also removes it from the epoll. */
void end_close(struct end *e)
{
	if (e->fd < 0)
		return;
	if (e->rest.next)
		list_remove(&e->rest);
	end_call(e, close, 0, 0, 0, 0, 0);
	e->fd = -1;
	e->watched = 0;
}

void end_reset(struct end *e)
{
	struct linger at_once = { .l_onoff = 1 };

	if (e->fd < 0)
		return;
	end_call(e, setsockopt, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once), 0);
	end_close(e);
}
