// SPDX-License-Identifier: GPL-2.0-only
/* Numbers: closing, duplicating, and what fcntl and ioctl say of them. */
#include "case.h"

#include <dirent.h>
#include <net/if.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char buf[100];

CASE(close_wakes_peer)
{
	int fd[2], udp[2];

	stream_pair(fd);
	SHOW(close(fd[0]));
	SHOW(recv(fd[1], buf, 10, 0));
	SHOW(send(fd[1], "x", 1, MSG_NOSIGNAL));
	SHOW(close(fd[1]));
	SHOW(close(fd[1]));
	SHOW(close(-1));
	datagram_pair(udp);
	SHOW(udp[0]);
	SHOW(close(udp[0]));
	SHOW(open("/dev/zero", O_RDONLY));
	SHOW(read(udp[0], buf, 5));
	SHOW(getsockname(udp[0], NULL, NULL));
	SHOW(close(udp[0]));
	SHOW(socket(AF_INET, SOCK_DGRAM, 0));
	SHOW(recv(udp[0], buf, 5, MSG_DONTWAIT));
}

CASE(close_ranges)
{
	int fd[2], host;

	stream_pair(fd);
	host = open("/dev/null", O_RDWR);
	SHOW(close_range(10, 5, 0));
	SHOW(close_range(3, 4, 0x100));
	SHOW(close_range((unsigned int)fd[1], (unsigned int)fd[1], 0));
	SHOW(recv(fd[0], buf, 10, 0));
	SHOW(fcntl(fd[1], F_GETFD));
	SHOW(fcntl(host, F_GETFD));
	SHOW(close_range(3, ~0U, CLOSE_RANGE_CLOEXEC));
	SHOW(fcntl(fd[0], F_GETFD));
	SHOW(fcntl(host, F_GETFD));
	SHOW(socket(AF_INET, SOCK_STREAM, 0));
	closefrom(3);
	SHOW(fcntl(fd[0], F_GETFD));
	SHOW(fcntl(host, F_GETFD));
	stream_pair(fd);
	SHOW(fd[0]);
	SHOW(send(fd[0], "still", 5, 0));
	SHOW(recv(fd[1], buf, 5, MSG_WAITALL));
	for (int i = 3; i < 2000; i++)
		close(i);
	stream_pair(fd);
	SHOW(fd[0]);
	SHOW(send(fd[0], "still", 5, 0));
	SHOW(recv(fd[1], buf, 5, MSG_WAITALL));
	SHOW(close_range(3, ~0U, 0));
	SHOW(socket(AF_INET, SOCK_STREAM, 0));
}

CASE(dup_forms)
{
	int fd[2], more[2], copy, host = open("/dev/zero", O_RDWR);

	stream_pair(fd);
	SHOW(copy = dup(fd[1]));
	SHOW(close(fd[1]));
	SHOW(send(copy, "by the copy", 11, 0));
	SHOW(recv(fd[0], buf, 11, MSG_WAITALL));
	SHOW(fcntl(copy, F_DUPFD, 40));
	SHOW(fcntl(40, F_GETFD));
	SHOW(fcntl(copy, F_DUPFD_CLOEXEC, 40));
	SHOW(fcntl(41, F_GETFD));
	SHOW(fcntl(copy, F_DUPFD, -1));
	SHOW(close(copy));
	SHOW(close(41));
	SHOW(send(40, "z", 1, 0));
	SHOW(recv(fd[0], buf, 1, MSG_WAITALL));
	/* From here on 40 is the last one: when it goes, the peer notices. */
	SHOW(dup2(host, 40));
	SHOW(recv(fd[0], buf, 1, 0));
	SHOW(read(40, buf, 5));
	stream_pair(more);
	SHOW(dup2(more[0], host));
	SHOW(close(more[0]));
	SHOW(send(host, "host no more", 12, 0));
	SHOW(recv(more[1], buf, 12, MSG_WAITALL));
	SHOW(dup3(more[1], fd[0], O_CLOEXEC));
	SHOW(fcntl(fd[0], F_GETFD));
	SHOW(send(host, "x", 1, 0));
	SHOW(recv(fd[0], buf, 1, MSG_WAITALL));
	SHOW(dup2(fd[0], fd[0]));
	SHOW(dup3(fd[0], fd[0], 0));
	SHOW(dup3(fd[0], 20, 0x4711));
	SHOW(dup2(99, fd[0]));
	SHOW(send(host, "y", 1, 0));
	SHOW(recv(fd[0], buf, 1, MSG_WAITALL));
	SHOW(dup2(fd[0], -1));
	SHOW(dup2(fd[0], 0x7ffffff));
	SHOW(dup(99));
	/* One file, so one state. */
	SHOW(fcntl(fd[0], F_SETFL, O_NONBLOCK));
	SHOW(recv(more[1], buf, 1, 0));
}

CASE(fcntl_commands)
{
	int fd[2];
	struct flock lock = { .l_type = F_WRLCK };

	stream_pair(fd);
	SHOW(fcntl(fd[0], F_GETFL));
	SHOW(fcntl(fd[0], F_SETFL, O_NONBLOCK));
	SHOW(fcntl(fd[0], F_GETFL));
	SHOW(recv(fd[0], buf, 1, 0));
	SHOW(fcntl(fd[0], F_SETFL, 0));
	SHOW(fcntl(fd[0], F_GETFL));
	SHOW(fcntl(fd[0], F_GETFD));
	SHOW(fcntl(fd[0], F_SETFD, FD_CLOEXEC));
	SHOW(fcntl(fd[0], F_GETFD));
	SHOW(fcntl(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), F_GETFD));
	SHOW(fcntl(fd[0], F_GETOWN));
	SHOW(fcntl(fd[0], 9999));
	SHOW(fcntl(4711, F_GETFL));
	SHOW(fcntl(fd[0], F_GETLEASE));
	SHOW(fcntl64(fd[0], F_GETFL));
	(void)lock;
}

static long is_up(int fd, const char *name)
{
	struct ifreq r = { 0 };

	strcpy(r.ifr_name, name);
	return ioctl(fd, SIOCGIFFLAGS, &r) ? -1 : !!(r.ifr_flags & IFF_UP);
}

CASE(ioctl_requests)
{
	int fd[2], on = 1, waiting = 0, local = socket(AF_UNIX, SOCK_DGRAM, 0);
	struct stat st;

	stream_pair(fd);
	MUST(send(fd[0], "12345", 5, 0) == 5);
	MUST(readable(fd[1], 5000));
	SHOW(ioctl(fd[1], FIONREAD, &waiting));
	SHOW(waiting);
	SHOW(ioctl(fd[1], FIONREAD, 8));
	SHOW(ioctl(fd[1], FIONBIO, &on));
	SHOW(fcntl(fd[1], F_GETFL));
	SHOW(ioctl(fd[1], FIOCLEX));
	SHOW(fcntl(fd[1], F_GETFD));
	SHOW(ioctl(fd[1], FIONCLEX));
	SHOW(fcntl(fd[1], F_GETFD));
	SHOW(ioctl(fd[1], 0xdead));
	SHOW(ioctl(fd[1], TIOCGWINSZ, buf));
	SHOW(is_up(fd[1], "lo"));
	SHOW(is_up(fd[1], "none0"));
	SHOW(is_up(local, "lo"));
	SHOW(is_up(local, "none0"));
	SHOW(is_up(STDOUT_FILENO, "lo"));
	SHOW(is_up(4711, "lo"));
	SHOW(fstat(fd[0], &st));
	SHOW(S_ISSOCK(st.st_mode));
	SHOW(isatty(fd[0]));
}

/* What a vfork child does to its descriptors, it does to its own. */
CASE(vfork_child)
{
	int fd[2], status;
	pid_t pid;

	stream_pair(fd);
	pid = vfork(); /* NOLINT(bugprone-unsafe-functions): that is what is shown */
	if (!pid) {
		close(fd[0]);
		dup2(fd[1], 20);
		fcntl(fd[1], F_SETFD, FD_CLOEXEC);
		signal(SIGUSR1, SIG_IGN);
		execl("/bin/true", "true", NULL);
		_exit(127);
	}
	SHOW(waitpid(pid, &status, 0) == pid);
	SHOW(status);
	SHOW(send(fd[0], "x", 1, 0));
	SHOW(recv(fd[1], buf, 1, MSG_WAITALL));
	SHOW(fcntl(fd[1], F_GETFD));
	SHOW(fcntl(20, F_GETFD));
}

/* A forked child has sockets of its own, and the parent keeps its own. */
CASE(fork_child)
{
	int fd[2], status;
	pid_t pid;

	stream_pair(fd);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		int own[2];

		SHOW(close(fd[0]));
		SHOW(close(fd[1]));
		stream_pair(own);
		SHOW(own[0]);
		SHOW(send(own[0], "child", 5, 0));
		SHOW(recv(own[1], buf, 5, MSG_WAITALL));
		exit(3);
	}
	SHOW(waitpid(pid, &status, 0) == pid);
	SHOW(WEXITSTATUS(status));
	SHOW(send(fd[0], "x", 1, 0));
	SHOW(recv(fd[1], buf, 1, MSG_WAITALL));
}

CASE(limits)
{
	struct sockaddr_in addr;
	struct pollfd p;
	int l, c, n = 0;

	l = bound(SOCK_STREAM | SOCK_NONBLOCK, &addr);
	c = socket(AF_INET, SOCK_STREAM, 0);
	MUST(!connect(c, (struct sockaddr *)&addr, sizeof(addr)));
	while (dup(STDERR_FILENO) >= 0)
		n++;
	SHOW(errno == EMFILE);
	SHOW(n > 100);
	SHOW(socket(AF_INET, SOCK_STREAM, 0));
	SHOW(accept(l, NULL, NULL));
	SHOW(dup(c));
	close(20);
	/* It stayed in the queue. */
	p = (struct pollfd){ .fd = l, .events = POLLIN };
	SHOW(poll(&p, 1, 5000));
	SHOW(accept(l, NULL, NULL));
}

/* Programs close what they find: all that they find is theirs. */
CASE(own_numbers)
{
	char records[4096];
	struct dirent64 *e64;
	struct dirent *e;
	long n;
	int fd;
	DIR *d;

	for (int round = 0; round < 2; round++) {
		MUST((d = opendir("/proc/self/fd")));
		while ((e = readdir(d)))
			if (*e->d_name != '.' && atoi(e->d_name) > dirfd(d))
				puts(e->d_name);
		rewinddir(d);
		while ((e64 = readdir64(d)))
			if (*e64->d_name != '.' && atoi(e64->d_name) > dirfd(d))
				puts(e64->d_name);
		closedir(d);
		MUST((fd = open("/proc/thread-self/fd", O_RDONLY | O_DIRECTORY)) >= 0);
		while ((n = round ? getdents64(fd, records, sizeof(records))
				  : syscall(SYS_getdents64, fd, records, sizeof(records))) > 0)
			for (long at = 0; at < n; at += e64->d_reclen) {
				e64 = (struct dirent64 *)(records + at);
				if (*e64->d_name != '.' && atoi(e64->d_name) > fd)
					puts(e64->d_name);
			}
		SHOW(n);
		SHOW(getdents64(fd, (void *)8, sizeof(records)));
		close(fd);
		MUST(socket(AF_INET, SOCK_STREAM, 0) >= 0);
		MUST(socket(AF_INET, SOCK_DGRAM, 0) >= 0);
	}
}

/* What spawn_actions starts: can it make sockets, and what was it left? */
CASE(spawned)
{
	int fd[2];

	stream_pair(fd);
	SHOW(send(fd[0], "x", 1, 0));
	SHOW(recv(fd[1], buf, 1, MSG_WAITALL));
	SHOW(fcntl(20, F_GETFD));
	SHOW(fcntl(21, F_GETFD));
}

CASE(spawn_actions)
{
	char *const arguments[] = { "descriptor", "spawned", NULL };
	posix_spawn_file_actions_t actions;
	int status, ticket = getenv("GUISE_STACK") ? atoi(getenv("GUISE_STACK")) : 900;
	pid_t pid;

	MUST(dup2(1, 20) == 20 && dup2(1, 21) == 21);
	for (int round = 0; round < 2; round++) {
		SHOW(posix_spawn_file_actions_init(&actions));
		SHOW(posix_spawn_file_actions_addclose(&actions, -1));
		SHOW(posix_spawn_file_actions_addclose(&actions, 20));
		SHOW(posix_spawn_file_actions_addclose(&actions, ticket));
		if (round)
			SHOW(posix_spawn_file_actions_addclosefrom_np(&actions, 3));
		MUST(!posix_spawn(&pid, "/proc/self/exe", &actions, NULL, arguments, environ));
		MUST(waitpid(pid, &status, 0) == pid);
		SHOW(status);
		SHOW(posix_spawn_file_actions_destroy(&actions));
	}
}
