// SPDX-License-Identifier: GPL-2.0-only
/* Connects sockets, and says how often a library before libc's connect() has counted for those that
 * are the host's in any case. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

static int connect_to(int listener, int family)
{
	struct sockaddr_storage address = { 0 };
	socklen_t length = sizeof(address);

	if (listen(listener, 1) || getsockname(listener, (struct sockaddr *)&address, &length))
		return -1;
	return connect(socket(family, SOCK_STREAM, 0), (struct sockaddr *)&address, length);
}

int main(void)
{
	struct sockaddr_in inet = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct sockaddr_un any = { .sun_family = AF_UNIX };
	int *counted = dlsym(RTLD_DEFAULT, "counted"), before;
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	if (bind(listener, (struct sockaddr *)&inet, sizeof(inet)) || connect_to(listener, AF_INET))
		return 1;
	before = *counted;
	listener = socket(AF_UNIX, SOCK_STREAM, 0);
	if (bind(listener, (struct sockaddr *)&any, sizeof(any.sun_family)) ||
	    connect_to(listener, AF_UNIX))
		return 2;
	printf("connected, counted %d\n", *counted - before);
	return 0;
}
