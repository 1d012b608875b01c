// SPDX-License-Identifier: GPL-2.0-only
/*
 * Netlink inside a stack. Each request opens a socket of its own and closes it afterwards:
 * configuration is rare, and a socket that was kept would be seen among the program's
 * descriptors and would belong to one network namespace.
 *
 * The answer is there when the send returns, because the kernel handles a
 * request in the sender's own context. If a receive would block, no acknowledgement will
 * come: this is an error, not a reason to wait.
 */
#include "setup/nl.h"
#include "guise/syscall.h"
#include "region/stack.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SEQ 1

void guise_nl_begin(struct guise_nl *m, uint16_t type, uint16_t flags, const void *body, size_t len)
{
	struct nlmsghdr h = {
		.nlmsg_type = type,
		.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | flags,
		.nlmsg_seq = SEQ,
	};

	memset(m, 0, sizeof(*m));
	memcpy(m->buf, &h, sizeof(h));
	memcpy(m->buf + NLMSG_HDRLEN, body, len);
	m->len = NLMSG_HDRLEN + NLMSG_ALIGN(len);
}

void guise_nl_put(struct guise_nl *m, uint16_t type, const void *data, size_t len)
{
	struct nlattr a = { .nla_len = (uint16_t)(NLA_HDRLEN + len), .nla_type = type };

	if (m->len + NLA_HDRLEN + NLA_ALIGN(len) > sizeof(m->buf)) {
		m->full = true;
		return;
	}
	memcpy(m->buf + m->len, &a, sizeof(a));
	if (len)
		memcpy(m->buf + m->len + NLA_HDRLEN, data, len);
	m->len += NLA_HDRLEN + NLA_ALIGN(len);
}

void guise_nl_str(struct guise_nl *m, uint16_t type, const char *text)
{
	guise_nl_put(m, type, text, strlen(text) + 1);
}

void guise_nl_u8(struct guise_nl *m, uint16_t type, uint8_t value)
{
	guise_nl_put(m, type, &value, sizeof(value));
}

void guise_nl_u16(struct guise_nl *m, uint16_t type, uint16_t value)
{
	guise_nl_put(m, type, &value, sizeof(value));
}

void guise_nl_u32(struct guise_nl *m, uint16_t type, uint32_t value)
{
	guise_nl_put(m, type, &value, sizeof(value));
}

void guise_nl_u64(struct guise_nl *m, uint16_t type, uint64_t value)
{
	guise_nl_put(m, type, &value, sizeof(value));
}

size_t guise_nl_nest(struct guise_nl *m, uint16_t type, const void *data, size_t len)
{
	size_t place = m->len;

	guise_nl_put(m, type, data, len);
	return place;
}

void guise_nl_end(struct guise_nl *m, size_t place)
{
	if (!m->full)
		((struct nlattr *)(m->buf + place))->nla_len = (uint16_t)(m->len - place);
}

/* The kernel's own words in an acknowledgement, or NULL. */
static const char *ack_text(const struct nlmsghdr *h)
{
	const struct nlmsgerr *e = NLMSG_DATA(h);
	size_t at = NLMSG_HDRLEN + sizeof(*e);
	const char *base = (const char *)h;
	struct nlattr a;

	if (!(h->nlmsg_flags & NLM_F_ACK_TLVS))
		return NULL;
	/* Without NLM_F_CAPPED the request's payload is repeated first. */
	if (!(h->nlmsg_flags & NLM_F_CAPPED))
		at += NLMSG_ALIGN(e->msg.nlmsg_len - sizeof(e->msg));
	while (at + NLA_HDRLEN <= h->nlmsg_len) {
		memcpy(&a, base + at, sizeof(a));
		if (a.nla_len <= NLA_HDRLEN || at + a.nla_len > h->nlmsg_len)
			break;
		if (a.nla_type == NLMSGERR_ATTR_MSG && !base[at + a.nla_len - 1])
			return base + at + NLA_HDRLEN;
		at += NLA_ALIGN(a.nla_len);
	}
	return NULL;
}

/* Reads answers up to the acknowledgement: its error (0 or negative). */
static int await_ack(struct guise_stack *s, int fd,
		     void (*reply)(const struct nlmsghdr *msg, void *arg), void *arg, char *why,
		     size_t size)
{
	char buf[8192] __attribute__((aligned(NLMSG_ALIGNTO)));
	const struct nlmsghdr *h;
	const char *text;
	long n;
	int err;

	for (;;) {
		n = guise_call(s, GUISE_NR_recvfrom, fd, (long)buf, sizeof(buf), MSG_DONTWAIT, 0,
			       0);
		if (n <= 0)
			return n ? (int)n : -EPROTO;
		for (h = (void *)buf; NLMSG_OK(h, n); h = NLMSG_NEXT(h, n)) {
			if (h->nlmsg_seq != SEQ)
				continue;
			if (h->nlmsg_type != NLMSG_ERROR) {
				if (reply)
					reply(h, arg);
				continue;
			}
			if (h->nlmsg_len < NLMSG_LENGTH(sizeof(struct nlmsgerr)))
				return -EBADMSG;
			err = ((const struct nlmsgerr *)NLMSG_DATA(h))->error;
			text = err ? ack_text(h) : NULL;
			if (text)
				snprintf(why, size, "%s", text);
			return err;
		}
	}
}

int guise_nl_talk(struct guise_stack *s, int protocol, struct guise_nl *m,
		  void (*reply)(const struct nlmsghdr *msg, void *arg), void *arg, const char *what,
		  ...)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	char why[256] = "", name[192];
	int fd, on = 1;
	long ret;
	va_list ap;

	va_start(ap, what);
	vsnprintf(name, sizeof(name), what, ap);
	va_end(ap);
	if (m->full)
		return guise_fail(EMSGSIZE, "%s: too long a request", name);
	((struct nlmsghdr *)m->buf)->nlmsg_len = (uint32_t)m->len;

	fd = (int)guise_call(s, GUISE_NR_socket, AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol, 0,
			     0, 0);
	if (fd < 0)
		return guise_fail(-fd, "%s: no netlink socket in the stack: %s", name,
				  strerror(-fd));
	/* Explanations are welcome, not required: no check. */
	guise_call(s, GUISE_NR_setsockopt, fd, SOL_NETLINK, NETLINK_EXT_ACK, (long)&on, sizeof(on),
		   0);
	guise_call(s, GUISE_NR_setsockopt, fd, SOL_NETLINK, NETLINK_CAP_ACK, (long)&on, sizeof(on),
		   0);
	ret = guise_call(s, GUISE_NR_sendto, fd, (long)m->buf, (long)m->len, 0, (long)&kernel,
			 sizeof(kernel));
	if (ret >= 0)
		ret = await_ack(s, fd, reply, arg, why, sizeof(why));
	guise_call(s, GUISE_NR_close, fd, 0, 0, 0, 0, 0);
	if (ret < 0)
		return guise_fail((int)-ret, "%s: %s", name, *why ? why : strerror((int)-ret));
	return 0;
}
