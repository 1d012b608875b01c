// SPDX-License-Identifier: GPL-2.0-only
/*
 * sandbox ADDRESS PORT BYTES HOW: connects, gives up all system calls except read, write,
 * close, futex and exit, as strict as sshd's child is and more, and sends so many
 * bytes, which come back. A filter that is hit kills. Prints "ok". HOW says by
 * which call the filter is installed: prctl or seccomp.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static const unsigned int allowed[] = { SYS_read,  SYS_write,      SYS_close,
					SYS_futex, SYS_exit_group, SYS_rt_sigreturn };

#define N (sizeof(allowed) / sizeof(*allowed))

static void enter(const char *how)
{
	struct sock_filter f[2 * N + 2];
	struct sock_fprog program = { .filter = f };
	unsigned short n = 0;
	int failed;

	f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
					      offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < N; i++) {
		f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i], 0, 1);
		f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	}
	f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	program.len = n;
	failed = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (!failed && !strcmp(how, "seccomp"))
		failed = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
	else if (!failed)
		failed = prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
	if (failed) {
		perror("sandbox: filter");
		exit(1);
	}
}

/* What is sent is not waited for at once: so that both queues are long now and then. */
static int echo(int fd, long bytes)
{
	static char there[8192], back[8192];
	long sent = 0, got = 0;

	while (got < bytes) {
		long ahead = sent - got;

		if (sent < bytes && ahead < 65536) {
			size_t part = bytes - sent < (long)sizeof(there) ? (size_t)(bytes - sent)
									 : sizeof(there);
			ssize_t n;

			for (size_t i = 0; i < part; i++)
				there[i] = (char)((sent + (long)i) % 251);
			n = write(fd, there, part);
			if (n <= 0)
				return 1;
			sent += n;
		} else {
			ssize_t n = read(fd, back, sizeof(back));

			if (n <= 0)
				return 2;
			for (ssize_t i = 0; i < n; i++)
				if (back[i] != (char)((got + i) % 251))
					return 3;
			got += n;
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	static const char ok[] = "ok\n", bad[] = "bad\n";
	int fd, wrong;

	if (argc != 5) {
		fprintf(stderr, "usage: sandbox ADDRESS PORT BYTES prctl|seccomp\n");
		return 2;
	}
	to.sin_port = htons((unsigned short)atoi(argv[2]));
	inet_pton(AF_INET, argv[1], &to.sin_addr);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to))) {
		perror("sandbox: connect");
		return 1;
	}
	enter(argv[4]);
	wrong = echo(fd, atol(argv[3]));
	if (write(1, wrong ? bad : ok, strlen(wrong ? bad : ok)) < 0)
		wrong = 4;
	_exit(wrong);
}
