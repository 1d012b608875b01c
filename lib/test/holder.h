/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For tests of the join protocol: a holder that has a region, a link and all
 * descriptors of a stack, but no kernel; and messages to it, of any form.
 */
#ifndef GUISE_TEST_HOLDER_H
#define GUISE_TEST_HOLDER_H

#include "host/message.h"
#include "region/bell.h"
#include "region/join.h"
#include "region/stack.h"
#include "test/region.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Fills s; the test is its pump. The ends of a ticket: the joiners', the holder's. */
static inline void test_holder(struct guise_stack *s, int ticket[2])
{
	struct guise_region *r;

	*s = (struct guise_stack){ .creator = true, .pump_running = true };
	test_region(s);
	r = s->region;
	r->base = 0x7e9000000000;
	r->procs[0].used = r->procs[1].used = 1;
	s->memfd = memfd_create("guise-test", MFD_CLOEXEC);
	s->monitor_fd = memfd_create("guise-test-monitor", MFD_CLOEXEC);
	s->image_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	r->links[2].used = 1;
	strcpy(r->links[2].kind, "pair");
	if (guise_bells_make(s, GUISE_BELLS_FIRST) || pipe2(s->port[2].fd, O_CLOEXEC) ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ticket))
		abort();
}

/* The number of those open below most. */
static inline int test_open_descriptors(int most)
{
	int n = 0;

	for (int fd = 0; fd < most; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Sends len bytes with n descriptors. */
static inline void test_send(int to, const void *data, size_t len, const int *fd, int n)
{
	if (guise_message_send(to, data, len, fd, (unsigned int)n))
		abort();
}

/* The length of the answer on a channel, -1 for none, and the number of its
 * descriptors, which are closed. */
static inline long test_hear(int channel, struct guise_join_reply *r, int *fds)
{
	struct guise_message m;
	long len = guise_message_receive(channel, r, sizeof(*r), &m);

	guise_message_close(&m);
	*fds = (int)m.fds;
	return len < 0 ? -1 : len;
}

#endif
