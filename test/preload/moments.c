// SPDX-License-Identifier: GPL-2.0-only
/*
 * A handler of a signal, a fork and another thread, at each moment of a call: a timer expires at
 * each microsecond of the first 300, and its handler makes the call that its thread is just
 * in. None may wait for a lock that its own thread has, none uses the heap, and no child waits for
 * a thread that it does not have.
 */
#include "case.h"

#include <spawn.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define MOMENTS  300 /* microseconds */
#define MANY     100 /* descriptors, for which a wait needs memory */
#define PATIENT  20  /* seconds for a child that should take a moment */
#define CHILDREN 200

static volatile sig_atomic_t struck, wrong;
static timer_t timer;

static void take_aim(void (*handler)(int))
{
	struct sigaction act = { .sa_handler = handler, .sa_flags = SA_RESTART };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };

	MUST(!sigaction(SIGUSR1, &act, NULL));
	MUST(!timer_create(CLOCK_MONOTONIC, &event, &timer));
}

/* It expires after so many microseconds. */
static void strike_after(long us)
{
	struct itimerspec t = { .it_value.tv_nsec = us * 1000 + 1 };

	struck = 0;
	MUST(!timer_settime(timer, 0, &t, NULL));
}

/* A child's status, or -1 for one that hangs. */
static int await_child(pid_t pid)
{
	const struct timespec moment = { .tv_nsec = 100000 };
	double deadline = now() + PATIENT;
	int status;

	while (!waitpid(pid, &status, WNOHANG)) {
		if (now() > deadline) {
			kill(pid, SIGKILL);
			waitpid(pid, &status, 0);
			return -1;
		}
		nanosleep(&moment, NULL);
	}
	return status;
}

/* Calls it in a child for each moment: how many did not end well. */
static int in_children(void (*child)(long us))
{
	int bad = 0;

	fflush(stdout);
	for (long us = 0; us <= MOMENTS && !bad; us++) {
		pid_t pid = fork();

		MUST(pid >= 0);
		if (!pid) {
			child(us);
			_exit(0);
		}
		bad += await_child(pid) != 0;
	}
	return bad;
}

/* ---- a handler that makes the call which it interrupts ------------------------ */

static void make_socket(int sig)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	wrong |= sig && fd < 0;
	close(fd);
	struck = 1;
}

static void first_socket(long us)
{
	int fd;

	take_aim(make_socket);
	strike_after(us);
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	while (!struck)
		sched_yield();
	_exit(fd < 0 || wrong);
}

/* The child of a process without sockets joins the stack with its first. */
CASE(first_sockets)
{
	SHOW(in_children(first_socket));
}

static void first_in_malloc(long us)
{
	take_aim(make_socket);
	strike_after(us);
	while (!struck) {
		void *volatile a = malloc(100000), *volatile b = malloc(40);

		free(a);
		free(b);
	}
	_exit(wrong);
}

CASE(first_sockets_inside_malloc)
{
	SHOW(in_children(first_in_malloc));
}

static void act(int sig)
{
	struct sigaction ignored = { .sa_handler = SIG_IGN }, old;

	(void)sig;
	wrong |= sigaction(SIGUSR2, &ignored, &old) || signal(SIGURG, SIG_DFL) == SIG_ERR;
	struck = 1;
}

CASE(actions_in_actions)
{
	take_aim(act);
	for (long us = 0; us <= MOMENTS; us++) {
		strike_after(us);
		while (!struck) {
			struct sigaction old;

			MUST(!sigaction(SIGUSR2, NULL, &old));
			MUST(signal(SIGURG, SIG_IGN) != SIG_ERR);
		}
	}
	SHOW(wrong);
}

static struct pollfd many[MANY];
static int half[2]; /* of these one is private, and one the host's */

static void prepare_many(void)
{
	int udp[2];

	datagram_pair(udp);
	MUST(!pipe(half));
	for (int i = 0; i < MANY; i++)
		many[i] = (struct pollfd){ .fd = i % 2 ? udp[0] : half[0], .events = POLLIN };
	half[0] = udp[1];
}

static void poll_many(int sig)
{
	struct pollfd copy[MANY];
	const struct timespec at_once = { .tv_nsec = 1000 };

	(void)sig;
	memcpy(copy, many, sizeof(copy));
	wrong |= poll(copy, MANY, 0) != 0;
	wrong |= ppoll(copy, MANY, &at_once, NULL) != 0;
	struck = 1;
}

CASE(polls_inside_malloc)
{
	prepare_many();
	take_aim(poll_many);
	for (int times = 0; times < 10; times++)
		for (long us = 0; us <= MOMENTS; us++) {
			strike_after(us);
			while (!struck) {
				void *volatile a = malloc(100000), *volatile b = malloc(40);

				free(a);
				free(b);
			}
		}
	SHOW(wrong);
}

CASE(polls_in_polls)
{
	prepare_many();
	take_aim(poll_many);
	for (long us = 0; us <= MOMENTS; us++) {
		strike_after(us);
		while (!struck) {
			struct pollfd copy[MANY];
			int n;

			memcpy(copy, many, sizeof(copy));
			n = poll(copy, MANY, 0);
			MUST(n == 0 || (n < 0 && errno == EINTR));
		}
	}
	SHOW(wrong);
}

/* ---- all of them at once -------------------------------------------------------- */

static void use_everything(void)
{
	struct sigaction old;
	int fd[2], ep;
	char c = 'x';

	wrong |= sigaction(SIGUSR2, NULL, &old) != 0;
	fd[0] = socket(AF_INET, SOCK_DGRAM, 0);
	fd[1] = dup(fd[0]);
	ep = epoll_create1(0);
	wrong |= fd[0] < 0 || fd[1] < 0 || ep < 0;
	wrong |= epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &(struct epoll_event){ 0 }) != 0;
	wrong |= epoll_wait(ep, &(struct epoll_event){ 0 }, 1, 0) > 0;
	wrong |= send(half[0], &c, 1, MSG_DONTWAIT) != 1;
	wrong |= recv(many[1].fd, &c, 1, MSG_DONTWAIT) > 1;
	wrong |= close(ep) || close(fd[1]) || close(fd[0]);
}

static void use_everything_again(int sig)
{
	int saved = errno;

	(void)sig;
	use_everything();
	errno = saved;
	struck = 1;
}

CASE(everything_in_everything)
{
	prepare_many();
	take_aim(use_everything_again);
	for (long us = 0; us <= MOMENTS; us++) {
		strike_after(us);
		while (!struck)
			use_everything();
	}
	SHOW(wrong);
}

static void fork_inside(int sig)
{
	pid_t pid = sig == SIGUSR1 ? fork() : _Fork();

	if (!pid) {
		int fd = socket(AF_INET, SOCK_DGRAM, 0);

		_exit(fd < 0 || sigaction(SIGUSR2, NULL, NULL));
	}
	wrong |= pid < 0 || await_child(pid) != 0;
	struck = 1;
}

CASE(forks_in_everything)
{
	prepare_many();
	take_aim(fork_inside);
	for (long us = 0; us <= MOMENTS; us += 3) {
		strike_after(us);
		while (!struck)
			use_everything();
	}
	SHOW(wrong);
}

/* ---- a fork beside another thread ------------------------------------------------ */

static bool stop;

static void beside(void (*work)(void *), void (*child)(void), int children)
{
	struct worker w[4];
	int bad = 0;

	__atomic_store_n(&stop, false, __ATOMIC_RELEASE);
	for (size_t i = 0; i < 4; i++) {
		w[i] = (struct worker){ .work = work };
		MUST(!pthread_create(&w[i].thread, NULL, worker_begins, &w[i]));
	}
	fflush(stdout);
	for (int i = 0; i < children && !bad; i++) {
		pid_t pid = fork();

		MUST(pid >= 0);
		if (!pid) {
			child();
			_exit(0);
		}
		bad += await_child(pid) != 0;
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	for (size_t i = 0; i < 4; i++)
		join(&w[i]);
	SHOW(bad);
}

static void set_actions(void *unused)
{
	(void)unused;
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE))
		signal(SIGUSR2, SIG_IGN);
}

static void set_action(void)
{
	struct sigaction act = { .sa_handler = SIG_DFL };

	_exit(sigaction(SIGUSR2, &act, NULL));
}

CASE(forks_beside_actions)
{
	beside(set_actions, set_action, CHILDREN);
}

static int spawn_true(void)
{
	char *const argv[] = { "true", NULL };
	int status = 1;
	pid_t pid;

	if (posix_spawnp(&pid, "true", NULL, NULL, argv, environ))
		return 1;
	return waitpid(pid, &status, 0) == pid ? status : 1;
}

static void spawn_many(void *unused)
{
	(void)unused;
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE))
		spawn_true();
}

static void spawn_one(void)
{
	_exit(spawn_true());
}

/* With a socket that passes to the program, so that there is something to guard. */
CASE(forks_beside_spawns)
{
	MUST(socket(AF_INET, SOCK_DGRAM, 0) >= 0);
	beside(spawn_many, spawn_one, 30);
}

/* What a program that is spawned finds blocked is what its parent had blocked. */
CASE(masks_of_spawned_programs)
{
	char *const argv[] = { "grep", "SigBlk", "/proc/self/status", NULL };
	posix_spawnattr_t attributes;
	sigset_t set;
	pid_t pid;

	MUST(socket(AF_INET, SOCK_DGRAM, 0) >= 0);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	MUST(!sigprocmask(SIG_BLOCK, &set, NULL));
	MUST(!posix_spawnp(&pid, "grep", NULL, NULL, argv, environ));
	SHOW(await_child(pid));
	MUST(!posix_spawnattr_init(&attributes));
	MUST(!posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP));
	MUST(!posix_spawnp(&pid, "grep", NULL, &attributes, argv, environ));
	SHOW(await_child(pid));
	sigaddset(&set, SIGURG);
	MUST(!posix_spawnattr_setsigmask(&attributes, &set));
	MUST(!posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK));
	MUST(!posix_spawnp(&pid, "grep", NULL, &attributes, argv, environ));
	SHOW(await_child(pid));
}

/* ---- the heap ---------------------------------------------------------------------- */

/* Where the linker finds these, all of the process use them. */
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t n);
void __libc_free(void *memory);

static __thread int watched;
static int touched;

static void touch(void)
{
	if (watched)
		touched++;
}

void *malloc(size_t n)
{
	touch();
	return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
	touch();
	return __libc_calloc(n, size);
}

void *realloc(void *old, size_t n)
{
	touch();
	return __libc_realloc(old, n);
}

void free(void *memory)
{
	touch();
	__libc_free(memory);
}

/* Says so when a call touches the heap. */
#define TRY(call)                                    \
	do {                                         \
		long try_;                           \
		watched = 1;                         \
		try_ = (long)(call);                 \
		watched = 0;                         \
		if (touched)                         \
			printf("heap: %s\n", #call); \
		touched = 0;                         \
		(void)try_;                          \
	} while (0)

static void wait_for_many(void)
{
	const struct timespec moment = { .tv_nsec = 1000 };
	struct timeval tv = { .tv_usec = 1 };
	struct pollfd copy[MANY];
	fd_set set, out;
	sigset_t none;
	int high;

	sigemptyset(&none);
	memcpy(copy, many, sizeof(copy));
	TRY(poll(copy, MANY, 0));
	TRY(poll(copy, MANY, 1));
	TRY(ppoll(copy, MANY, &moment, &none));
	FD_ZERO(&set);
	/* More of them than have room on the stack. */
	for (int i = 0; i < MANY; i++) {
		high = fcntl(many[i].fd, F_DUPFD, 500);
		MUST(high >= 500 && high < FD_SETSIZE);
		FD_SET(high, &set);
	}
	out = set;
	TRY(select(FD_SETSIZE, &out, NULL, &set, &tv));
	out = set;
	TRY(pselect(FD_SETSIZE, &out, NULL, NULL, &moment, &none));
	for (int fd = 500; fd < FD_SETSIZE; fd++)
		if (FD_ISSET(fd, &set))
			TRY(close(fd));
}

static void move_data(void)
{
	struct sockaddr_in addr;
	socklen_t len = sizeof(addr);
	struct iovec iov = { &addr, 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct mmsghdr mm = { .msg_hdr = m };
	int fd[2], ends[2], listener, one = 1, file;
	char c = 'x';

	TRY(listener = socket(AF_INET, SOCK_STREAM, 0));
	addr = loopback(0);
	TRY(bind(listener, (struct sockaddr *)&addr, len));
	TRY(listen(listener, 1));
	TRY(getsockname(listener, (struct sockaddr *)&addr, &len));
	TRY(fd[0] = socket(AF_INET, SOCK_STREAM, 0));
	TRY(connect(fd[0], (struct sockaddr *)&addr, len));
	TRY(fd[1] = accept4(listener, NULL, NULL, 0));
	TRY(setsockopt(fd[0], SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one)));
	len = sizeof(one);
	TRY(getsockopt(fd[0], SOL_SOCKET, SO_KEEPALIVE, &one, &len));
	TRY(send(fd[0], &c, 1, 0));
	TRY(recv(fd[1], &c, 1, 0));
	TRY(write(fd[0], &c, 1));
	TRY(read(fd[1], &c, 1));
	TRY(sendmsg(fd[0], &m, 0));
	TRY(recvmsg(fd[1], &m, 0));
	TRY(sendmmsg(fd[0], &mm, 1, 0));
	TRY(recvmmsg(fd[1], &mm, 1, 0, NULL));
	MUST((file = open("/bin/sh", O_RDONLY)) >= 0 && !pipe(ends));
	TRY(sendfile(fd[0], file, NULL, 1000));
	TRY(splice(fd[1], NULL, ends[1], NULL, 1000, 0));
	TRY(shutdown(fd[0], SHUT_WR));
	TRY(close(fd[0]));
	TRY(close(fd[1]));
	TRY(close(listener));
	TRY(close(file));
}

static void give_numbers(void)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int fd, ep, in, file;
	struct stat st;

	MUST((in = dup(0)) >= 0);
	TRY(fd = socket(AF_INET, SOCK_DGRAM, 0));
	TRY(dup2(fd, 0));
	TRY(fcntl(0, F_GETFL));
	TRY(dup2(in, 0));
	TRY(close(in));
	TRY(fcntl(fd, F_SETFD, FD_CLOEXEC));
	TRY(ep = epoll_create1(0));
	TRY(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev));
	TRY(epoll_wait(ep, &ev, 1, 1));
	TRY(close(ep));
	TRY(fstat(fd, &st));
	TRY(file = open("/proc/net/dev", O_RDONLY));
	TRY(close(file));
	TRY(stat("/proc/net/dev", &st));
	TRY(access("/proc/net/dev", R_OK));
	TRY(close(fd));
}

static void in_handler(int sig)
{
	char *const argv[] = { "/none", NULL };
	struct sigaction old;
	pid_t pid;

	(void)sig;
	wait_for_many();
	move_data();
	give_numbers();
	TRY(sigaction(SIGUSR2, NULL, &old));
	TRY(signal(SIGUSR2, SIG_IGN));
	TRY(execve("/none", argv, environ));
	TRY(pid = fork());
	if (!pid) {
		TRY(socket(AF_INET, SOCK_DGRAM, 0));
		_exit(0);
	}
	SHOW(await_child(pid));
	TRY(pid = _Fork());
	if (!pid) {
		TRY(socket(AF_INET, SOCK_DGRAM, 0));
		_exit(0);
	}
	SHOW(await_child(pid));
}

/* What signal-safety(7) lists leaves the heap alone, and so do its kin. */
CASE(handlers_leave_the_heap_alone)
{
	prepare_many();
	MUST(signal(SIGUSR1, in_handler) != SIG_ERR);
	SHOW(raise(SIGUSR1));
	/* In a child that is not on the stack yet. */
	for (int i = 0; i < MANY; i++)
		close(many[i].fd);
	close(half[0]);
	fflush(stdout);
	if (!fork()) {
		TRY(socket(AF_INET, SOCK_DGRAM, 0));
		fflush(stdout);
		_exit(0);
	}
	SHOW(wait(NULL) > 0);
}

/* ---- signals that guise must not block --------------------------------------------- */

static void act_and_make(int sig)
{
	act(sig);
	make_socket(sig);
}

/* Sent by kill(), they say nothing of memory, and are handled as others are. */
CASE(faults_that_are_sent)
{
	static const int faults[] = { SIGSEGV, SIGBUS, SIGSYS };
	struct sigaction action = { .sa_handler = act_and_make };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL };

	for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++) {
		event.sigev_signo = faults[i];
		MUST(!sigaction(faults[i], &action, NULL));
		MUST(!timer_create(CLOCK_MONOTONIC, &event, &timer));
		for (long us = 0; us <= MOMENTS; us++) {
			strike_after(us);
			while (!struck) {
				signal(SIGURG, SIG_IGN);
				close(socket(AF_INET, SOCK_DGRAM, 0));
			}
		}
	}
	SHOW(wrong);
}
