// SPDX-License-Identifier: GPL-2.0-only
/*
 * No link at all: the fuzzer is the backend, so the port gets every byte as it
 * is, and must stand alone (linux/arch/guise/drivers/net/receive.c).
 */
#include "wire.h"

#include "guise/syscall.h"

#include <errno.h>
#include <string.h>

/* Of what the stack sends only the headers are of interest. */
#define SENT_BYTES 512
#define SENT_MOST  256
#define FED_MOST   128

static const struct frame *fed[FED_MOST];
static uint32_t fed_head, fed_tail;

static struct {
	uint32_t len;
	uint8_t bytes[SENT_BYTES];
} sent[SENT_MOST];
static uint32_t sent_head, sent_tail;

static int64_t port_in(struct guise_link_port *port, const struct guise_iov *iov, uint32_t n)
{
	const struct frame *f;
	uint64_t at = 0, part;
	uint32_t i;

	(void)port;
	if (fed_head == fed_tail)
		return -EAGAIN;
	f = fed[fed_tail++ % FED_MOST];
	for (i = 0; i < n && at < f->len; i++, at += part) {
		part = f->len - at < iov[i].len ? f->len - at : iov[i].len;
		memcpy(iov[i].base, f->bytes + at, part);
	}
	/* More than there was room for: what a backend must never say. */
	return f->len;
}

static int64_t port_out(struct guise_link_port *port, const struct guise_iov *iov, uint32_t n)
{
	uint32_t i, slot = sent_head % SENT_MOST;
	int64_t total = 0;

	(void)port;
	if (sent_head - sent_tail == SENT_MOST)
		return -ENOBUFS;
	sent[slot].len = 0;
	for (i = 0; i < n; i++) {
		uint64_t room = SENT_BYTES - sent[slot].len;
		uint64_t part = iov[i].len < room ? iov[i].len : room;

		memcpy(sent[slot].bytes + sent[slot].len, iov[i].base, part);
		sent[slot].len += (uint32_t)part;
		total += (int64_t)iov[i].len;
	}
	sent_head++;
	return total;
}

static void port_detach(struct guise_link_port *port)
{
	(void)port;
}

static const struct guise_link_backend backend = {
	.in = port_in,
	.out = port_out,
	.detach = port_detach,
};

int wire_plug(struct guise_stack *s, const struct guise_link_backend *b, const int fd[2])
{
	struct guise_link *l = &s->region->links[0];
	long ifindex;

	l->used = 1;
	l->mtu = 1500;
	l->features = GUISE_LINK_CSUM | GUISE_LINK_TSO;
	strcpy(l->name, "eth0");
	strcpy(l->kind, "fuzz");
	memcpy(l->mac, "\2\0\0\0\0\2", 6);
	s->port[0] = (struct guise_link_port){
		.backend = b,
		.fd = { fd ? fd[0] : -1, -1, -1 },
		.state = l,
	};
	ifindex = guise_call(s, GUISE_NR_LINK_ADD, 0, 0, 0, 0, 0, 0);
	return ifindex < 0 ? guise_fail((int)-ifindex, "the stack refuses the link") : 0;
}

static const char *port_missing(void)
{
	return NULL;
}

static int port_open(struct guise_stack *s)
{
	return wire_plug(s, &backend, NULL);
}

static enum feed port_feed(const struct frame *f)
{
	if (fed_head - fed_tail == FED_MOST)
		return FEED_FULL;
	fed[fed_head++ % FED_MOST] = f;
	return FED;
}

static int64_t port_take(uint8_t *buf, uint32_t size)
{
	uint32_t slot = sent_tail % SENT_MOST, n;

	if (sent_head == sent_tail)
		return -EAGAIN;
	n = sent[slot].len < size ? sent[slot].len : size;
	memcpy(buf, sent[slot].bytes, n);
	sent_tail++;
	return n;
}

const struct wire wire_port = {
	.name = "port",
	.what = "the port's own receive path, without a backend",
	.simulated = true,
	.exact = true,
	.missing = port_missing,
	.open = port_open,
	.feed = port_feed,
	.take = port_take,
};
