// SPDX-License-Identifier: GPL-2.0-only
/* See message.h. */
#include "host/message.h"

#include "host/fd.h"
#include "host/sys.h"

#include <errno.h>
#include <string.h>
#include <time.h>

int guise_message_send(int to, const void *data, size_t len, const int *fd, unsigned int n)
{
	char control[CMSG_SPACE(GUISE_MESSAGE_FDS * sizeof(int))] __attribute__((aligned(16)));
	struct iovec iov = { (void *)data, len };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *c;
	long ret;

	if (n > GUISE_MESSAGE_FDS)
		return -EINVAL;
	if (n) {
		m.msg_control = control;
		m.msg_controllen = CMSG_SPACE(n * sizeof(int));
		memset(control, 0, m.msg_controllen);
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(c), fd, n * sizeof(int));
	}
	ret = host_sys(SYS_sendmsg, to, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
	return ret < 0 ? (int)ret : 0;
}

long guise_message_receive(int from, void *data, size_t room, struct guise_message *in)
{
	char control[CMSG_SPACE(sizeof(in->fd)) + CMSG_SPACE(sizeof(in->sender))]
		__attribute__((aligned(16)));
	struct iovec iov = { data, room };
	struct msghdr m = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *c;
	long len;

	in->fds = 0;
	in->sender = (struct ucred){ 0 };
	/* MSG_TRUNC: the whole length, so that a longer message is seen as such. */
	len = host_sys(SYS_recvmsg, from, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC | MSG_TRUNC);
	guise_lacking_pause(len);
	if (len < 0)
		return len;
	for (c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
		if (c->cmsg_level != SOL_SOCKET)
			continue;
		if (c->cmsg_type == SCM_CREDENTIALS) {
			memcpy(&in->sender, CMSG_DATA(c), sizeof(in->sender));
		} else if (c->cmsg_type == SCM_RIGHTS) {
			in->fds = (unsigned int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
			memcpy(in->fd, CMSG_DATA(c), in->fds * sizeof(int));
		}
	}
	return len;
}

void guise_lacking_pause(long ret)
{
	const struct timespec pause = { .tv_nsec = 10000000 };

	if (ret == -EMFILE || ret == -ENFILE || ret == -ENOBUFS || ret == -ENOMEM)
		host_sys(SYS_nanosleep, &pause, NULL);
}

void guise_message_close(const struct guise_message *m)
{
	guise_fd_close_all(m->fd, m->fds);
}
