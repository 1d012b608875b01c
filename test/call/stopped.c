// SPDX-License-Identifier: GPL-2.0-only
/*
 * A process that is stopped while it waits in a call, and goes on: the call waits on, except the
 * calls that signal(7) names, which end with EINTR.
 */
#include "call.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <sys/wait.h>

static const struct timespec moment = { .tv_nsec = 2000000 };
static const struct timeval long_time = { .tv_sec = 600 };
static volatile sig_atomic_t caught;
static int pair[2];

static void catch(int sig)
{
	(void)sig;
	caught++;
}

static void stop_and_go(pid_t pid, int sig, bool told)
{
	int status;

	MUST(!kill(pid, sig));
	MUST(waitpid(pid, &status, WUNTRACED) == pid);
	if (told)
		printf("stopped: %d, by %s\n", WIFSTOPPED(status), sigabbrev_np(WSTOPSIG(status)));
	MUST(!kill(pid, SIGCONT));
	MUST(waitpid(pid, &status, WCONTINUED) == pid);
	if (told)
		printf("continued: %d\n", WIFCONTINUED(status));
}

/* How often it went to sleep until now; 0: it does not sleep. */
static long sleeping(pid_t pid)
{
	char path[64], line[256];
	long times = 0;
	bool asleep = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	MUST(f);
	while (fgets(line, sizeof(line), f)) {
		asleep |= !strncmp(line, "State:\tS", 8);
		sscanf(line, "voluntary_ctxt_switches: %ld", &times);
	}
	fclose(f);
	return asleep ? times : 0;
}

/* It sleeps in its call: nothing wakes it for a while. */
static void child_sleeps(pid_t pid)
{
	long last = 0, times;

	for (int same = 0; same < 15; same = times && times == last ? same + 1 : 0, last = times) {
		nanosleep(&moment, NULL);
		times = sleeping(pid);
	}
}

CASE(waits_after_a_stop)
{
	const struct sigaction act = { .sa_handler = catch, .sa_flags = SA_RESTART };
	int status, ready[2];
	char c;
	pid_t pid;

	stream_pair(pair);
	MUST(!pipe(ready));
	fflush(stdout);
	pid = fork();
	if (!pid) {
		setpgid(0, 0);
		MUST(!sigaction(SIGCONT, &act, NULL));
		MUST(write(ready[1], "r", 1) == 1);
		SHOW(recv(pair[0], &c, 1, 0));
		SHOW(caught);
		signal(SIGCONT, SIG_DFL);
		MUST(write(ready[1], "r", 1) == 1);
		SHOW(poll(&(struct pollfd){ pair[0], POLLIN, 0 }, 1, -1));
		SHOW(recv(pair[0], &c, 1, 0));
		_exit(0);
	}
	MUST(read(ready[0], &c, 1) == 1);
	child_sleeps(pid);
	stop_and_go(pid, SIGSTOP, true);
	child_sleeps(pid);
	stop_and_go(pid, SIGTSTP, true);
	child_sleeps(pid);
	MUST(send(pair[1], "x", 1, 0) == 1);
	MUST(read(ready[0], &c, 1) == 1);
	child_sleeps(pid);
	stop_and_go(pid, SIGSTOP, true);
	child_sleeps(pid);
	MUST(send(pair[1], "x", 1, 0) == 1);
	MUST(waitpid(pid, &status, 0) == pid);
	SHOW(status);
}

/* ---- calls that end by it ------------------------------------------------------------------ */

static int queue; /* an epoll of pair[0] */

static int listener(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	MUST(fd >= 0 && !bind(fd, (struct sockaddr *)&any, sizeof(any)) && !listen(fd, 1));
	MUST(!setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &long_time, sizeof(long_time)));
	return fd;
}

/* One after the other; before each the parent hears that it begins. */
static void wait_in_each(int tell, int listening)
{
	const struct timespec timeout = { .tv_sec = 600 };
	struct epoll_event event;
	char c[8] = "";
	struct iovec iov = { c, sizeof(c) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct mmsghdr mm = { .msg_hdr = m };
	fd_set set;

#define ENDS(call)                              \
	do {                                    \
		MUST(write(tell, "e", 1) == 1); \
		SHOW(call);                     \
	} while (0)
#define WAITS_ON(call)                          \
	do {                                    \
		MUST(write(tell, "w", 1) == 1); \
		SHOW(call);                     \
		SHOW(recv(pair[0], c, 1, 0));   \
	} while (0)

	ENDS(recv(pair[0], c, 1, 0));
	ENDS(recvfrom(pair[0], c, 1, MSG_PEEK, NULL, NULL));
	ENDS(recvmsg(pair[0], &m, 0));
	ENDS(recvmmsg(pair[0], &mm, 1, 0, NULL));
	ENDS(read(pair[0], c, 1));
	ENDS(readv(pair[0], &iov, 1));
	ENDS(accept(listening, NULL, NULL));
	ENDS(send(pair[0], c, 1, 0));
	ENDS(write(pair[0], c, 1));
	ENDS(sendmsg(pair[0], &m, 0));
	ENDS(epoll_wait(queue, &event, 1, -1));
	ENDS(epoll_wait(queue, &event, 1, 600000));
	ENDS(epoll_pwait(queue, &event, 1, -1, NULL));
	FD_ZERO(&set);
	FD_SET(pair[0], &set);
	WAITS_ON(poll(&(struct pollfd){ pair[0], POLLIN, 0 }, 1, 600000));
	WAITS_ON(ppoll(&(struct pollfd){ pair[0], POLLIN, 0 }, 1, &timeout, NULL));
	WAITS_ON(select(pair[0] + 1, &set, NULL, NULL, &(struct timeval){ .tv_sec = 600 }));
	WAITS_ON(pselect(pair[0] + 1, &set, NULL, NULL, &timeout, NULL));
	MUST(write(tell, ".", 1) == 1);
}

CASE(timed_waits_end_by_a_stop)
{
	int status, ready[2], listening;
	struct epoll_event event = { .events = EPOLLIN };
	char c;
	pid_t pid;

	small_pair(pair);
	MUST(!pipe(ready));
	listening = listener();
	queue = epoll_create1(0);
	MUST(queue >= 0 && !epoll_ctl(queue, EPOLL_CTL_ADD, pair[0], &event));
	MUST(!setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &long_time, sizeof(long_time)));
	MUST(!setsockopt(pair[0], SOL_SOCKET, SO_SNDTIMEO, &long_time, sizeof(long_time)));
	fill(pair[0]);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		setpgid(0, 0);
		wait_in_each(ready[1], listening);
		fflush(stdout);
		_exit(0);
	}
	while (read(ready[0], &c, 1) == 1 && c != '.') {
		child_sleeps(pid);
		stop_and_go(pid, SIGSTOP, false);
		if (c == 'w') {
			child_sleeps(pid);
			MUST(send(pair[1], "x", 1, 0) == 1);
		}
	}
	MUST(waitpid(pid, &status, 0) == pid);
	SHOW(status);
}
