// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every call that waits, and every way in which a signal can find it there: signal(7)
 * says which calls are restarted, which fail with EINTR, and which are not disturbed.
 */
#include "call.h"

#include <aio.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/time.h>
#include <sys/wait.h>

/* What the calls are given: made anew for each attempt. */
static bool timeouts; /* the sockets have one */

static struct place {
	int in, out;     /* two ends of a connection, nothing to read */
	int full, drain; /* no room from full to drain */
	int listener, deaf, caller, epoll, pipe[2], into[2], file;
	struct sockaddr_in accepts;
	FILE *stream, *full_stream;
	struct aiocb unread;
} at;

static char buf[1 << 14];

static long got_line(FILE *f)
{
	char line[8];

	clearerr(f);
	return fgets(line, sizeof(line), f) ? 1 : -1;
}

/* What ends the wait if the signal did not. */
enum end { DATA, ROOM, CALLER, PIPE, NUDGE };

/* Name, what ends it, the call. A call that waits for room is asked for more than there is. */
#define WAITING(X)                                                                               \
	X(read, DATA, read(at.in, buf, 8))                                                       \
	X(readv, DATA, readv(at.in, message(buf, 8)->msg_iov, 1))                                \
	X(preadv2, DATA, preadv2(at.in, message(buf, 8)->msg_iov, 1, -1, 0))                     \
	X(recv, DATA, recv(at.in, buf, 8, 0))                                                    \
	X(recv_waitall, DATA, recv(at.in, buf, 1, MSG_WAITALL))                                  \
	X(recvfrom, DATA, recvfrom(at.in, buf, 8, 0, NULL, NULL))                                \
	X(recvmsg, DATA, recvmsg(at.in, message(buf, 8), 0))                                     \
	X(recvmmsg, DATA,                                                                        \
	  recvmmsg(at.in, &(struct mmsghdr){ .msg_hdr = *message(buf, 8) }, 1, 0, 0))            \
	X(write, ROOM, write(at.full, buf, sizeof(buf)))                                         \
	X(writev, ROOM, writev(at.full, message(buf, sizeof(buf))->msg_iov, 1))                  \
	X(pwritev2, ROOM, pwritev2(at.full, message(buf, sizeof(buf))->msg_iov, 1, -1, 0))       \
	X(send, ROOM, send(at.full, buf, sizeof(buf), 0))                                        \
	X(sendto, ROOM, sendto(at.full, buf, sizeof(buf), 0, NULL, 0))                           \
	X(sendmsg, ROOM, sendmsg(at.full, message(buf, sizeof(buf)), 0))                         \
	X(sendmmsg, ROOM,                                                                        \
	  sendmmsg(at.full, &(struct mmsghdr){ .msg_hdr = *message(buf, sizeof(buf)) }, 1, 0))   \
	X(sendfile, ROOM, sendfile(at.full, at.file, &(off_t){ 0 }, sizeof(buf)))                \
	X(accept, CALLER, accept(at.listener, NULL, NULL) < 0 ? -1 : 0)                          \
	X(accept4, CALLER, accept4(at.listener, NULL, NULL, SOCK_CLOEXEC) < 0 ? -1 : 0)          \
	X(connect, NUDGE, connect(at.caller, (void *)&at.accepts, sizeof(at.accepts)))           \
	X(poll, DATA, poll(&(struct pollfd){ at.in, POLLIN, 0 }, 1, -1))                         \
	X(poll_timeout, DATA, poll(&(struct pollfd){ at.in, POLLIN, 0 }, 1, 40000))              \
	X(ppoll, DATA, ppoll(&(struct pollfd){ at.in, POLLIN, 0 }, 1, NULL, NULL))               \
	X(poll_both, DATA,                                                                       \
	  poll((struct pollfd[]){ { at.in, POLLIN, 0 }, { at.pipe[0], POLLIN, 0 } }, 2, -1))     \
	X(select, DATA, select(at.in + 1, set_of(at.in), NULL, NULL, NULL))                      \
	X(pselect, DATA, pselect(at.in + 1, set_of(at.in), NULL, NULL, NULL, NULL))              \
	X(epoll_wait, DATA, epoll_wait(at.epoll, &(struct epoll_event){ 0 }, 1, -1))             \
	X(epoll_pwait, DATA, epoll_pwait(at.epoll, &(struct epoll_event){ 0 }, 1, -1, NULL))     \
	X(epoll_pwait2, DATA, epoll_pwait2(at.epoll, &(struct epoll_event){ 0 }, 1, NULL, NULL)) \
	X(splice_in, DATA, splice(at.in, NULL, at.into[1], NULL, 8, 0))                          \
	X(splice_out, PIPE, splice(at.pipe[0], NULL, at.out, NULL, 8, 0))                        \
	X(fgets, DATA, got_line(at.stream))                                                      \
	X(fgetc, DATA, (clearerr(at.stream), fgetc(at.stream) < 0 ? -1 : 0))                     \
	X(aio_suspend, DATA, aio_suspend((const struct aiocb *[]){ &at.unread }, 1, NULL))

#define FUNCTION(name, end, call)                  \
	static long call_##name(struct attempt *a) \
	{                                          \
		(void)a;                           \
		return (long)(call);               \
	}
WAITING(FUNCTION)

static const struct waiting {
	const char *name;
	enum end end;
	long (*call)(struct attempt *a);
} waiting[] = {
#define ENTRY(name, end, call) { #name, end, call_##name },
	WAITING(ENTRY)
};

static void make_full(void)
{
	int fd[2];

	small_pair(fd);
	at.full = fd[0];
	at.drain = fd[1];
	fill(at.full);
}

/* A listener whose queue is full: connecting takes long. */
static void make_deaf(void)
{
	socklen_t len = sizeof(at.accepts);

	at.accepts = loopback(0);
	at.deaf = socket(AF_INET, SOCK_STREAM, 0);
	MUST(!bind(at.deaf, (void *)&at.accepts, len) && !listen(at.deaf, 0));
	MUST(!getsockname(at.deaf, (void *)&at.accepts, &len));
	for (int i = 0; i < 3; i++) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

		if (connect(fd, (void *)&at.accepts, sizeof(at.accepts)))
			poll(&(struct pollfd){ fd, POLLOUT, 0 }, 1, 30);
	}
}

static void make_places(void)
{
	struct epoll_event ev = { .events = EPOLLIN };
	static bool once;
	int fd[2];

	if (!once) {
		make_deaf();
		at.file = memfd_create("file", 0);
		MUST(at.file >= 0 && !ftruncate(at.file, sizeof(buf)));
		at.listener = bound(SOCK_STREAM, &(struct sockaddr_in){ 0 });
		MUST(!pipe(at.pipe) && !pipe(at.into));
	}
	once = true;
	stream_pair(fd);
	at.in = fd[0];
	at.out = fd[1];
	at.caller = socket(AF_INET, SOCK_STREAM, 0);
	MUST((at.epoll = epoll_create1(0)) >= 0);
	MUST(!epoll_ctl(at.epoll, EPOLL_CTL_ADD, at.in, &ev));
	MUST((at.stream = fdopen(dup(at.in), "r")));
	if (timeouts) {
		static const struct timeval late = { 40, 0 };
		const int fds[] = { at.in, at.out, at.full, at.listener, at.caller };

		for (size_t i = 0; i < COUNT(fds); i++) {
			MUST(!setsockopt(fds[i], SOL_SOCKET, SO_RCVTIMEO, &late, sizeof(late)));
			MUST(!setsockopt(fds[i], SOL_SOCKET, SO_SNDTIMEO, &late, sizeof(late)));
		}
	}
}

static void close_places(void)
{
	close(at.in);
	close(at.out);
	close(at.caller);
	close(at.epoll);
	fclose(at.stream);
}

/* ---- signals ------------------------------------------------------------------------- */

static volatile sig_atomic_t caught;

static void catch(int sig)
{
	(void)sig;
	caught++;
}

static void handle(int sig, int flags)
{
	struct sigaction act = { .sa_handler = catch, .sa_flags = flags };

	MUST(!sigaction(sig, &act, NULL));
}

static void block(int how, int sig)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, sig);
	MUST(!pthread_sigmask(how, &set, NULL));
}

static const struct timespec moment = { .tv_nsec = 1000000 };

/*
 * Whether it sleeps (again), and has not come back: by so many looks in a row. For a moment one on
 * the way back may sleep, too, while another thread has the virtual CPU.
 */
static bool asleep(struct attempt *a, int looks)
{
	int times = 0;

	while (times < looks && !__atomic_load_n(&a->done, __ATOMIC_ACQUIRE)) {
		times = sleeps(a->tid) ? times + 1 : 0;
		nanosleep(&moment, NULL);
	}
	return !__atomic_load_n(&a->done, __ATOMIC_ACQUIRE);
}

static bool begins(struct attempt *a)
{
	a->tid = 0;
	a->done = 0;
	MUST(!pthread_create(&a->thread, NULL, attempt_begins, a));
	while (!__atomic_load_n(&a->tid, __ATOMIC_ACQUIRE))
		sched_yield();
	return asleep(a, 8);
}

static void end_it(const struct waiting *w, struct attempt *a)
{
	struct sockaddr_in addr;
	socklen_t len = sizeof(addr);
	int fd;

	switch (w->end) {
	case DATA:
		MUST(write(at.out, "\n", 1) == 1);
		break;
	case ROOM:
		while (!__atomic_load_n(&a->done, __ATOMIC_ACQUIRE)) {
			static char into[1 << 16];

			if (recv(at.drain, into, sizeof(into), MSG_DONTWAIT) < 0)
				nanosleep(&moment, NULL);
		}
		break;
	case CALLER:
		MUST(!getsockname(at.listener, (void *)&addr, &len));
		fd = socket(AF_INET, SOCK_STREAM, 0);
		MUST(!connect(fd, (void *)&addr, sizeof(addr)));
		close(fd);
		break;
	case PIPE:
		MUST(write(at.pipe[1], "x", 1) == 1);
		break;
	case NUDGE:
		MUST(!pthread_kill(a->thread, SIGUSR2));
	}
}

static void tidy(const struct waiting *w)
{
	if (w->end == DATA)
		while (recv(at.in, buf, 8, MSG_DONTWAIT) > 0)
			;
	if (w->end == ROOM) { /* another one: this one's window opens when its timer says so */
		close(at.full);
		close(at.drain);
		make_full();
	}
	if (w->end == PIPE) {
		char some[8];

		while (poll(&(struct pollfd){ at.pipe[0], POLLIN, 0 }, 1, 0) == 1)
			MUST(read(at.pipe[0], some, 8) > 0);
	}
}

static void ask_for_one_byte(void)
{
	at.unread = (struct aiocb){ .aio_fildes = at.in,
				    .aio_buf = &buf[9],
				    .aio_nbytes = 1,
				    .aio_sigevent.sigev_notify = SIGEV_NONE };
	MUST(!aio_read(&at.unread));
}

/*
 * Makes the call in a thread, disturbs it by what send() does, and ends the wait; handlers:
 * how many of them there must have been. True: it waited on.
 */
static bool disturbed(const struct waiting *w, struct attempt *a, void (*send)(struct attempt *),
		      int handlers)
{
	bool on;

	make_places();
	if (w->call == call_aio_suspend)
		ask_for_one_byte();
	caught = 0;
	MUST(begins(a));
	send(a);
	while (caught < handlers)
		nanosleep(&moment, NULL);
	on = asleep(a, 24);
	if (on || w->call == call_aio_suspend)
		end_it(w, a);
	MUST(!pthread_join(a->thread, NULL));
	if (w->call == call_aio_suspend)
		while (aio_error(&at.unread) == EINPROGRESS)
			nanosleep(&moment, NULL);
	tidy(w);
	close_places();
	return on;
}

static void disturb(const struct waiting *w, const char *how, void (*send)(struct attempt *),
		    int handlers)
{
	struct attempt a = { .call = w->call };
	char what[64];
	bool on;

	/* Where there was room after all, what was moved counts: another one, then. */
	do {
		on = disturbed(w, &a, send, handlers);
	} while (w->end == ROOM && !on && a.ret > 0);
	snprintf(what, sizeof(what), "%s(%s)", w->name, how);
	printf("%s %s\n", what, on ? "waits on" : "ended");
	errno = a.err;
	tell_result(a.ret, "%s", what);
	printf("%s: %d handlers\n", what, (int)caught);
}

static void user_1(struct attempt *a)
{
	MUST(!pthread_kill(a->thread, SIGUSR1));
}

static void to_process(struct attempt *a)
{
	(void)a;
	MUST(!kill(getpid(), SIGUSR1));
}

static void everything(const char *how, void (*send)(struct attempt *), int handlers)
{
	make_full();
	handle(SIGUSR2, 0);
	for (size_t i = 0; i < COUNT(waiting); i++)
		disturb(&waiting[i], how, send, handlers);
}

CASE(interrupt_without_restart)
{
	handle(SIGUSR1, 0);
	everything("a handler", user_1, 1);
}

CASE(interrupt_with_restart)
{
	handle(SIGUSR1, SA_RESTART);
	everything("a handler with SA_RESTART", user_1, 1);
}

/* The main thread does not take it. */
static void by_kill(struct attempt *a)
{
	block(SIG_BLOCK, SIGUSR1);
	to_process(a);
	while (!caught)
		nanosleep(&moment, NULL);
	block(SIG_UNBLOCK, SIGUSR1);
}

CASE(interrupt_by_kill)
{
	handle(SIGUSR1, 0);
	everything("kill", by_kill, 1);
}

static void quiet_ones(struct attempt *a)
{
	MUST(!pthread_kill(a->thread, SIGUSR1));
	MUST(!pthread_kill(a->thread, SIGURG));
	MUST(!pthread_kill(a->thread, SIGCHLD));
	MUST(!pthread_kill(a->thread, SIGWINCH));
	MUST(!pthread_kill(a->thread, SIGCONT));
}

CASE(interrupt_without_handler)
{
	signal(SIGUSR1, SIG_IGN);
	everything("ignored", quiet_ones, 0);
}

static void then_unblocked(struct attempt *a)
{
	MUST(!pthread_kill(a->thread, SIGUSR1));
}

CASE(interrupt_blocked)
{
	handle(SIGUSR1, 0);
	make_full();
	handle(SIGUSR2, 0);
	block(SIG_BLOCK, SIGUSR1);
	for (size_t i = 0; i < COUNT(waiting); i++)
		disturb(&waiting[i], "a blocked signal", then_unblocked, 0);
}

/* With a time-out of the socket's a call that waits for data or room is not restarted. */
CASE(interrupt_with_timeout)
{
	static const char *const names[] = {
		"read",    "readv",     "recv",   "recvfrom", "recvmsg",    "recvmmsg", "write",
		"writev",  "send",      "sendto", "sendmsg",  "sendmmsg",   "sendfile", "accept",
		"connect", "splice_in", "fgets",  "poll",     "epoll_wait",
	};

	handle(SIGUSR1, SA_RESTART);
	handle(SIGUSR2, 0);
	make_full();
	timeouts = true;
	for (size_t i = 0; i < COUNT(names); i++)
		for (size_t w = 0; w < COUNT(waiting); w++)
			if (!strcmp(names[i], waiting[w].name))
				disturb(&waiting[w], "a handler with SA_RESTART, a time-out",
					user_1, 1);
}

/* A time-out comes at its time whatever handlers run meanwhile. */
CASE(interrupt_does_not_move_the_deadline)
{
	struct timeval short_one = { .tv_usec = 300000 };
	struct itimerval often = { { 0, 20000 }, { 0, 20000 } };
	struct timespec wait = { .tv_nsec = 300000000 };
	struct epoll_event ev;
	double begin;

	make_places();
	handle(SIGALRM, SA_RESTART);
	MUST(!setsockopt(at.in, SOL_SOCKET, SO_RCVTIMEO, &short_one, sizeof(short_one)));
	MUST(!setitimer(ITIMER_REAL, &often, NULL));
	SHOW(recv(at.in, buf, 8, 0));
	SHOW(poll(&(struct pollfd){ at.in, POLLIN, 0 }, 1, 300));
	SHOW(ppoll(&(struct pollfd){ at.in, POLLIN, 0 }, 1, &wait, NULL));
	SHOW(select(at.in + 1, set_of(at.in), NULL, NULL, &short_one));
	SHOW(epoll_wait(at.epoll, &ev, 1, 300));
	caught = 0;
	begin = now();
	while (now() < begin + 0.3)
		poll(&(struct pollfd){ at.in, POLLIN, 0 }, 1, 300);
	SHOW(caught > 1);
	MUST(!setitimer(ITIMER_REAL, &(struct itimerval){ 0 }, NULL));
	short_one.tv_usec = 300000;
	SHOW(recv(at.in, buf, 8, 0));
	SHOW(select(at.in + 1, set_of(at.in), NULL, NULL, &short_one));
	alarm(60);
}

/* ---- what the handler sees, and does ----------------------------------------------------- */

static siginfo_t seen[8];
static sigset_t seen_mask[8];
static volatile sig_atomic_t seen_n, seen_on_stack;
static char *other_stack;
#define OTHER_STACK 65536

static void look(int sig, siginfo_t *info, void *context)
{
	char here;

	(void)sig;
	if (seen_n < 8) {
		seen[seen_n] = *info;
		pthread_sigmask(SIG_SETMASK, NULL, &seen_mask[seen_n]);
		(void)context;
	}
	seen_on_stack = other_stack && &here >= other_stack && &here < other_stack + OTHER_STACK;
	seen_n++;
}

static void look_at(int sig, int flags, int also)
{
	struct sigaction act = { .sa_sigaction = look, .sa_flags = SA_SIGINFO | flags };

	if (also)
		sigaddset(&act.sa_mask, also);
	MUST(!sigaction(sig, &act, NULL));
}

static void tell_seen(void)
{
	for (int i = 0; i < seen_n && i < 8; i++) {
		siginfo_t *info = &seen[i];

		printf("%s: code %d, pid %s, uid %s, value %d%s; blocked:",
		       sigabbrev_np(info->si_signo) ? sigabbrev_np(info->si_signo) : "realtime",
		       info->si_code,
		       info->si_code > 0 && info->si_code != CLD_EXITED ? "-"
		       : info->si_pid == getpid()                       ? "own"
		       : info->si_pid                                   ? "other"
									: "0",
		       info->si_code > 0 && info->si_code != CLD_EXITED ? "-"
		       : info->si_uid == getuid()                       ? "own"
									: "other",
		       info->si_code == SI_QUEUE ? info->si_value.sival_int : -1,
		       seen_on_stack ? "; on the other stack" : "");
		for (int sig = 1; sig < NSIG; sig++)
			if (sigismember(&seen_mask[i], sig) == 1)
				printf(" %s", sigabbrev_np(sig) ? sigabbrev_np(sig) : "realtime");
		printf("\n");
	}
	seen_n = 0;
}

static void look_while(struct attempt *a, const char *what, void (*send)(struct attempt *), int n)
{
	make_places();
	MUST(begins(a));
	send(a);
	while (seen_n < n)
		nanosleep(&moment, NULL);
	MUST(!pthread_join(a->thread, NULL));
	errno = a->err;
	tell_result(a->ret, "recv(%s)", what);
	tell_seen();
	close_places();
}

static void queue(struct attempt *a)
{
	MUST(!pthread_sigqueue(a->thread, SIGUSR1, (union sigval){ .sival_int = 77 }));
}

static void queue_to_process(struct attempt *a)
{
	(void)a;
	block(SIG_BLOCK, SIGUSR1);
	MUST(!sigqueue(getpid(), SIGUSR1, (union sigval){ .sival_int = 78 }));
	while (!seen_n)
		nanosleep(&moment, NULL);
	block(SIG_UNBLOCK, SIGUSR1);
}

static void kill_process(struct attempt *a)
{
	block(SIG_BLOCK, SIGUSR1);
	to_process(a);
	while (!seen_n)
		nanosleep(&moment, NULL);
	block(SIG_UNBLOCK, SIGUSR1);
}

static void child_ends(struct attempt *a)
{
	pid_t pid;

	(void)a;
	block(SIG_BLOCK, SIGCHLD);
	pid = fork();
	if (!pid)
		_exit(3);
	MUST(pid > 0);
	while (!seen_n)
		nanosleep(&moment, NULL);
	MUST(waitpid(pid, NULL, 0) == pid);
	block(SIG_UNBLOCK, SIGCHLD);
}

/* Several of one number, and of several: each once, and in their order. */
static void queue_many(struct attempt *a)
{
	for (int i = 0; i < 4; i++)
		MUST(!pthread_sigqueue(a->thread, SIGRTMIN + 1, (union sigval){ .sival_int = i }));
	MUST(!pthread_sigqueue(a->thread, SIGRTMIN, (union sigval){ .sival_int = 9 }));
}

CASE(interrupt_information)
{
	struct attempt a = { .call = call_recv };

	look_at(SIGUSR1, 0, SIGUSR2);
	look_while(&a, "pthread_kill", user_1, 1);
	look_while(&a, "sigqueue to the thread", queue, 1);
	look_while(&a, "kill", kill_process, 1);
	look_while(&a, "sigqueue to the process", queue_to_process, 1);
	look_at(SIGUSR1, SA_NODEFER, 0);
	look_while(&a, "SA_NODEFER", user_1, 1);
	look_at(SIGCHLD, 0, 0);
	look_while(&a, "a child that ended", child_ends, 1);
}

static int all_queued;

/* Its thread is there until it has been sent them all. */
static long call_recv_and_stay(struct attempt *a)
{
	long ret = call_recv(a);

	while (!__atomic_load_n(&all_queued, __ATOMIC_ACQUIRE))
		nanosleep(&moment, NULL);
	return ret;
}

CASE(interrupt_queued)
{
	struct attempt a = { .call = call_recv_and_stay };

	look_at(SIGRTMIN, 0, SIGRTMIN + 1);
	look_at(SIGRTMIN + 1, 0, SIGRTMIN);
	make_places();
	block(SIG_BLOCK, SIGRTMIN);
	MUST(begins(&a));
	queue_many(&a);
	__atomic_store_n(&all_queued, 1, __ATOMIC_RELEASE);
	MUST(!pthread_join(a.thread, NULL));
	printf("%d handlers\n", (int)seen_n);
	for (int i = 0; i < seen_n; i++)
		printf("value %d\n", seen[i].si_value.sival_int);
}
