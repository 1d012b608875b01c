// SPDX-License-Identifier: GPL-2.0-only
/*
 * Children that are killed while they exchange data with their parent, which must not notice.
 * Usage: children ROUNDS
 *
 * It says how many were killed, and how many bytes an exchange of its own with itself took after
 * the last one.
 */
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BYTES 65536

static struct sockaddr_in there;

static void must(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "children: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void *echo(void *arg)
{
	int fd = (int)(long)arg;
	char *buf = malloc(BYTES);
	ssize_t n;

	while ((n = read(fd, buf, BYTES)) > 0)
		for (ssize_t done = 0, w; done < n; done += w) {
			w = send(fd, buf + done, (size_t)(n - done), MSG_NOSIGNAL);
			if (w <= 0)
				goto out;
		}
out:
	free(buf);
	close(fd);
	return NULL;
}

__attribute__((noreturn)) static void *serve(void *arg)
{
	int listener = (int)(long)arg;

	for (;;) {
		int fd = accept(listener, NULL, NULL);
		pthread_t thread;

		if (fd < 0)
			continue;
		must(!pthread_create(&thread, NULL, echo, (void *)(long)fd), "thread");
		pthread_detach(thread);
	}
}

static int connection(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	must(fd >= 0 && !connect(fd, (struct sockaddr *)&there, sizeof(there)), "connect");
	return fd;
}

/* Sends and receives until it is killed: bytes one at a time, or many. */
static void exchange(size_t bytes)
{
	char *buf = calloc(1, BYTES);
	int fd = connection();

	for (;;) {
		must(write(fd, buf, bytes) == (ssize_t)bytes, "write");
		for (size_t have = 0; have < bytes;) {
			ssize_t n = read(fd, buf, bytes - have);

			must(n > 0, "read");
			have += (size_t)n;
		}
	}
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 1, status, fd;
	socklen_t length = sizeof(there);
	pthread_t thread;
	char buf[64];
	ssize_t n;

	fd = socket(AF_INET, SOCK_STREAM, 0);
	there.sin_family = AF_INET;
	there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	must(!bind(fd, (struct sockaddr *)&there, sizeof(there)) && !listen(fd, 16) &&
		     !getsockname(fd, (struct sockaddr *)&there, &length),
	     "listen");
	must(!pthread_create(&thread, NULL, serve, (void *)(long)fd), "thread");
	srand((unsigned int)time(NULL));
	for (int i = 0; i < rounds; i++) {
		const struct timespec moment = { .tv_nsec = rand() % 15000000 };
		pid_t pid = fork();

		must(pid >= 0, "fork");
		if (!pid)
			exchange(i % 2 ? 1 : BYTES);
		nanosleep(&moment, NULL);
		kill(pid, SIGKILL);
		must(waitpid(pid, &status, 0) == pid && status == SIGKILL, "a child's end");
	}
	fd = connection();
	must(write(fd, "all is well", 11) == 11, "write");
	n = read(fd, buf, sizeof(buf));
	printf("killed %d, then %zd\n", rounds, n);
	return n == 11 ? 0 : 1;
}
