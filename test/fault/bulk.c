// SPDX-License-Identifier: GPL-2.0-only
/* Two processes, one of which sends to the other as fast as it can until a signal ends them. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

static char buf[1 << 16];

int main(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int listener = socket(AF_INET, SOCK_STREAM, 0), fd;
	socklen_t len = sizeof(addr);
	long n = 0;

	if (bind(listener, (void *)&addr, len) || listen(listener, 1) ||
	    getsockname(listener, (void *)&addr, &len))
		return 2;
	switch (fork()) {
	case -1:
		return 2;
	case 0:
		fd = accept(listener, NULL, NULL);
		while (read(fd, buf, sizeof(buf)) > 0)
			;
		_exit(3);
	}
	fd = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(fd, (void *)&addr, sizeof(addr)))
		return 2;
	while (write(fd, buf, sizeof(buf)) > 0)
		if (n++ == 10)
			write(STDOUT_FILENO, "ready\n", 6);
	return 3;
}
