/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * System calls of the host, straight to its kernel. libguise must not use
 * libc's own read, close, poll, ...: in a preloaded program those names are
 * guise's hooks. All return -errno and leave errno alone.
 */
#ifndef GUISE_HOST_SYS_H
#define GUISE_HOST_SYS_H

#include "isa/isa.h"

#include <sys/syscall.h>

/* host_sys(SYS_read, fd, buf, n): 0 to 6 arguments, each cast to long. */
#define HOST_SYS_N(_0, _1, _2, _3, _4, _5, _6, N, ...) N
#define HOST_SYS_0(nr)                                 host_sys6(nr, 0, 0, 0, 0, 0, 0)
#define HOST_SYS_1(nr, a)                              host_sys6(nr, (long)(a), 0, 0, 0, 0, 0)
#define HOST_SYS_2(nr, a, b)       host_sys6(nr, (long)(a), (long)(b), 0, 0, 0, 0)
#define HOST_SYS_3(nr, a, b, c)    host_sys6(nr, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define HOST_SYS_4(nr, a, b, c, d) host_sys6(nr, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define HOST_SYS_5(nr, a, b, c, d, e) \
	host_sys6(nr, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), 0)
#define HOST_SYS_6(nr, a, b, c, d, e, f) \
	host_sys6(nr, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
#define host_sys(...)                                                                       \
	HOST_SYS_N(__VA_ARGS__, HOST_SYS_6, HOST_SYS_5, HOST_SYS_4, HOST_SYS_3, HOST_SYS_2, \
		   HOST_SYS_1, HOST_SYS_0)(__VA_ARGS__)

#endif
