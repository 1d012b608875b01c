// SPDX-License-Identifier: GPL-2.0-only
/* Handlers of signals that find a thread in a call: what they may do, what stays of the call. */
#include "call.h"

#include <netinet/tcp.h>
#include <setjmp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <sys/wait.h>

static const struct timespec moment = { .tv_nsec = 1000000 };
static volatile sig_atomic_t caught;
static int pair[2], other[2];

static void handle(int sig, void (*handler)(int), int flags)
{
	struct sigaction act = { .sa_handler = handler, .sa_flags = flags };

	MUST(!sigaction(sig, &act, NULL));
}

static void set_mask(int how, int sig)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, sig);
	MUST(!pthread_sigmask(how, &set, NULL));
}

static void catch(int sig)
{
	(void)sig;
	caught++;
}

static long call_recv(struct attempt *a)
{
	char buf[8];

	return recv(a->fd, buf, 8, 0);
}

static void interrupt(struct attempt *a, int sig)
{
	int before = caught;

	MUST(attempt_waits(a));
	MUST(!pthread_kill(a->thread, sig));
	while (caught == before)
		nanosleep(&moment, NULL);
}

/* ---- calls of the handler --------------------------------------------------------------- */

static void answer(int sig)
{
	char c;

	(void)sig;
	if (send(other[1], "h", 1, 0) != 1 || recv(other[0], &c, 1, 0) != 1)
		abort();
	/* Sends itself what the call waits for. */
	if (send(pair[1], &c, 1, 0) != 1)
		abort();
	caught++;
}

CASE(handler_moves_data)
{
	struct attempt a = { .call = call_recv };

	stream_pair(pair);
	stream_pair(other);
	a.fd = pair[0];
	handle(SIGUSR1, answer, SA_RESTART);
	interrupt(&a, SIGUSR1);
	attempt_ends(&a, "recv(the handler sends)");
	handle(SIGUSR1, answer, 0);
	interrupt(&a, SIGUSR1);
	attempt_ends(&a, "recv(the handler sends, no restart)");
	SHOW(recv(pair[0], other, 1, MSG_DONTWAIT));
}

static void close_it(int sig)
{
	(void)sig;
	close(pair[0]);
	caught++;
}

CASE(handler_closes_the_socket)
{
	struct attempt a = { .call = call_recv };

	stream_pair(pair);
	a.fd = pair[0];
	handle(SIGUSR1, close_it, SA_RESTART);
	interrupt(&a, SIGUSR1);
	attempt_ends(&a, "recv(the handler closes)");
	stream_pair(pair);
	a.fd = pair[0];
	handle(SIGUSR1, close_it, 0);
	interrupt(&a, SIGUSR1);
	attempt_ends(&a, "recv(the handler closes, no restart)");
}

/* ---- handlers that do not come back, or come in one another -------------------------------- */

static sigjmp_buf back;

static void jump(int sig)
{
	caught++;
	siglongjmp(back, sig);
}

#define JUMPING(X)                                                                           \
	X(recv(pair[0], buf, 8, 0))                                                          \
	X(read(pair[0], buf, 8))                                                             \
	X(poll(&(struct pollfd){ pair[0], POLLIN, 0 }, 1, -1))                               \
	X(ppoll(&(struct pollfd){ pair[0], POLLIN, 0 }, 1, NULL, &none))                     \
	X(poll((struct pollfd[]){ { pair[0], POLLIN, 0 }, { pipes[0], POLLIN, 0 } }, 2, -1)) \
	X(epoll_wait(epoll, &ev, 1, -1))                                                     \
	X(epoll_pwait(epoll, &ev, 1, -1, &none))                                             \
	X(splice(pair[0], NULL, pipes[1], NULL, 8, 0))                                       \
	X(accept(listener, NULL, NULL))

CASE(handler_jumps_out)
{
	struct itimerval soon = { .it_value = { 0, 20000 } };
	struct epoll_event ev = { .events = EPOLLIN };
	static int listener, epoll, pipes[2];
	struct sockaddr_in addr;
	sigset_t none, mask;
	char buf[8];

	stream_pair(pair);
	sigemptyset(&none);
	listener = bound(SOCK_STREAM, &addr);
	MUST((epoll = epoll_create1(0)) >= 0 && !pipe(pipes));
	MUST(!epoll_ctl(epoll, EPOLL_CTL_ADD, pair[0], &ev));
	handle(SIGALRM, jump, SA_RESTART);
	for (int i = 0; i < 3; i++) {
#define JUMP(call)                                              \
	if (!sigsetjmp(back, 1)) {                              \
		MUST(!setitimer(ITIMER_REAL, &soon, NULL));     \
		(void)!(call);                                  \
		printf("came back\n");                          \
	} else {                                                \
		printf("out of %s\n", #call);                   \
		MUST(!pthread_sigmask(SIG_BLOCK, NULL, &mask)); \
		SHOW(sigismember(&mask, SIGALRM));              \
		SHOW(send(pair[1], "x", 1, 0));                 \
		SHOW(epoll_wait(epoll, &ev, 1, 10000));         \
		SHOW(recv(pair[0], buf, 8, 0));                 \
	}
		JUMPING(JUMP)
	}
	handle(SIGALRM, catch, 0);
	alarm(60);
}

static volatile sig_atomic_t depth, deepest, raised;

static void nest(int sig)
{
	depth++;
	if (depth > deepest)
		deepest = depth;
	if (sig == SIGUSR1)
		raise(SIGUSR2);
	if (sig == SIGUSR2)
		raise(SIGHUP);
	depth--;
	caught++;
}

static void again(int sig)
{
	depth++;
	if (depth > deepest)
		deepest = depth;
	if (raised++ < 4)
		raise(sig);
	depth--;
	caught++;
}

CASE(handlers_in_handlers)
{
	struct attempt a = { .call = call_recv };

	stream_pair(pair);
	a.fd = pair[0];
	handle(SIGUSR1, nest, 0);
	handle(SIGUSR2, nest, 0);
	handle(SIGHUP, nest, 0);
	interrupt(&a, SIGUSR1);
	attempt_ends(&a, "recv(nested)");
	SHOW(deepest);
	SHOW(caught);
	deepest = caught = raised = 0;
	handle(SIGUSR1, again, SA_NODEFER);
	interrupt(&a, SIGUSR1);
	attempt_ends(&a, "recv(SA_NODEFER)");
	SHOW(deepest);
	SHOW(caught);
	deepest = caught = raised = 0;
	handle(SIGUSR1, again, 0);
	interrupt(&a, SIGUSR1);
	attempt_ends(&a, "recv(deferred)");
	SHOW(deepest);
	SHOW(caught);
}

static void for_good(int sig)
{
	caught++;
	handle(sig, catch, SA_RESTART);
}

static void tell_action(int sig)
{
	struct sigaction act;

	MUST(!sigaction(sig, NULL, &act));
	printf("%s: %s, flags %x\n", sigabbrev_np(sig),
	       act.sa_handler == SIG_DFL   ? "default"
	       : act.sa_handler == SIG_IGN ? "ignored"
					   : "handled",
	       (unsigned int)act.sa_flags & (unsigned int)(SA_RESTART | SA_RESETHAND | SA_NODEFER));
}

CASE(handler_changes_its_action)
{
	struct attempt a = { .call = call_recv };

	stream_pair(pair);
	a.fd = pair[0];
	/* The default of this one is to do nothing. */
	handle(SIGWINCH, catch, (int)SA_RESETHAND);
	interrupt(&a, SIGWINCH);
	attempt_ends(&a, "recv(SA_RESETHAND)");
	tell_action(SIGWINCH);
	WAITS(&a, "recv(after SA_RESETHAND)", {
		MUST(!pthread_kill(a.thread, SIGWINCH));
		MUST(send(pair[1], "x", 1, 0) == 1);
	});
	handle(SIGUSR1, for_good, 0);
	interrupt(&a, SIGUSR1);
	attempt_ends(&a, "recv(without restart)");
	tell_action(SIGUSR1);
	interrupt(&a, SIGUSR1);
	MUST(send(pair[1], "x", 1, 0) == 1);
	attempt_ends(&a, "recv(now with)");
}

/* ---- other stacks, many signals ------------------------------------------------------------- */

#define OTHER_STACK 65536
static char other_stack[OTHER_STACK];
static volatile sig_atomic_t on_other;

static void where(int sig)
{
	char here;

	(void)sig;
	on_other = &here >= other_stack && &here < other_stack + OTHER_STACK;
	caught++;
}

static long recv_with_stack(struct attempt *a)
{
	stack_t ss = { .ss_sp = other_stack, .ss_size = OTHER_STACK };
	long ret;

	MUST(!sigaltstack(&ss, NULL));
	ret = call_recv(a);
	ss.ss_flags = SS_DISABLE;
	MUST(!sigaltstack(&ss, NULL));
	return ret;
}

CASE(handler_on_another_stack)
{
	struct attempt a = { .call = recv_with_stack };

	stream_pair(pair);
	a.fd = pair[0];
	handle(SIGUSR1, where, SA_ONSTACK);
	interrupt(&a, SIGUSR1);
	attempt_ends(&a, "recv(on another stack)");
	SHOW(on_other);
	handle(SIGUSR1, where, 0);
	interrupt(&a, SIGUSR1);
	attempt_ends(&a, "recv(on its own)");
	SHOW(on_other);
}

#define MANY 20

CASE(handlers_of_many_signals)
{
	struct attempt a = { .call = call_recv };
	sigset_t mask;

	stream_pair(pair);
	a.fd = pair[0];
	for (int i = 0; i < MANY; i++)
		handle(SIGRTMIN + i, catch, SA_RESTART);
	for (int round = 0; round < 5; round++) {
		caught = 0;
		MUST(attempt_waits(&a));
		for (int i = 0; i < MANY; i++)
			MUST(!pthread_kill(a.thread, SIGRTMIN + i));
		while (caught < MANY)
			nanosleep(&moment, NULL);
		MUST(send(pair[1], "x", 1, 0) == 1);
		attempt_ends(&a, "recv(twenty signals)");
		SHOW(caught);
	}
	MUST(!pthread_sigmask(SIG_BLOCK, NULL, &mask));
	SHOW(sigismember(&mask, SIGRTMIN));
}

/* ---- masks of a wait ------------------------------------------------------------------------- */

CASE(handler_let_through_by_a_mask)
{
	struct timespec a_while = { .tv_nsec = 10000000 };
	struct epoll_event ev = { .events = EPOLLIN };
	struct pollfd p, both[2];
	int epoll, pipes[2];
	sigset_t none;
	fd_set in;

	stream_pair(pair);
	MUST(!pipe(pipes));
	sigemptyset(&none);
	MUST((epoll = epoll_create1(0)) >= 0);
	MUST(!epoll_ctl(epoll, EPOLL_CTL_ADD, pair[0], &ev));
	handle(SIGUSR1, catch, SA_RESTART);
	set_mask(SIG_BLOCK, SIGUSR1);
	FD_ZERO(&in);
	FD_SET(pair[0], &in);
	p = (struct pollfd){ pair[0], POLLIN, 0 };
	both[0] = p;
	both[1] = (struct pollfd){ pipes[0], POLLIN, 0 };
#define PENDING(call)                  \
	do {                           \
		caught = 0;            \
		MUST(!raise(SIGUSR1)); \
		SHOW(call);            \
		SHOW(caught);          \
	} while (0)
	PENDING(ppoll(&p, 1, NULL, &none));
	PENDING(ppoll(both, 2, NULL, &none));
	PENDING(pselect(pair[0] + 1, &in, NULL, NULL, NULL, &none));
	PENDING(epoll_pwait(epoll, &ev, 1, -1, &none));
	PENDING(epoll_pwait2(epoll, &ev, 1, NULL, &none));
	PENDING(ppoll(&p, 1, &a_while, &none));
	/* Blocked all the time: at once when it is let through. */
	caught = 0;
	MUST(!raise(SIGUSR1));
	SHOW(poll(&p, 1, 20));
	SHOW(caught);
	set_mask(SIG_UNBLOCK, SIGUSR1);
	SHOW(caught);
}

/* ---- timers, descriptors and other sources --------------------------------------------------- */

CASE(handler_of_a_timer)
{
	/* It must be late enough for the call to wait by then: each comes once. */
	struct itimerspec soon = { .it_value = { .tv_nsec = 200000000 } };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	struct itimerval real = { .it_value = { 0, 200000 } };
	timer_t timer;
	char buf[8];

	stream_pair(pair);
	handle(SIGALRM, catch, 0);
	handle(SIGUSR1, catch, 0);
	MUST(!setitimer(ITIMER_REAL, &real, NULL));
	SHOW(recv(pair[0], buf, 8, 0));
	MUST(!timer_create(CLOCK_MONOTONIC, &event, &timer));
	MUST(!timer_settime(timer, 0, &soon, NULL));
	SHOW(recv(pair[0], buf, 8, 0));
	event.sigev_notify = SIGEV_THREAD_ID;
	event._sigev_un._tid = (int)syscall(SYS_gettid);
	MUST(!timer_create(CLOCK_MONOTONIC, &event, &timer));
	MUST(!timer_settime(timer, 0, &soon, NULL));
	SHOW(recv(pair[0], buf, 8, 0));
	SHOW(caught);
	alarm(60);
}

CASE(signals_read_from_a_descriptor)
{
	struct signalfd_siginfo info;
	struct epoll_event ev = { .events = EPOLLIN, .data.u32 = 1 };
	struct pollfd p[2];
	int fd, epoll;
	sigset_t set;

	stream_pair(pair);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	MUST(!pthread_sigmask(SIG_BLOCK, &set, NULL));
	MUST((fd = signalfd(-1, &set, 0)) >= 0 && (epoll = epoll_create1(0)) >= 0);
	MUST(!epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &ev));
	ev.data.u32 = 2;
	MUST(!epoll_ctl(epoll, EPOLL_CTL_ADD, pair[0], &ev));
	p[0] = (struct pollfd){ pair[0], POLLIN, 0 };
	p[1] = (struct pollfd){ fd, POLLIN, 0 };
	SHOW(poll(p, 2, 0));
	MUST(!kill(getpid(), SIGUSR1));
	SHOW(poll(p, 2, 10000));
	SHOW(p[1].revents);
	SHOW(epoll_wait(epoll, &ev, 1, 10000));
	SHOW(ev.data.u32);
	SHOW(read(fd, &info, sizeof(info)) == sizeof(info));
	SHOW(info.ssi_signo == SIGUSR1);
	SHOW(poll(p, 2, 0));
}

/* ---- SIGPIPE --------------------------------------------------------------------------------- */

static siginfo_t pipe_info;

static void look(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	pipe_info = *info;
	caught++;
}

/* Its peer is gone, and it knows. */
static int broken(void)
{
	struct linger reset = { 1, 0 };
	int fd[2];

	stream_pair(fd);
	MUST(!setsockopt(fd[1], SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)));
	MUST(!close(fd[1]));
	await(fd[0], POLLHUP);
	MUST(recv(fd[0], fd, 1, 0) == -1); /* the reset itself */
	return fd[0];
}

#define BREAKING(X)                                              \
	X(write(fd, "x", 1))                                     \
	X(writev(fd, &(struct iovec){ (void *)"x", 1 }, 1))      \
	X(send(fd, "x", 1, 0))                                   \
	X(send(fd, "x", 1, MSG_NOSIGNAL))                        \
	X(sendmsg(fd, &m, 0))                                    \
	X(sendmsg(fd, &m, MSG_NOSIGNAL))                         \
	X(sendmmsg(fd, &(struct mmsghdr){ .msg_hdr = m }, 1, 0)) \
	X(sendfile(fd, file, NULL, 10))                          \
	X(splice(pipes[0], NULL, fd, NULL, 8, 0))                \
	X(dprintf(fd, "x"))                                      \
	X((fputc('x', stream), fflush(stream)))

CASE(broken_pipes)
{
	struct sigaction act = { .sa_sigaction = look, .sa_flags = SA_SIGINFO };
	struct msghdr m = { .msg_iov = &(struct iovec){ (void *)"x", 1 }, .msg_iovlen = 1 };
	int fd, pipes[2], file = memfd_create("file", 0);
	FILE *stream;

	MUST(!pipe(pipes) && !ftruncate(file, 1000));
	MUST(write(pipes[1], "some data for it", 16) == 16);
	for (int ignored = 0; ignored < 2; ignored++) {
		if (ignored)
			signal(SIGPIPE, SIG_IGN);
		else
			MUST(!sigaction(SIGPIPE, &act, NULL));
#define BREAK(call)                                                                 \
	fd = broken();                                                              \
	stream = fdopen(dup(fd), "w");                                              \
	caught = 0;                                                                 \
	SHOW(call);                                                                 \
	SHOW(caught);                                                               \
	if (caught) {                                                               \
		SHOW(pipe_info.si_code);                                            \
		SHOW(pipe_info.si_pid == getpid() && pipe_info.si_uid == getuid()); \
	}                                                                           \
	fclose(stream);                                                             \
	close(fd);
		BREAKING(BREAK)
	}
}

/* With the default action the program ends by it. */
CASE(broken_pipes_end_the_program)
{
	struct msghdr m = { .msg_iov = &(struct iovec){ (void *)"x", 1 }, .msg_iovlen = 1 };
	int status, pipes[2], file = memfd_create("file", 0);
	FILE *stream;
	pid_t pid;
	int fd;

	MUST(!pipe(pipes) && !ftruncate(file, 1000));
	MUST(write(pipes[1], "some data for it", 16) == 16);
#define END(call)                                                                               \
	fd = broken();                                                                          \
	stream = fdopen(dup(fd), "w");                                                          \
	fflush(stdout);                                                                         \
	pid = fork();                                                                           \
	if (!pid) {                                                                             \
		(void)!(call);                                                                  \
		_exit(7);                                                                       \
	}                                                                                       \
	MUST(waitpid(pid, &status, 0) == pid);                                                  \
	printf("%s ends with %d, by %d\n", #call, WIFEXITED(status) ? WEXITSTATUS(status) : -1, \
	       WIFSIGNALED(status) ? WTERMSIG(status) : 0);                                     \
	fclose(stream);                                                                         \
	close(fd);
	BREAKING(END)
}

/* ---- libc's own signals, and faults ---------------------------------------------------------- */

static long recv_then_uid(struct attempt *a)
{
	long ret = call_recv(a);

	return ret < 0 ? ret : (long)getegid();
}

CASE(setgid_reaches_waiting_threads)
{
	struct attempt a[3] = { { .call = recv_then_uid },
				{ .call = recv_then_uid },
				{ .call = recv_then_uid } };
	int fds[3][2];

	for (int i = 0; i < 3; i++) {
		stream_pair(fds[i]);
		a[i].fd = fds[i][0];
		MUST(attempt_waits(&a[i]));
	}
	/* A child's, so that the program may go on as it was. */
	SHOW(setegid(getegid()));
	if (!geteuid()) {
		MUST(!setegid(12345));
		MUST(!seteuid(12345));
	}
	for (int i = 0; i < 3; i++)
		MUST(send(fds[i][1], "x", 1, 0) == 1);
	for (int i = 0; i < 3; i++) {
		MUST(!pthread_join(a[i].thread, NULL));
		printf("a thread's group is %s\n",
		       a[i].ret == (long)getegid() ? "the new one" : "not");
	}
}

static sigjmp_buf fault;
static volatile sig_atomic_t fault_code;

static void faulted(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	fault_code = info->si_code;
	siglongjmp(fault, 1);
}

/* The program's own faults are its own, bad pointers that it hands to calls are not. */
CASE(handler_of_faults)
{
	struct sigaction act = { .sa_sigaction = faulted, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	volatile char *nowhere = mmap(NULL, 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	stream_pair(pair);
	MUST(!sigaction(SIGSEGV, &act, NULL));
	for (int i = 0; i < 3; i++) {
		fault_code = -1;
		if (!sigsetjmp(fault, 1))
			*nowhere = 1;
		SHOW(fault_code);
		SHOW(send(pair[0], (void *)nowhere, 8, 0));
		SHOW(send(pair[0], "x", 1, 0));
		SHOW(recv(pair[1], (void *)nowhere, 1, 0));
	}
	tell_action(SIGSEGV);
	if (!sigsetjmp(fault, 1))
		raise(SIGSEGV);
	SHOW(fault_code);
}
