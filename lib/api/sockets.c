// SPDX-License-Identifier: GPL-2.0-only
/* The socket calls of guise.h, typed, over guise_call(). */
#include "api/error.h"
#include "guise/guise.h"
#include "guise/syscall.h"

int guise_socket(struct guise_stack *s, int domain, int type, int protocol)
{
	return (int)guise_result("socket",
				 guise_call(s, GUISE_NR_socket, domain, type, protocol, 0, 0, 0));
}

int guise_bind(struct guise_stack *s, int fd, const struct sockaddr *a, socklen_t len)
{
	return (int)guise_result("bind", guise_call(s, GUISE_NR_bind, fd, (long)a, len, 0, 0, 0));
}

int guise_connect(struct guise_stack *s, int fd, const struct sockaddr *a, socklen_t len)
{
	return (int)guise_result("connect",
				 guise_call(s, GUISE_NR_connect, fd, (long)a, len, 0, 0, 0));
}

int guise_listen(struct guise_stack *s, int fd, int backlog)
{
	return (int)guise_result("listen", guise_call(s, GUISE_NR_listen, fd, backlog, 0, 0, 0, 0));
}

int guise_accept4(struct guise_stack *s, int fd, struct sockaddr *a, socklen_t *len, int flags)
{
	return (int)guise_result("accept4", guise_call(s, GUISE_NR_accept4, fd, (long)a, (long)len,
						       flags, 0, 0));
}

int guise_shutdown(struct guise_stack *s, int fd, int how)
{
	return (int)guise_result("shutdown", guise_call(s, GUISE_NR_shutdown, fd, how, 0, 0, 0, 0));
}

ssize_t guise_sendto(struct guise_stack *s, int fd, const void *buf, size_t len, int flags,
		     const struct sockaddr *a, socklen_t alen)
{
	return guise_result("sendto", guise_call(s, GUISE_NR_sendto, fd, (long)buf, (long)len,
						 flags, (long)a, alen));
}

ssize_t guise_recvfrom(struct guise_stack *s, int fd, void *buf, size_t len, int flags,
		       struct sockaddr *a, socklen_t *alen)
{
	return guise_result("recvfrom", guise_call(s, GUISE_NR_recvfrom, fd, (long)buf, (long)len,
						   flags, (long)a, (long)alen));
}

ssize_t guise_sendmsg(struct guise_stack *s, int fd, const struct msghdr *m, int flags)
{
	return guise_result("sendmsg",
			    guise_call(s, GUISE_NR_sendmsg, fd, (long)m, flags, 0, 0, 0));
}

ssize_t guise_recvmsg(struct guise_stack *s, int fd, struct msghdr *m, int flags)
{
	return guise_result("recvmsg",
			    guise_call(s, GUISE_NR_recvmsg, fd, (long)m, flags, 0, 0, 0));
}

int guise_setsockopt(struct guise_stack *s, int fd, int level, int name, const void *v,
		     socklen_t len)
{
	return (int)guise_result("setsockopt", guise_call(s, GUISE_NR_setsockopt, fd, level, name,
							  (long)v, len, 0));
}

int guise_getsockopt(struct guise_stack *s, int fd, int level, int name, void *v, socklen_t *len)
{
	return (int)guise_result("getsockopt", guise_call(s, GUISE_NR_getsockopt, fd, level, name,
							  (long)v, (long)len, 0));
}

int guise_getsockname(struct guise_stack *s, int fd, struct sockaddr *a, socklen_t *len)
{
	return (int)guise_result("getsockname", guise_call(s, GUISE_NR_getsockname, fd, (long)a,
							   (long)len, 0, 0, 0));
}

int guise_getpeername(struct guise_stack *s, int fd, struct sockaddr *a, socklen_t *len)
{
	return (int)guise_result("getpeername", guise_call(s, GUISE_NR_getpeername, fd, (long)a,
							   (long)len, 0, 0, 0));
}
