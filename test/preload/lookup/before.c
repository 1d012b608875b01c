// SPDX-License-Identifier: GPL-2.0-only
/* A library that stands before libc's connect(), and counts. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/socket.h>

int counted;

int connect(int fd, const struct sockaddr *address, socklen_t length)
{
	int (*next)(int, const struct sockaddr *, socklen_t), ret;
	static int calls;

#ifdef BY_HANDLE
	*(void **)&next = dlsym(dlopen("libc.so.6", RTLD_LAZY), "connect");
#else
	*(void **)&next = dlsym(RTLD_NEXT, "connect");
#endif
	if (calls++)
		return -1; /* it has been called by what it calls */
	counted++;
	ret = next(fd, address, length);
	calls--;
	return ret;
}
