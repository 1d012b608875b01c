// SPDX-License-Identifier: GPL-2.0-only
/*
 * Netlink dumps inside a stack. A dump may have any number of answers, and is read in pieces:
 * the kernel makes one when the receive asks for it, and goes on from there in the next. So the
 * virtual CPU is taken for the time of one piece, some 20 connections, and no buffer has to
 * have room for all. Between two pieces the stack's programs go on, and so the whole is no
 * picture of one moment: what comes or goes meanwhile may be missing, or there twice.
 *
 * The reader may stop for as long as it likes; the place in the dump is in the kernel, with the
 * socket. A dump that is not read to its end is ended by closing the socket.
 */
#include "setup/nl_dump.h"

#include "guise/syscall.h"
#include "region/stack.h"

#include <errno.h>
#include <string.h>

void guise_nl_dump_init(struct guise_nl_dump *d)
{
	d->fd = -1;
	d->at = d->len = 0;
}

void guise_nl_dump_end(struct guise_nl_dump *d)
{
	if (d->fd >= 0)
		guise_call(d->s, GUISE_NR_close, d->fd, 0, 0, 0, 0, 0);
	guise_nl_dump_init(d);
}

int guise_nl_dump_begin(struct guise_nl_dump *d, struct guise_stack *s, int protocol,
			struct guise_nl *m, const char *what)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	long ret;

	guise_nl_dump_init(d);
	d->s = s;
	d->what = what;
	if (m->full)
		return guise_fail(EMSGSIZE, "%s: too long a request", what);
	((struct nlmsghdr *)m->buf)->nlmsg_len = (uint32_t)m->len;
	ret = guise_call(s, GUISE_NR_socket, AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol, 0, 0,
			 0);
	if (ret < 0)
		return guise_fail((int)-ret, "%s: no netlink socket in the stack: %s", what,
				  strerror((int)-ret));
	d->fd = (int)ret;
	ret = guise_call(s, GUISE_NR_sendto, d->fd, (long)m->buf, (long)m->len, 0, (long)&kernel,
			 sizeof(kernel));
	if (ret >= 0)
		return 0;
	guise_nl_dump_end(d);
	return guise_fail((int)-ret, "%s: %s", what, strerror((int)-ret));
}

const struct nlmsghdr *guise_nl_message(const void *bytes, size_t len, size_t *at)
{
	const struct nlmsghdr *h = (const void *)((const char *)bytes + *at);

	if (*at > len || len - *at < sizeof(*h) || h->nlmsg_len < sizeof(*h) ||
	    h->nlmsg_len > len - *at)
		return NULL;
	*at += NLMSG_ALIGN(h->nlmsg_len);
	return h;
}

/* The error that ends a dump, 0: none. */
static int last_word(const struct nlmsghdr *h)
{
	int err = 0;

	if (h->nlmsg_len >= NLMSG_LENGTH(sizeof(err)))
		memcpy(&err, NLMSG_DATA(h), sizeof(err));
	else if (h->nlmsg_type == NLMSG_ERROR)
		err = -EBADMSG;
	return err < 0 ? err : 0;
}

const struct nlmsghdr *guise_nl_dump_next(struct guise_nl_dump *d, int *err)
{
	const struct nlmsghdr *h;
	long n = -EBADF;

	while (d->fd >= 0) {
		h = guise_nl_message(d->buf, d->len, &d->at);
		if (h && h->nlmsg_type != NLMSG_DONE && h->nlmsg_type != NLMSG_ERROR)
			return h;
		if (h) {
			n = last_word(h);
			break;
		}
		/* The next piece is there when the one before has been received. */
		n = guise_call(d->s, GUISE_NR_recvfrom, d->fd, (long)d->buf, sizeof(d->buf),
			       MSG_DONTWAIT, 0, 0);
		if (n <= 0) {
			n = n ? n : -EPROTO;
			break;
		}
		d->at = 0;
		d->len = (size_t)n;
	}
	guise_nl_dump_end(d);
	*err = n < 0 ? guise_fail((int)-n, "%s: %s", d->what, strerror((int)-n)) : 0;
	return NULL;
}

void guise_nl_attributes(const void *bytes, size_t len,
			 void (*found)(void *arg, unsigned int type, const void *data, size_t len),
			 void *arg)
{
	const char *from = bytes;
	struct nlattr a;
	size_t at = 0;

	while (at <= len && len - at >= NLA_HDRLEN) {
		memcpy(&a, from + at, sizeof(a));
		if (a.nla_len < NLA_HDRLEN || a.nla_len > len - at)
			return;
		found(arg, a.nla_type & NLA_TYPE_MASK, from + at + NLA_HDRLEN,
		      (size_t)a.nla_len - NLA_HDRLEN);
		at += NLA_ALIGN(a.nla_len);
	}
}
