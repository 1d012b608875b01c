/* SPDX-License-Identifier: GPL-2.0-only */
/* Where guise's own descriptors live: out of the program's way. See fd.c. */
#ifndef GUISE_HOST_FD_H
#define GUISE_HOST_FD_H

#include <stdint.h>
#include <sys/resource.h>

/*
 * Descriptors of guise's own are moved up here, out of the program's way. Each becomes its new
 * number, close-on-exec, and the old one is closed; -EBADF for a bad one.
 */
#define GUISE_FD_ALL 256 /* at the most: a message brings 253 */
void guise_fd_all_high(int *fd, unsigned int n);
int guise_fd_high(int fd);
/* The lowest number that descriptors are moved to, if there is room; most: the hard limit. */
int guise_fd_low(rlim_t most);
/* memfd_create(2) as this host wants it, close-on-exec; or -errno. */
int guise_fd_memory(const char *name, unsigned int flags);
/*
 * Memory that processes share: such a file of that many bytes, whose size nobody can change any
 * more. Where the host knows how (Linux 6.3), it cannot be made executable either.
 */
int guise_fd_shared(const char *name, uint64_t bytes);
/*
 * For the time in which a stack's descriptors come and are moved, the soft limit (ulimit -n) is
 * raised, so that they lie above the program's own. What it was before, to be given back; where
 * the host does not allow it nothing is changed.
 */
struct rlimit guise_fd_raise(void);
void guise_fd_restore(struct rlimit before);
/* A copy of fd up there, close-on-exec; fd itself stays. -errno on failure. */
int guise_fd_copy(int fd);
/* All that are open from this number on become close-on-exec. */
void guise_fd_end_at_exec(int from);
void guise_fd_close_all(const int *fd, unsigned int n);
/* dup3(2) to a number of guise's own, which may be above the soft limit. */
int guise_fd_onto(int fd, int own, int flags);

#endif
