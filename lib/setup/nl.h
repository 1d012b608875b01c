/* SPDX-License-Identifier: GPL-2.0-only */
/* A small netlink writer: one request, one answer, inside a stack. */
#ifndef GUISE_SETUP_NL_H
#define GUISE_SETUP_NL_H

#include "guise/guise.h"

#include <linux/netlink.h>
#include <stdbool.h>

struct guise_nl {
	bool full; /* something did not fit: sending fails */
	size_t len;
	char buf[2048] __attribute__((aligned(NLMSG_ALIGNTO)));
};

/* A request of that type with the family's own header (body) in front. */
void guise_nl_begin(struct guise_nl *m, uint16_t type, uint16_t flags, const void *body,
		    size_t len);
void guise_nl_put(struct guise_nl *m, uint16_t type, const void *data, size_t len);
void guise_nl_str(struct guise_nl *m, uint16_t type, const char *text);
void guise_nl_u8(struct guise_nl *m, uint16_t type, uint8_t value);
void guise_nl_u16(struct guise_nl *m, uint16_t type, uint16_t value);
void guise_nl_u32(struct guise_nl *m, uint16_t type, uint32_t value);
void guise_nl_u64(struct guise_nl *m, uint16_t type, uint64_t value);

/* Opens an attribute that has others in it, with raw bytes in front of them. Returns its
 * place, for guise_nl_end(). */
size_t guise_nl_nest(struct guise_nl *m, uint16_t type, const void *data, size_t len);
void guise_nl_end(struct guise_nl *m, size_t place);

/*
 * Sends the request over a netlink socket of that protocol in this thread's namespace,
 * and reads up to the acknowledgement. reply (may be NULL) gets each message
 * that comes before it. 0, or -errno with the sentence "WHAT: why"; why is
 * the kernel's own explanation where it gives one.
 */
int guise_nl_talk(struct guise_stack *s, int protocol, struct guise_nl *m,
		  void (*reply)(const struct nlmsghdr *msg, void *arg), void *arg, const char *what,
		  ...) __attribute__((format(printf, 6, 7)));

#endif
