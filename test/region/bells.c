// SPDX-License-Identifier: GPL-2.0-only
/*
 * Many processes that each wait in ppoll for a connection of the stack and for a pipe on which
 * nothing comes.
 *
 *	bells N		N processes are made, each with a connection to the first one. At each line
 *			of standard input every one of them gets its first byte, one after the
 *			other, and sends it back. Prints how often they slept for that; "made"
 *			before the first line. For the byte "c" a process closes all descriptors
 *			that it knows nothing of, up to 4095
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define MOST 256

static int fd[MOST];
static pid_t pid[MOST];

static int made(int result, const char *what)
{
	if (result >= 0)
		return result;
	fprintf(stderr, "bells: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void echo(int connection)
{
	int silent[2];
	struct pollfd p[] = { { .fd = connection, .events = POLLIN }, { .events = POLLIN } };
	char byte;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	made(pipe(silent), "pipe");
	p[1].fd = silent[0];
	for (;;) {
		made(poll(p, 2, -1), "poll");
		if (made((int)read(connection, &byte, 1), "read") != 1)
			exit(0);
		for (int other = 3; byte == 'c' && other < 4096; other++)
			if (other != connection && other != silent[0] && other != silent[1])
				close(other);
		made((int)write(connection, &byte, 1), "write");
	}
}

static void make(int n)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t len = sizeof(at);
	int listening = made(socket(AF_INET, SOCK_STREAM, 0), "socket");

	inet_pton(AF_INET, "127.0.0.1", &at.sin_addr);
	made(bind(listening, (struct sockaddr *)&at, len), "bind");
	made(listen(listening, n), "listen");
	made(getsockname(listening, (struct sockaddr *)&at, &len), "getsockname");
	for (int i = 0; i < n; i++) {
		int connection = made(socket(AF_INET, SOCK_STREAM, 0), "socket");

		made(connect(connection, (struct sockaddr *)&at, len), "connect");
		fd[i] = made(accept(listening, NULL, NULL), "accept");
		pid[i] = made(fork(), "fork");
		if (!pid[i])
			echo(connection);
		close(connection);
	}
}

/* How often a process slept until now. */
static long slept(pid_t process)
{
	static const char word[] = "voluntary_ctxt_switches:";
	char name[64], line[256];
	long times = -1;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/status", process);
	f = fopen(name, "r");
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, word, strlen(word)))
			times = strtol(line + strlen(word), NULL, 10);
	if (f)
		fclose(f);
	return made((int)times, name);
}

static long all_slept(int n)
{
	long sum = 0;

	for (int i = 0; i < n; i++)
		sum += slept(pid[i]);
	return sum;
}

static void turn(int n, char byte)
{
	for (int i = 0; i < n; i++) {
		made((int)write(fd[i], &byte, 1), "write");
		if (made((int)read(fd[i], &byte, 1), "read") != 1)
			exit(1);
	}
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 0;
	char line[16];

	if (n < 1 || n > MOST) {
		fprintf(stderr, "bells: a number of processes is needed, 1 to %d\n", MOST);
		return 2;
	}
	make(n);
	printf("made\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		long before = all_slept(n);

		turn(n, line[0]);
		printf("%ld\n", all_slept(n) - before);
		fflush(stdout);
	}
	return 0;
}
