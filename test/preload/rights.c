// SPDX-License-Identifier: GPL-2.0-only
/* Sockets that are sent to a process over AF_UNIX sockets, and what names them. */
#include "case.h"

#include <sys/stat.h>
#include <sys/wait.h>

static char buf[16];

union control {
	char bytes[CMSG_SPACE(2 * sizeof(int))];
	struct cmsghdr align;
};

static ssize_t send_fds(int to, const int *fds, int n)
{
	union control control = { 0 };
	struct iovec iov = { "m", 1 };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = CMSG_SPACE((size_t)n * sizeof(int)) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN((size_t)n * sizeof(int));
	memcpy(CMSG_DATA(c), fds, (size_t)n * sizeof(int));
	return sendmsg(to, &m, MSG_NOSIGNAL);
}

static int receive_fds(int from, int *fds, int flags)
{
	union control control;
	struct iovec iov = { buf, 1 };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	struct cmsghdr *c;

	if (recvmsg(from, &m, flags) < 0)
		return -1;
	c = CMSG_FIRSTHDR(&m);
	if (!c)
		return 0;
	memcpy(fds, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
	return (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
}

static ino_t inode(int fd)
{
	struct stat st;

	MUST(!fstat(fd, &st));
	return st.st_ino;
}

CASE(rights_in_one_process)
{
	int fd[2], way[2], got[2], pipes[2];

	stream_pair(fd);
	MUST(!pipe(pipes));
	SHOW(socketpair(AF_UNIX, SOCK_STREAM, 0, way));
	SHOW(send_fds(way[0], (int[]){ fd[0], pipes[1] }, 2));
	SHOW(close(fd[0]));
	SHOW(receive_fds(way[1], got, MSG_PEEK));
	SHOW(send(got[0], "p", 1, 0));
	SHOW(close(got[0]));
	SHOW(close(got[1]));
	SHOW(receive_fds(way[1], got, MSG_CMSG_CLOEXEC));
	SHOW(fcntl(got[0], F_GETFD));
	SHOW(send(got[0], "r", 1, 0));
	SHOW(write(got[1], "w", 1));
	SHOW(recv(fd[1], buf, 2, MSG_WAITALL));
	SHOW(send_fds(way[0], (int[]){ got[0], 4711 }, 2));
	SHOW(send_fds(4711, (int[]){ got[0] }, 1));
	SHOW(close(got[0]));
	SHOW(recv(fd[1], buf, 1, 0));
	/* What is in no message any more is no socket any more. */
	stream_pair(fd);
	SHOW(send_fds(way[0], (int[]){ fd[0] }, 1));
	SHOW(receive_fds(way[1], got, 0));
	SHOW(close(fd[0]));
	SHOW(shutdown(got[0], SHUT_WR));
	SHOW(recv(fd[1], buf, 1, 0));
}

/* From one process to another, which answers over it. */
CASE(rights_between_processes)
{
	int way[2], got[2], status, fd[2];
	pid_t pid;

	SHOW(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, way));
	pid = fork();
	if (!pid) {
		alarm(60);
		MUST(receive_fds(way[1], got, 0) == 1);
		MUST(recv(got[0], buf, 4, MSG_WAITALL) == 4);
		MUST(send(got[0], buf, 4, 0) == 4);
		/* And one the other way. */
		got[1] = socket(AF_INET, SOCK_DGRAM, 0);
		MUST(send_fds(way[1], &got[1], 1) == 1);
		exit(0);
	}
	stream_pair(fd);
	SHOW(send_fds(way[0], &fd[0], 1));
	SHOW(close(fd[0]));
	SHOW(send(fd[1], "ping", 4, 0));
	SHOW(recv(fd[1], buf, 4, MSG_WAITALL));
	SHOW(receive_fds(way[0], got, 0));
	MUST(waitpid(pid, &status, 0) == pid);
	SHOW(status);
	SHOW(recv(fd[1], buf, 1, 0)); /* the child's end is closed with it */
	status = 4;
	SHOW(getsockopt(got[0], SOL_SOCKET, SO_TYPE, buf, (socklen_t *)&status));
	SHOW(buf[0] == SOCK_DGRAM);
}

CASE(file_status)
{
	int fd[2], other = socket(AF_INET, SOCK_DGRAM, 0), twin, many[60];
	char path[64], text[2][64];
	struct statx sx;
	struct stat st;

	stream_pair(fd);
	MUST((twin = dup(fd[0])) >= 0);
	SHOW(fstat(fd[0], &st));
	SHOW(S_ISSOCK(st.st_mode));
	SHOW(st.st_mode & 0777);
	SHOW(st.st_size);
	SHOW(st.st_nlink);
	SHOW(st.st_uid == geteuid());
	SHOW(fstatat(fd[0], "", &st, AT_EMPTY_PATH));
	SHOW(S_ISSOCK(st.st_mode));
	SHOW(statx(fd[0], "", AT_EMPTY_PATH, STATX_INO, &sx));
	SHOW(sx.stx_ino == inode(fd[0]));
	SHOW(inode(fd[0]) == inode(twin));
	SHOW(inode(fd[0]) == inode(fd[1]));
	SHOW(inode(fd[0]) == inode(other));
	SHOW(isatty(fd[0]));
	SHOW(ttyname(fd[0]) != NULL);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd[0]);
	SHOW(readlink(path, text[0], sizeof(text[0])) > 9);
	SHOW(strncmp(text[0], "socket:[", 8));
	SHOW(strtoul(text[0] + 8, NULL, 10) == inode(fd[0]));
	SHOW(stat(path, &st));
	SHOW(S_ISSOCK(st.st_mode));
	SHOW(open(path, O_RDWR));
	SHOW(fchmod(fd[0], 0600));
	SHOW(ftruncate(fd[0], 0));
	SHOW(lseek(fd[0], 0, SEEK_CUR));
	SHOW(fsync(fd[0]));
	SHOW(fdatasync(fd[0]));
	SHOW(posix_fallocate(fd[0], 0, 10));
	SHOW(posix_fadvise(fd[0], 0, 0, POSIX_FADV_NORMAL));
	SHOW(fchdir(fd[0]));
	/* Many that are open at once, some in place of others that were closed. */
	for (int i = 0; i < 60; i++)
		MUST((many[i] = socket(AF_INET, i % 2 ? SOCK_DGRAM : SOCK_STREAM, 0)) >= 0);
	for (int i = 20; i < 60; i++)
		MUST(!close(many[i]));
	for (int i = 20; i < 60; i++)
		MUST((many[i] = socket(AF_INET, SOCK_STREAM, 0)) >= 0);
	for (int i = 0; i < 60; i++)
		for (int k = 0; k < i; k++)
			MUST(inode(many[i]) != inode(many[k]));
}
