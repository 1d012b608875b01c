// SPDX-License-Identifier: GPL-2.0-only
/*
 * The shapes of all calls that a served program may make: what the port's table of calls has
 * (linux/arch/guise/kernel/syscall.c), without those that only make sense in a member
 * (memory of the region, links, places of other processes, signals to them). Sizes are those of
 * Linux's own structures on 64-bit processors.
 *
 * The program packs by this table, and the servant refuses what is not in it. It also refuses
 * calls that name another process of the stack, by which a program could limit that process or
 * have it sent signals: those of the holder, for example. The same holds for what would have
 * SIGKILL sent to the servant's own tasks: they would end, and its threads wait for them.
 */
#include "served/shapes.h"

#include "guise/contract.h"
#include "guise/syscall.h"

#include <asm/sockios.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/resource.h>

#define V           { GUISE_VALUE, 0, 0 }
#define IN(bytes)   { GUISE_IN, 0, bytes }
#define OUT(bytes)  { GUISE_OUT, 0, bytes }
#define IO(bytes)   { GUISE_BOTH, 0, bytes }
#define LEFT(bytes) { GUISE_LEFT, 0, bytes }
#define STR         { GUISE_STRING, 0, 0 }
/* n: the argument that counts, from 0 on */
#define INS(n, bytes)      { GUISE_IN, (n) + 1, bytes }
#define IOS(n, bytes)      { GUISE_BOTH, (n) + 1, bytes }
#define DATA_IN(n)         { GUISE_DATA_IN, (n) + 1, 1 }
#define DATA_OUT(n)        { GUISE_DATA_OUT, (n) + 1, 1 }
#define EACH_OUT(n, bytes) { GUISE_DATA_OUT, (n) + 1, bytes }
#define ADDR               { GUISE_MEASURED, 0, 0 }
#define LEN                { GUISE_MEASURE, 0, 4 }

#ifdef __x86_64__
#define EPOLL_EVENT 12 /* it is packed */
#else
#define EPOLL_EVENT 16
#endif

#define TIMESPEC   16
#define ITIMERSPEC 32
#define POLLFD     8
#define SIGSET(n)  INS(n, 1)
#define STATX      256
#define UTSNAME    390
#define SYSINFO    112
#define CAP_HEADER 8
#define CAP_DATA   24
#define RLIMIT     16

#define CALL(name, ...)      [GUISE_NR_##name] = { GUISE_FLAT, { __VA_ARGS__ } }
#define NEST(name, how, ...) [GUISE_NR_##name] = { GUISE_NEST_##how, { __VA_ARGS__ } }

/* clang-format off */
static const struct guise_shape shapes[] = {
	/* Sockets. */
	CALL(socket, V, V, V),
	CALL(socketpair, V, V, V, OUT(8)),
	CALL(bind, V, INS(2, 1), V),
	CALL(connect, V, INS(2, 1), V),
	CALL(listen, V, V),
	CALL(accept, V, ADDR, LEN),
	CALL(accept4, V, ADDR, LEN, V),
	CALL(getsockname, V, ADDR, LEN),
	CALL(getpeername, V, ADDR, LEN),
	CALL(shutdown, V, V),
	CALL(sendto, V, DATA_IN(2), V, V, INS(5, 1), V),
	CALL(recvfrom, V, DATA_OUT(2), V, V, ADDR, LEN),
	NEST(sendmsg, MSG_IN, V, V, V),
	NEST(recvmsg, MSG_OUT, V, V, V),
	NEST(sendmmsg, MMSG_IN, V, V, V, V),
	NEST(recvmmsg, MMSG_OUT, V, V, V, V, LEFT(TIMESPEC)),
	NEST(setsockopt, OPTION, V, V, V, INS(4, 1), V),
	CALL(getsockopt, V, V, V, { GUISE_MEASURED, 1, 0 }, LEN),
	/* Files. */
	CALL(read, V, DATA_OUT(2), V),
	CALL(write, V, DATA_IN(2), V),
	CALL(pread64, V, DATA_OUT(2), V, V),
	CALL(pwrite64, V, DATA_IN(2), V, V),
	NEST(readv, IOV_OUT, V, V, V),
	NEST(writev, IOV_IN, V, V, V),
	NEST(preadv, IOV_OUT, V, V, V, V, V),
	NEST(pwritev, IOV_IN, V, V, V, V, V),
	NEST(preadv2, IOV_OUT, V, V, V, V, V, V),
	NEST(pwritev2, IOV_IN, V, V, V, V, V, V),
	CALL(lseek, V, V, V),
	CALL(openat, V, STR, V, V),
	CALL(close, V),
	CALL(close_range, V, V, V),
	CALL(dup, V),
	CALL(dup3, V, V, V),
	CALL(fcntl, V, V, V),
	NEST(ioctl, IOCTL, V, V, V),
	CALL(getdents64, V, DATA_OUT(2), V),
	CALL(statx, V, STR, V, V, OUT(STATX)),
	CALL(readlinkat, V, STR, DATA_OUT(3), V),
	CALL(faccessat, V, STR, V),
	CALL(splice, V, IO(8), V, IO(8), V, V),
	CALL(tee, V, V, V, V),
	CALL(sendfile, V, V, IO(8), V),
	CALL(pipe2, OUT(8), V),
	CALL(fsync, V),
	/* Waiting. */
	CALL(ppoll, IOS(1, POLLFD), V, LEFT(TIMESPEC), SIGSET(4), V),
	NEST(pselect6, PSELECT, V, V, V, V, LEFT(TIMESPEC), V),
	CALL(epoll_create1, V),
	CALL(epoll_ctl, V, V, V, IN(EPOLL_EVENT)),
	CALL(epoll_pwait, V, EACH_OUT(2, EPOLL_EVENT), V, V, SIGSET(5), V),
	CALL(epoll_pwait2, V, EACH_OUT(2, EPOLL_EVENT), V, IN(TIMESPEC), SIGSET(5), V),
	CALL(eventfd2, V, V),
	CALL(timerfd_create, V, V),
	CALL(timerfd_settime, V, V, IN(ITIMERSPEC), OUT(ITIMERSPEC)),
	CALL(timerfd_gettime, V, OUT(ITIMERSPEC)),
	CALL(nanosleep, IN(TIMESPEC), LEFT(TIMESPEC)),
	CALL(clock_nanosleep, V, V, IN(TIMESPEC), LEFT(TIMESPEC)),
	CALL(clock_gettime, V, OUT(TIMESPEC)),
	CALL(clock_getres, V, OUT(TIMESPEC)),
	/* Processes. */
	CALL(getpid), CALL(getppid), CALL(gettid), CALL(getuid), CALL(geteuid),
	CALL(getgid), CALL(getegid), CALL(sched_yield),
	CALL(uname, OUT(UTSNAME)),
	CALL(sysinfo, OUT(SYSINFO)),
	CALL(prlimit64, V, V, IN(RLIMIT), OUT(RLIMIT)),
	CALL(capget, IO(CAP_HEADER), OUT(CAP_DATA)),
	CALL(capset, IN(CAP_HEADER), IN(CAP_DATA)),
	/* Namespaces, and the stack's own file tree. */
	CALL(setns, V, V),
	CALL(unshare, V),
	CALL(mkdirat, V, STR, V),
	CALL(unlinkat, V, STR, V),
	CALL(mknodat, V, STR, V, V),
	CALL(mount, STR, STR, STR, V, STR),
	CALL(umount2, STR, V),
	CALL(sethostname, INS(1, 1), V),
};
/* clang-format on */

/* The port's own: the inode of a placeholder. */
static const struct guise_shape inode = { GUISE_FLAT, { V, V } };

const struct guise_shape *guise_shape_of(uint64_t nr)
{
	if (nr < sizeof(shapes) / sizeof(shapes[0]) && shapes[nr].nest)
		return &shapes[nr];
	return nr == GUISE_NR_INODE ? &inode : NULL;
}

bool guise_shape_allows(uint64_t nr, const uint64_t arg[6])
{
	switch (nr) {
	case GUISE_NR_prlimit64:
		return !(int32_t)arg[0] && (uint32_t)arg[1] != RLIMIT_CPU &&
		       (uint32_t)arg[1] != RLIMIT_RTTIME;
	case GUISE_NR_fcntl:
		return (uint32_t)arg[1] != F_SETOWN && (uint32_t)arg[1] != F_SETOWN_EX &&
		       (uint32_t)arg[1] != F_SETSIG;
	case GUISE_NR_ioctl:
		return (uint32_t)arg[1] != FIOSETOWN && (uint32_t)arg[1] != SIOCSPGRP;
	default:
		return guise_shape_of(nr);
	}
}
