/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For tests of the join protocol: a holder that has a region, a link and all
 * descriptors of a stack, but no kernel; and messages to it, of any form.
 */
#ifndef GUISE_TEST_HOLDER_H
#define GUISE_TEST_HOLDER_H

#include "region/bell.h"
#include "region/join.h"
#include "region/stack.h"
#include "test/region.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define TEST_FDS_MOST GUISE_BELLS /* that are sent along */

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
	char control[CMSG_SPACE(TEST_FDS_MOST * sizeof(int))] __attribute__((aligned(16))) = { 0 };
	struct iovec iov = { (void *)data, len };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *c;

	if (n) {
		m.msg_control = control;
		m.msg_controllen = CMSG_SPACE((size_t)n * sizeof(int));
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN((size_t)n * sizeof(int));
		memcpy(CMSG_DATA(c), fd, (size_t)n * sizeof(int));
	}
	if (sendmsg(to, &m, 0) != (ssize_t)len)
		abort();
}

/* The length of the answer on a channel, -1 for none, and the number of its
 * descriptors, which are closed. */
static inline long test_hear(int channel, struct guise_join_reply *r, int *fds)
{
	char control[CMSG_SPACE(GUISE_JOIN_MAX_FDS * sizeof(int))] __attribute__((aligned(16)));
	struct iovec iov = { r, sizeof(*r) };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control,
			    .msg_controllen = sizeof(control) };
	ssize_t len = recvmsg(channel, &m, MSG_DONTWAIT | MSG_TRUNC);
	int fd;

	*fds = 0;
	for (struct cmsghdr *c = len > 0 ? CMSG_FIRSTHDR(&m) : NULL; c; c = CMSG_NXTHDR(&m, c))
		for (size_t at = CMSG_LEN(0); at < c->cmsg_len; at += sizeof(int), ++*fds) {
			memcpy(&fd, (char *)c + at, sizeof(fd));
			close(fd);
		}
	return len;
}

#endif
