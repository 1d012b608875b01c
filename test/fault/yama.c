// SPDX-License-Identifier: GPL-2.0-only
/*
 * yama COMMAND...: runs a program, and all that it starts, as on a host with
 * kernel.yama.ptrace_scope=1, whether that host has Yama or not, for root too.
 *
 * A process may be traced (PTRACE_SEIZE, PTRACE_ATTACH) by its ancestors, and by
 * the one process that it has named by prctl(PR_SET_PTRACER), which then
 * succeeds. All others get EPERM. What the host itself forbids stays forbidden.
 *
 * How: a seccomp filter hands these calls to this process (it ends when no process is left that has
 * the filter, with the status of COMMAND). So no other filter below can hand calls to a
 * process. Unlike Yama's, a permission lasts until the process
 * has ended and this one is asked for its number again; names are not
 * translated between PID namespaces.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_NAMED 4096

/* Which process each process has named as its tracer. The last name counts. */
static struct {
	pid_t who, tracer;
} named[MAX_NAMED];
static unsigned int n_named;

static void die(const char *what)
{
	fprintf(stderr, "yama: %s: %s\n", what, strerror(errno));
	exit(125);
}

/* A number of /proc/PID/status; 0 if there is no such process. */
static pid_t status(pid_t pid, const char *key)
{
	char path[32], line[256];
	size_t len = strlen(key);
	pid_t value = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	while (f && !value && fgets(line, sizeof(line), f))
		if (!strncmp(line, key, len) && line[len] == ':')
			value = (pid_t)atoi(line + len + 1);
	if (f)
		fclose(f);
	return value;
}

static void name(pid_t who, pid_t tracer)
{
	unsigned int i = 0;

	while (i < n_named && named[i].who != who)
		i++;
	if (i == MAX_NAMED) {
		errno = ENOSPC;
		die("too many processes");
	}
	named[i].who = who;
	named[i].tracer = tracer;
	if (i == n_named)
		n_named++;
}

static bool may_trace(pid_t tracer, pid_t pid)
{
	for (unsigned int i = 0; i < n_named; i++)
		if (named[i].who == pid && named[i].tracer && named[i].tracer == tracer)
			return true;
	for (pid_t above = pid; above > 1; above = status(above, "PPid"))
		if (above == tracer)
			return true;
	return false;
}

/* Answers one call. A process that was killed meanwhile needs no answer. */
static void answer(int listener)
{
	struct seccomp_notif asked;
	struct seccomp_notif_resp reply;
	pid_t who;

	memset(&asked, 0, sizeof(asked));
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked))
		return;
	memset(&reply, 0, sizeof(reply));
	reply.id = asked.id;
	who = status((pid_t)asked.pid, "Tgid");
	if (asked.data.nr == SYS_prctl)
		name(who, (pid_t)asked.data.args[1]);
	else if (may_trace(who, status((pid_t)asked.data.args[1], "Tgid")))
		reply.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	else
		reply.error = -EPERM;
	ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &reply);
}

/* The filter is of the process that calls this; its listener comes out of the other end. */
static void install(int end)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ptrace, 2, 5),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PR_SET_PTRACER, 2, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PTRACE_SEIZE, 0, 2),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PTRACE_ATTACH, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec byte = { "", 1 };
	struct msghdr message = { .msg_iov = &byte,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };
	int listener;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		die("no_new_privs");
	listener = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
				SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
	if (listener < 0)
		die("this host does not take the filter");
	memset(&control, 0, sizeof(control));
	control.align.cmsg_level = SOL_SOCKET;
	control.align.cmsg_type = SCM_RIGHTS;
	control.align.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.align), &listener, sizeof(int));
	if (sendmsg(end, &message, 0) != 1)
		die("the filter's listener");
	close(listener);
}

static int receive(int end)
{
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	char c;
	struct iovec byte = { &c, 1 };
	struct msghdr message = { .msg_iov = &byte,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };
	int listener;

	if (recvmsg(end, &message, MSG_CMSG_CLOEXEC) != 1 || !CMSG_FIRSTHDR(&message))
		exit(125); /* the child has said why */
	memcpy(&listener, CMSG_DATA(&control.align), sizeof(int));
	return listener;
}

int main(int argc, char **argv)
{
	int end[2], ended = 0;
	struct pollfd asked;
	pid_t child;

	if (argc < 2) {
		fprintf(stderr, "usage: yama COMMAND...\n");
		return 2;
	}
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, end))
		die("socketpair");
	child = fork();
	if (child < 0)
		die("fork");
	if (!child) {
		install(end[1]);
		execvp(argv[1], argv + 1);
		die(argv[1]);
	}
	close(end[1]);
	signal(SIGINT, SIG_IGN); /* of a terminal: they end by it, and then this */
	asked = (struct pollfd){ .fd = receive(end[0]), .events = POLLIN };
	while (poll(&asked, 1, -1) < 0 || !(asked.revents & POLLHUP))
		if (asked.revents & POLLIN)
			answer(asked.fd);
	waitpid(child, &ended, 0);
	return WIFSIGNALED(ended) ? 128 + WTERMSIG(ended) : WEXITSTATUS(ended);
}
