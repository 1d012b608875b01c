// SPDX-License-Identifier: GPL-2.0-only
/*
 * Two processes, one of which sends to the other as fast as it can until a signal ends them. The
 * child begins when the holder traces it (until then a kill may cost the stack: docs/limitations.md).
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static char buf[1 << 16];

static void await_tracer(void)
{
	char text[4096];

	for (;;) {
		FILE *f = fopen("/proc/self/status", "re");
		size_t n = fread(text, 1, sizeof(text) - 1, f);
		const char *line;

		fclose(f);
		text[n] = '\0';
		line = strstr(text, "TracerPid:");
		if (!line || atoi(line + 10))
			return;
		usleep(1000);
	}
}

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
		await_tracer();
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
