// SPDX-License-Identifier: GPL-2.0-only
/* Children, and the programs that they execute, have the sockets of their parent. */
#include "case.h"

#include <sched.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/wait.h>

static char buf[256];

/* How the child ended; the same number on both sides. */
static int ended(pid_t pid)
{
	int status;

	MUST(waitpid(pid, &status, 0) == pid);
	return status;
}

/* What comes until all copies of the other end are closed. */
static void show_all(int fd)
{
	size_t n = 0;
	ssize_t got;

	while ((got = recv(fd, buf + n, sizeof(buf) - 1 - n, 0)) > 0)
		n += (size_t)got;
	buf[n] = '\0';
	printf("%zu bytes, then %zd: %s\n", n, got, buf);
}

/* In a child, beside its parent: so it prints nothing. */
static int talk(void *data)
{
	int fd = *(int *)data;

	if (send(fd, "child", 5, 0) != 5)
		return 1;
	if (recv(fd, buf, 6, MSG_WAITALL) != 6)
		return 2;
	return buf[0];
}

/* The parent's half: it gives its own copy away, so that only the child's counts. */
static void converse(int fd[2], pid_t pid)
{
	MUST(pid > 0);
	SHOW(close(fd[1]));
	SHOW(recv(fd[0], buf, 5, MSG_WAITALL));
	SHOW(send(fd[0], "parent", 6, 0));
	SHOW(ended(pid));
	show_all(fd[0]);
	SHOW(close(fd[0]));
}

CASE(fork_forms)
{
	static char stack[65536] __attribute__((aligned(16)));
	int fd[2];
	pid_t pid;

	for (int form = 0; form < 5; form++) {
		printf("form %d\n", form);
		stream_pair(fd);
		if (form == 2) {
			pid = clone(talk, stack + sizeof(stack), SIGCHLD, &fd[1]);
		} else {
			pid = form == 0   ? fork()
			      : form == 1 ? _Fork()
			      : form == 3
				      ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)
				      : (pid_t)syscall(SYS_clone, SIGCHLD | CLONE_FS, 0, 0, 0, 0);
			if (!pid) {
				close(fd[0]);
				_exit(talk(&fd[1]));
			}
		}
		converse(fd, pid);
	}
}

CASE(fork_of_a_fork)
{
	int fd[2];
	pid_t pid;

	stream_pair(fd);
	pid = fork();
	if (!pid) {
		/* Like daemon(): the process in between does not wait. */
		pid = fork();
		if (!pid) {
			setsid();
			close(fd[0]);
			_exit(talk(&fd[1]));
		}
		_exit(pid < 0);
	}
	converse(fd, pid);
}

CASE(forked_daemon)
{
	int fd[2];
	pid_t pid;

	stream_pair(fd);
	pid = fork();
	if (!pid) {
		close(fd[0]);
		MUST(!daemon(1, 1));
		_exit(talk(&fd[1]));
	}
	SHOW(ended(pid));
	SHOW(close(fd[1]));
	SHOW(recv(fd[0], buf, 5, MSG_WAITALL));
	SHOW(send(fd[0], "parent", 6, 0));
	show_all(fd[0]);
}

/* O_NONBLOCK belongs to what both share, close-on-exec to each number. */
CASE(shared_with_a_child)
{
	int fd[2], twin, value = 0;
	socklen_t len = sizeof(value);
	pid_t pid;

	stream_pair(fd);
	twin = dup(fd[1]);
	pid = fork();
	if (!pid) {
		SHOW(fcntl(fd[0], F_SETFL, O_NONBLOCK));
		SHOW(fcntl(fd[0], F_SETFD, FD_CLOEXEC));
		SHOW(recv(fd[0], buf, 1, 0));
		value = 1;
		SHOW(setsockopt(fd[1], IPPROTO_TCP, 1, &value, sizeof(value)));
		SHOW(close(fd[1]));
		SHOW(send(twin, "t", 1, 0));
		SHOW(shutdown(twin, SHUT_WR));
		_exit(0);
	}
	SHOW(ended(pid));
	SHOW(fcntl(fd[0], F_GETFL));
	SHOW(fcntl(fd[0], F_GETFD));
	SHOW(getsockopt(fd[1], IPPROTO_TCP, 1, &value, &len));
	SHOW(value);
	SHOW(send(fd[1], "x", 1, MSG_NOSIGNAL));
	SHOW(readable(fd[0], 20000));
	show_all(fd[0]);
	/* What it makes later is its parent's no more than the other way round. */
	pid = fork();
	if (!pid) {
		SHOW(dup2(fd[1], 50));
		SHOW(socket(AF_INET, SOCK_DGRAM, 0) >= 0);
		_exit(0);
	}
	SHOW(ended(pid));
	SHOW(send(50, "x", 1, 0));
}

/* Workers accept from one listener; each connection is answered once. */
CASE(workers_share_a_listener)
{
	struct sockaddr_in addr;
	int listener = bound(SOCK_STREAM, &addr), fd, answered = 0;
	pid_t worker[4];

	for (int i = 0; i < 4; i++) {
		worker[i] = fork();
		while (!worker[i]) {
			fd = accept(listener, NULL, NULL);
			MUST(fd >= 0);
			if (recv(fd, buf, 1, 0) != 1 || *buf == 'q')
				_exit(0);
			send(fd, buf, 1, 0);
			close(fd);
		}
	}
	for (int i = 0; i < 40 + 4; i++) {
		char ask = i < 40 ? 'a' : 'q';

		fd = socket(AF_INET, SOCK_STREAM, 0);
		MUST(!connect(fd, (struct sockaddr *)&addr, sizeof(addr)));
		MUST(send(fd, &ask, 1, 0) == 1);
		answered += recv(fd, buf, 1, 0) == 1 && *buf == ask;
		close(fd);
	}
	SHOW(answered);
	for (int i = 0; i < 4; i++)
		SHOW(ended(worker[i]));
}

CASE(reuseport_group)
{
	struct sockaddr_in addr;
	int first = bound(SOCK_DGRAM, &addr), on = 1, got = 0, pipes[2];
	socklen_t len = sizeof(addr);
	pid_t worker[2];

	close(first);
	first = socket(AF_INET, SOCK_DGRAM, 0);
	addr = loopback(0);
	MUST(!setsockopt(first, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)));
	MUST(!bind(first, (struct sockaddr *)&addr, sizeof(addr)));
	MUST(!getsockname(first, (struct sockaddr *)&addr, &len));
	MUST(!pipe(pipes));
	for (int i = 0; i < 2; i++) {
		worker[i] = fork();
		if (!worker[i]) {
			int fd = socket(AF_INET, SOCK_DGRAM, 0);

			close(first);
			MUST(!setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)));
			MUST(!bind(fd, (struct sockaddr *)&addr, sizeof(addr)));
			MUST(write(pipes[1], "b", 1) == 1);
			while (recv(fd, buf, 1, 0) == 1 && *buf != 'q')
				MUST(write(pipes[1], "g", 1) == 1);
			_exit(0);
		}
	}
	MUST(read(pipes[0], buf, 1) == 1 && read(pipes[0], buf, 1) == 1);
	close(first);
	for (int i = 0; i < 40; i++) {
		int fd = socket(AF_INET, SOCK_DGRAM, 0);

		MUST(sendto(fd, "x", 1, 0, (struct sockaddr *)&addr, len) == 1);
		got += read(pipes[0], buf, 1) == 1 && *buf == 'g';
		close(fd);
	}
	SHOW(got);
	for (int i = 0; i < 2; i++)
		kill(worker[i], SIGKILL);
	for (int i = 0; i < 2; i++)
		SHOW(ended(worker[i]));
}

/* An epoll is one for both, as on a host. */
CASE(epoll_of_parent_and_child)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u64 = 7 };
	int fd[2], ep = epoll_create1(0);
	pid_t pid;

	stream_pair(fd);
	SHOW(epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &ev));
	pid = fork();
	if (!pid) {
		SHOW(epoll_wait(ep, &ev, 1, 0));
		SHOW(send(fd[1], "x", 1, 0));
		SHOW(epoll_wait(ep, &ev, 1, 20000));
		SHOW(ev.data.u64);
		SHOW(epoll_ctl(ep, EPOLL_CTL_DEL, fd[0], NULL));
		_exit(0);
	}
	SHOW(ended(pid));
	SHOW(epoll_wait(ep, &ev, 1, 0));
	SHOW(epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &ev));
	SHOW(epoll_wait(ep, &ev, 1, 20000));
}

/* ---- exec -------------------------------------------------------------------- */

static char *const cat[] = { "cat", NULL };
static char *const bare[] = { "LANG=C", NULL };

static void execute(int form)
{
	int fd;

	switch (form) {
	case 0:
		execve("/bin/cat", cat, environ);
		break;
	case 1:
		execve("/bin/cat", cat, bare);
		break;
	case 2:
		execv("/bin/cat", cat);
		break;
	case 3:
		execvp("cat", cat);
		break;
	case 4:
		execvpe("cat", cat, bare);
		break;
	case 5:
		execl("/bin/cat", "cat", NULL);
		break;
	case 6:
		execlp("cat", "cat", NULL);
		break;
	case 7:
		execle("/bin/cat", "cat", NULL, bare);
		break;
	case 8:
		fd = open("/bin/cat", O_RDONLY | O_CLOEXEC);
		fexecve(fd, cat, environ);
		break;
	case 9:
		execveat(AT_FDCWD, "/bin/cat", cat, bare, 0);
		break;
	case 10:
		syscall(SYS_execve, "/bin/cat", cat, bare);
		break;
	case 11:
		clearenv();
		execv("/nowhere/cat", cat);
		execv("/bin/cat", cat);
		break;
	case 12:
		execl("/bin/sh", "sh", "-c", "cat | cat; env -i /bin/cat; exec 3<&0; cat <&3",
		      NULL);
		break;
	default:
		_exit(125);
	}
	_exit(126);
}

static void through_cat(int fd[2], pid_t pid)
{
	SHOW(close(fd[1]));
	SHOW(send(fd[0], "there and back", 14, 0));
	SHOW(shutdown(fd[0], SHUT_WR));
	show_all(fd[0]);
	SHOW(ended(pid));
	SHOW(close(fd[0]));
}

CASE(exec_forms)
{
	int fd[2];
	pid_t pid;

	for (int form = 0; form < 13; form++) {
		printf("form %d\n", form);
		stream_pair(fd);
		pid = fork();
		if (!pid) {
			dup2(fd[1], 0);
			dup2(fd[1], 1);
			close_range(3, ~0u, 0);
			execute(form);
		}
		through_cat(fd, pid);
	}
}

/* The child of a vfork closes and moves what is its own; its parent's stays. */
CASE(vfork_and_exec)
{
	int fd[2], other[2];
	volatile int form;
	pid_t pid;

	for (form = 0; form < 13; form++) {
		printf("form %d\n", form);
		stream_pair(fd);
		stream_pair(other);
		pid = vfork();
		if (!pid) {
			dup2(fd[1], 0);
			dup2(fd[1], 1);
			close_range(3, ~0u, 0);
			if (form == 11) /* the environment would be the parent's, too */
				execle("/bin/cat", "cat", NULL, bare);
			execute(form);
		}
		through_cat(fd, pid);
		SHOW(send(other[0], "x", 1, 0));
		SHOW(recv(other[1], buf, 1, 0));
		SHOW(close(other[0]));
		SHOW(close(other[1]));
	}
}

static int begins_without_storage(void *argument)
{
	(void)argument;
	if (syscall(SYS_getppid) != getppid() || chdir("/"))
		_exit(3);
	_exit(7);
}

/* A child in this memory that has nothing but zeros for errno and its like. */
CASE(clone_without_storage)
{
	static _Alignas(64) char stack[65536], storage[8192];
	int fd[2];
	pid_t pid;

	stream_pair(fd);
	pid = clone(begins_without_storage, stack + sizeof(stack),
		    CLONE_VM | CLONE_VFORK | CLONE_SETTLS | SIGCHLD, NULL, NULL,
		    storage + sizeof(storage) / 2, NULL);
	SHOW(pid > 0);
	SHOW(ended(pid));
	SHOW(send(fd[0], "x", 1, 0));
	SHOW(recv(fd[1], buf, 1, 0));
}

static int talks_to_itself(void *argument)
{
	int fd[2], result;

	(void)argument;
	stream_pair(fd);
	result = send(fd[0], "x", 1, 0) == 1 && recv(fd[1], buf, 1, 0) == 1 ? 7 : 3;
	close(fd[0]);
	close(fd[1]);
	return result;
}

/* A child that has joined nothing when it makes the next. */
static int clones_again(void *argument)
{
	static _Alignas(64) char stack[65536];
	pid_t pid = clone(talks_to_itself, stack + sizeof(stack), SIGCHLD, argument);
	int status;

	return pid > 0 && waitpid(pid, &status, 0) == pid ? WEXITSTATUS(status) : 4;
}

/* Children made by clone, without sockets of their parent: they make their own. */
CASE(clone_without_sockets)
{
	static _Alignas(64) char stack[65536];

	SHOW(talks_to_itself(NULL));
	SHOW(ended(clone(talks_to_itself, stack + sizeof(stack), SIGCHLD, NULL)));
	SHOW(ended(clone(clones_again, stack + sizeof(stack), SIGCHLD, NULL)));
}

CASE(close_on_exec)
{
	struct sockaddr_in addr;
	int fd[2], third[2], kept, lost = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int listener = bound(SOCK_STREAM, &addr);
	pid_t pid;

	stream_pair(fd);
	stream_pair(third);
	kept = dup2(fd[1], 60);
	MUST(kept == 60 && dup2(lost, 61) == 61);
	MUST(!fcntl(61, F_SETFD, FD_CLOEXEC) && !fcntl(third[1], F_SETFD, FD_CLOEXEC));
	MUST(!fcntl(listener, F_SETFD, FD_CLOEXEC));
	pid = fork();
	if (!pid)
		execl("/bin/bash", "bash", "-c",
		      "echo kept >&60; echo lost >&61; exec 70>&60 60>&-; echo still >&70", NULL);
	SHOW(ended(pid));
	close(fd[1]);
	close(kept);
	show_all(fd[0]);
	/* This process itself goes on in another program: what it marked is closed. */
	pid = fork();
	if (!pid) {
		close(third[0]);
		execl("/bin/sleep", "sleep", "0", NULL);
	}
	close(third[1]);
	show_all(third[0]);
	SHOW(ended(pid));
}

/* ---- posix_spawn ---------------------------------------------------------------- */

CASE(spawn_passes)
{
	posix_spawn_file_actions_t actions;
	int fd[2], err;
	pid_t pid;

	for (int form = 0; form < 4; form++) {
		printf("form %d\n", form);
		stream_pair(fd);
		if (form > 1)
			MUST(!fcntl(fd[1], F_SETFD, FD_CLOEXEC));
		MUST(!posix_spawn_file_actions_init(&actions));
		SHOW(posix_spawn_file_actions_adddup2(&actions, fd[1], 0));
		SHOW(posix_spawn_file_actions_adddup2(&actions, fd[1], 1));
		if (form % 2)
			MUST(!posix_spawn_file_actions_addclosefrom_np(&actions, 3));
		else
			MUST(!posix_spawn_file_actions_addclose(&actions, fd[0]));
		err = form < 2 ? posix_spawn(&pid, "/bin/cat", &actions, NULL, cat, bare)
			       : posix_spawnp(&pid, "cat", &actions, NULL, cat, environ);
		SHOW(err);
		through_cat(fd, pid);
		posix_spawn_file_actions_destroy(&actions);
	}
	SHOW(posix_spawn(&pid, "/nowhere/cat", NULL, NULL, cat, environ));
}

/* ---- shells ------------------------------------------------------------------------ */

static void tell_action(int sig)
{
	struct sigaction act;

	MUST(!sigaction(sig, NULL, &act));
	printf("%s is %s\n", sigabbrev_np(sig),
	       act.sa_handler == SIG_DFL   ? "default"
	       : act.sa_handler == SIG_IGN ? "ignored"
					   : "handled");
}

static void nothing(int sig)
{
	(void)sig;
}

static void *in_a_shell(void *line)
{
	system(line);
	return NULL;
}

static bool gone(const char *path)
{
	return access(path, F_OK) != 0;
}

CASE(system_forms)
{
	char line[128], file[] = "/tmp/guise-shell-XXXXXX";
	struct timespec moment = { .tv_nsec = 2000000 };
	pthread_t thread;
	sigset_t mask;
	int fd[2];
	void *end;

	SHOW(system(NULL));
	SHOW(system("exit 3"));
	SHOW(system("kill -9 $$"));
	SHOW(system("nowhere 2>/dev/null"));
	SHOW(waitpid(-1, NULL, 0)); /* it has left none */
	/* The private socket is the shell's, too, whatever became of the environment. */
	stream_pair(fd);
	environ = (char **)bare;
	snprintf(line, sizeof(line), "echo from the shell >&%d; head -c 6 <&%d >&%d", fd[1], fd[1],
		 fd[1]);
	SHOW(send(fd[0], "parent", 6, 0));
	SHOW(system(line));
	SHOW(close(fd[1]));
	show_all(fd[0]);
	/* Signals: not the parent's while it waits, the shell's as they were. */
	signal(SIGINT, nothing);
	SHOW(system("kill -INT $PPID; kill -QUIT $PPID; exit 4"));
	tell_action(SIGINT);
	tell_action(SIGQUIT);
	SHOW(system("kill -INT $$"));
	signal(SIGQUIT, SIG_IGN);
	SHOW(system("kill -QUIT $$; exit 5"));
	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR1);
	MUST(!sigprocmask(SIG_BLOCK, &mask, NULL));
	SHOW(system("while read a b; do case $a in SigBlk:) echo $b; esac; done </proc/$$/status"));
	MUST(!sigprocmask(SIG_SETMASK, NULL, &mask));
	SHOW(sigismember(&mask, SIGCHLD));
	/* Cancelled: with its shell. */
	MUST(close(mkstemp(file)) == 0);
	snprintf(line, sizeof(line), "rm %s; exec sleep 50", file);
	MUST(!pthread_create(&thread, NULL, in_a_shell, line));
	while (!gone(file))
		nanosleep(&moment, NULL);
	SHOW(pthread_cancel(thread));
	MUST(!pthread_join(thread, &end));
	SHOW(end == PTHREAD_CANCELED);
	SHOW(waitpid(-1, NULL, 0));
	tell_action(SIGINT);
	/* Where there is no shell. */
	SHOW(chroot("/proc/self/fdinfo") ? 127 << 8 : system("exit 0"));
}

static void tell_line(FILE *f)
{
	char line[128];

	printf("read: %s", fgets(line, sizeof(line), f) ? line : "nothing\n");
}

CASE(popen_forms)
{
	int (*volatile also_closes)(FILE *) = fclose;
	FILE *f, *g, *h;
	char line[128];
	int fd[2];

	SHOW(popen("exit 0", "") != NULL);
	SHOW(popen("exit 0", "rw") != NULL);
	SHOW(popen("exit 0", "x") != NULL);
	MUST((f = popen("echo said; exit 3", "r")));
	tell_line(f);
	SHOW(fcntl(fileno(f), F_GETFD));
	SHOW(pclose(f));
	MUST((f = popen("read x; test \"$x\" = heard", "we")));
	SHOW(fcntl(fileno(f), F_GETFD));
	SHOW(fputs("heard\n", f));
	SHOW(pclose(f));
	MUST((f = popen("exit 7", "r")));
	SHOW(also_closes(f));
	SHOW(waitpid(-1, NULL, 0));
	/* A later child has not the streams of earlier ones: else this would not end. */
	MUST((f = popen("cat", "w")));
	MUST((g = popen("cat >/dev/null", "w")));
	snprintf(line, sizeof(line), "test -e /proc/self/fd/%d; echo $?", fileno(f));
	MUST((h = popen(line, "r")));
	tell_line(h);
	SHOW(pclose(f));
	SHOW(pclose(g));
	SHOW(pclose(h));
	/* Private sockets, and a scrubbed environment. */
	stream_pair(fd);
	environ = (char **)bare;
	snprintf(line, sizeof(line), "cat <&%d", fd[1]);
	MUST((f = popen(line, "r")));
	SHOW(close(fd[1]));
	SHOW(send(fd[0], "through it\n", 11, 0));
	SHOW(shutdown(fd[0], SHUT_WR));
	tell_line(f);
	SHOW(pclose(f));
	/* Without stdin and stdout of one's own. */
	close(0);
	MUST((f = popen("read x; exit $x", "w")));
	SHOW(fileno(f));
	SHOW(fputs("9\n", f));
	SHOW(pclose(f));
	MUST((f = popen("echo once more", "r")));
	SHOW(fileno(f));
	tell_line(f);
	SHOW(pclose(f));
}
