// SPDX-License-Identifier: GPL-2.0-only
/* What is guise's own: the test says what these cases must print there. */
#include "case.h"

#include <aio.h>
#include <fcntl.h>
#include <netdb.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char buf[16];

/* Programs that close all they find do not close guise's own descriptors, nor find them. */
CASE(own_descriptors)
{
	int fd[2], own = 0, refused = 0, hidden = 0;
	struct statx stx;
	struct stat st;
	char path[64], text[64];

	for (int n = 3; n < 5000; n++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", n);
		if (readlink(path, text, sizeof(text)) < 0)
			continue;
		own++;
		refused += close(n) == -1 && errno == EBADF && dup2(0, n) == -1 && errno == EBADF;
		hidden += fcntl(n, F_GETFD) == -1 && errno == EBADF && dup(n) == -1 &&
			  errno == EBADF && dup2(n, 3) == -1 && errno == EBADF &&
			  fstat(n, &st) == -1 && errno == EBADF &&
			  fstatat(n, "", &st, AT_EMPTY_PATH) == -1 && errno == EBADF &&
			  statx(n, "", AT_EMPTY_PATH, STATX_INO, &stx) == -1 && errno == EBADF;
	}
	SHOW(own > 0 && own == refused && own == hidden);
	stream_pair(fd);
	SHOW(fd[0]);
	SHOW(send(fd[0], "x", 1, 0));
	SHOW(recv(fd[1], buf, 1, MSG_WAITALL));
}

static long protocol_of(int family, int type, int protocol)
{
	int fd = socket(family, type, protocol);
	socklen_t len = sizeof(protocol);

	MUST(fd >= 0);
	MUST(!getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &len));
	close(fd);
	return protocol;
}

/* A vfork child makes no private sockets: the table is its parent's, the numbers are not. */
CASE(vfork_makes_none)
{
	volatile int made = 0, error = 0;
	pid_t pid;
	int fd;

	SHOW(close(socket(AF_INET, SOCK_DGRAM, 0))); /* has joined */
	pid = vfork();                               /* NOLINT(bugprone-unsafe-functions) */
	if (!pid) {
		made = socket(AF_INET, SOCK_DGRAM, 0);
		error = errno;
		_exit(0);
	}
	SHOW(waitpid(pid, NULL, 0) == pid);
	SHOW(made == -1);
	SHOW(error == ENFILE);
	fd = open("/dev/null", O_WRONLY);
	SHOW(write(fd, "x", 1)); /* the number is the host's */
	SHOW(socket(AF_INET, SOCK_DGRAM, 0) > fd);
}

CASE(mptcp)
{
	SHOW(protocol_of(AF_INET, SOCK_STREAM, 0));
	SHOW(protocol_of(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK, IPPROTO_TCP));
	SHOW(protocol_of(AF_INET, SOCK_DGRAM, 0));
}

CASE(resolve)
{
	struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM }, *list;
	char text[64];

	SHOW(getaddrinfo("one.guise.test", NULL, &hints, &list));
	MUST(!getnameinfo(list->ai_addr, list->ai_addrlen, text, sizeof(text), NULL, 0,
			  NI_NUMERICHOST));
	puts(text);
	freeaddrinfo(list);
}

/* Its requests would not go through a hook: there is no io_uring. */
CASE(io_uring)
{
	char parameters[120] = { 0 };

	SHOW(syscall(425, 4, parameters));
}

/* What of them is on the host is said once; what has nothing to do with a network is not. */
CASE(namespaces)
{
	int before = open("/proc/self/ns/net", O_RDONLY);

	SHOW(unshare(CLONE_FS));
	SHOW(setns(before, CLONE_NEWUTS));
	fflush(stdout);
	SHOW(unshare(CLONE_NEWNET));
	fflush(stdout);
	SHOW(setns(before, 0));
	SHOW(setns(before, CLONE_NEWNET));
}

static int ends(void *nothing)
{
	(void)nothing;
	return 0;
}

static bool ended(long pid)
{
	int status;

	if (!pid)
		_exit(0);
	return pid > 0 && waitpid((pid_t)pid, &status, 0) == pid && !status;
}

/* A child that is cloned into one says so itself. One that is not, does not. */
CASE(cloned_into_namespaces)
{
	static uint64_t args[8] = { CLONE_NEWNET, [4] = SIGCHLD };
	static char memory[65536] __attribute__((aligned(16)));

	SHOW(ended(syscall(SYS_clone, CLONE_NEWUTS | SIGCHLD, 0, 0, 0, 0)));
	fflush(stdout);
	SHOW(ended(syscall(SYS_clone, CLONE_NEWNET | SIGCHLD, 0, 0, 0, 0)));
	fflush(stdout);
	SHOW(ended(syscall(SYS_clone3, args, sizeof(args))));
	fflush(stdout);
	SHOW(ended(clone(ends, memory + sizeof(memory), CLONE_NEWNET | SIGCHLD, NULL)));
}

/* A program that is not on the stack is sent a private socket: it holds one of
 * the host that was never connected, and nothing leaves through it. */
CASE(sent_to_a_stranger)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec iov = { buf, 1 };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	int way[2], fd[2], status;
	pid_t pid;

	if (getenv("STRANGER")) {
		MUST(recvmsg(atoi(getenv("STRANGER")), &m, 0) == 1);
		memcpy(fd, CMSG_DATA(c), sizeof(int));
		SHOW(send(fd[0], "x", 1, MSG_NOSIGNAL));
		SHOW(recv(fd[0], buf, 1, 0));
		return;
	}
	stream_pair(fd);
	MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, way));
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), fd, sizeof(int));
	SHOW(sendmsg(way[0], &m, 0));
	pid = fork();
	if (!pid) {
		snprintf(buf, sizeof(buf), "%d", way[1]);
		setenv("STRANGER", buf, 1);
		/* The same program, linked statically. */
		execl(getenv("STATIC"), "own", "sent_to_a_stranger", NULL);
		exit(9);
	}
	MUST(waitpid(pid, &status, 0) == pid);
	SHOW(status);
}

static bool stop;

static void *read_asynchronously(void *unused)
{
	int fd = open("/dev/zero", O_RDONLY);
	char c;

	(void)unused;
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		struct aiocb cb = { .aio_fildes = fd, .aio_buf = &c, .aio_nbytes = 1 };
		const struct aiocb *list[] = { &cb };

		MUST(!aio_read(&cb));
		while (aio_error(&cb) == EINPROGRESS)
			aio_suspend(list, 1, NULL);
		aio_return(&cb);
	}
	close(fd);
	return NULL;
}

static void read_one(void)
{
	struct aiocb cb = { .aio_fildes = open("/dev/zero", O_RDONLY), .aio_nbytes = 1 };
	const struct aiocb *list[] = { &cb };
	char c = 'x';

	cb.aio_buf = &c;
	alarm(20);
	_exit(aio_read(&cb) || aio_suspend(list, 1, NULL) || aio_return(&cb) != 1 || c);
}

/* In libc's own such a child hangs. */
CASE(forks_beside_asynchronous_reads)
{
	pthread_t thread[2];
	int bad = 0;

	for (int i = 0; i < 2; i++)
		MUST(!pthread_create(&thread[i], NULL, read_asynchronously, NULL));
	for (int i = 0; i < 50 && !bad; i++) {
		pid_t pid = fork();
		int status = 1;

		MUST(pid >= 0);
		if (!pid)
			read_one();
		MUST(waitpid(pid, &status, 0) == pid);
		bad += status != 0;
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	for (int i = 0; i < 2; i++)
		MUST(!pthread_join(thread[i], NULL));
	SHOW(bad);
}
