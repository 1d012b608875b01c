// SPDX-License-Identifier: GPL-2.0-only
/* One message to sendmmsg and recvmmsg; counted.h says what for. */
#include "link/counted.h"

#include "host/sys.h"

#include <errno.h>

long guise_counted_send(struct guise_counted *c, int fd, const struct iovec *iov, size_t n)
{
	long ret;

	c->m.msg_hdr = (struct msghdr){ .msg_iov = (struct iovec *)iov, .msg_iovlen = n };
	do
		ret = host_sys(SYS_sendmmsg, fd, &c->m, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (ret == -EINTR);
	return ret < 0 ? ret : (long)guise_counted(c);
}

long guise_counted_receive(struct guise_counted *c, int fd, const struct iovec *iov, void *control,
			   size_t *size)
{
	long ret;

	c->m.msg_hdr = (struct msghdr){ .msg_iov = (struct iovec *)iov,
					.msg_iovlen = 1,
					.msg_control = control,
					.msg_controllen = control ? *size : 0 };
	ret = host_sys(SYS_recvmmsg, fd, &c->m, 1, MSG_DONTWAIT, NULL);
	if (control)
		*size = ret > 0 ? c->m.msg_hdr.msg_controllen : 0;
	return ret < 0 ? ret : (long)guise_counted(c);
}
