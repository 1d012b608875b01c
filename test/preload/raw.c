// SPDX-License-Identifier: GPL-2.0-only
/* System calls that a program makes by an instruction of its own. */
#include "case.h"

#include <linux/sched.h>
#include <setjmp.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <threads.h>

/* As the kernel returns it. */
static long raw(long nr, long a, long b, long c, long d, long e, long f)
{
#if defined(__x86_64__)
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "0"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
#else
	long ret = syscall(nr, a, b, c, d, e, f);

	return ret < 0 ? -errno : ret;
#endif
}

#define RAW6(nr, a, b, c, d, e, f, ...) \
	raw(nr, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
#define RAW(...) RAW6(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)

/* A raw call as it stands there, and what the kernel returned. */
#define SHOW_RAW(call)                                                                        \
	do {                                                                                  \
		long show_ = (long)(call);                                                    \
		printf("%s = %ld%s%s\n", #call, show_ < 0 ? -1 : show_, show_ < 0 ? " " : "", \
		       show_ < 0 ? strerrorname_np((int)-show_) : "");                        \
	} while (0)

static char buf[64];

/* An echo of one byte over a connection that only raw calls make. */
static void echo(void)
{
	struct sockaddr_in addr = loopback(0);
	socklen_t len = sizeof(addr);
	long l, c, a;

	MUST((l = RAW(SYS_socket, AF_INET, SOCK_STREAM, 0)) >= 0);
	SHOW_RAW(RAW(SYS_bind, l, &addr, len));
	SHOW_RAW(RAW(SYS_listen, l, 5));
	SHOW_RAW(RAW(SYS_getsockname, l, &addr, &len));
	MUST((c = RAW(SYS_socket, AF_INET, SOCK_STREAM, 0)) >= 0);
	SHOW_RAW(RAW(SYS_connect, c, &addr, len));
	MUST((a = RAW(SYS_accept4, l, 0, 0, SOCK_CLOEXEC)) >= 0);
	SHOW_RAW(RAW(SYS_write, c, "x", 1));
	SHOW_RAW(RAW(SYS_read, a, buf, 1));
	SHOW_RAW(RAW(SYS_shutdown, c, SHUT_WR));
	SHOW_RAW(RAW(SYS_read, a, buf, 1));
	/* What libc thinks of those numbers is the same. */
	SHOW(send((int)a, "y", 1, 0));
	SHOW_RAW(RAW(SYS_read, c, 8, 1));
	SHOW(recv((int)c, buf, 1, MSG_WAITALL));
	SHOW_RAW(RAW(SYS_close, a));
	SHOW_RAW(RAW(SYS_close, a));
	SHOW_RAW(RAW(SYS_close, c));
	SHOW_RAW(RAW(SYS_close, l));
}

CASE(raw_calls)
{
	long pid = getpid();

	echo();
	SHOW_RAW(RAW(SYS_getpid) == pid);
	SHOW_RAW(RAW(4711));
	SHOW_RAW(RAW(SYS_io_uring_setup, 0, 0) < 0);
	errno = 77;
	SHOW_RAW(RAW(SYS_close, -1));
	SHOW(errno);
}

#if defined(__x86_64__)
/* All registers except rax, rcx and r11 are the program's. */
CASE(raw_registers)
{
	unsigned long in[6] = { 0xb, 0x12, 0x13, 0x14, 0x15, 0xb9 }, out[6] = { 0 }, v[2] = { 0 };
	unsigned long red = 0;

	__asm__ volatile("mov %0, %%rax\n"
			 "movq 8(%%rax), %%xmm7\n"
			 "movq 16(%%rax), %%xmm15\n"
			 "mov 0(%%rax), %%rbx\n"
			 "mov 8(%%rax), %%r12\n"
			 "mov 16(%%rax), %%r13\n"
			 "mov 24(%%rax), %%r14\n"
			 "mov 32(%%rax), %%r15\n"
			 "mov %%rbx, -128(%%rsp)\n"
			 "mov $-1, %%rdi\n"
			 "mov $3, %%eax\n" /* close */
			 "stc\n"
			 "syscall\n"
			 "sbb %%rcx, %%rcx\n"
			 "mov %1, %%rax\n"
			 "mov %%rbx, 0(%%rax)\n"
			 "mov %%r12, 8(%%rax)\n"
			 "mov %%r13, 16(%%rax)\n"
			 "mov %%r14, 24(%%rax)\n"
			 "mov %%r15, 32(%%rax)\n"
			 "mov %%rcx, 40(%%rax)\n"
			 "mov %2, %%rax\n"
			 "movq %%xmm7, 0(%%rax)\n"
			 "movq %%xmm15, 8(%%rax)\n"
			 "mov -128(%%rsp), %%rcx\n"
			 "mov %3, %%rax\n"
			 "mov %%rcx, (%%rax)\n"
			 :
			 : "m"((unsigned long *){ in }), "m"((unsigned long *){ out }),
			   "m"((unsigned long *){ v }), "m"((unsigned long *){ &red })
			 : "rax", "rbx", "rcx", "rdi", "r11", "r12", "r13", "r14", "r15", "xmm7",
			   "xmm15", "memory", "cc");
	for (int i = 0; i < 6; i++)
		printf("%lx\n", out[i]);
	printf("%lx %lx %lx\n", v[0], v[1], red);
}
#endif

static void *posix_thread(void *unused)
{
	(void)unused;
	echo();
	return NULL;
}

static int c11_thread(void *unused)
{
	(void)unused;
	echo();
	return 7;
}

CASE(raw_threads)
{
	pthread_attr_t attr;
	sigset_t all;
	pthread_t p;
	thrd_t c;
	int value;

	MUST(!pthread_create(&p, NULL, posix_thread, NULL));
	SHOW(pthread_join(p, NULL));
	MUST(thrd_create(&c, c11_thread, NULL) == thrd_success);
	SHOW(thrd_join(c, &value) == thrd_success);
	SHOW(value);
	/* One that is made with all signals blocked. */
	sigfillset(&all);
	pthread_attr_init(&attr);
	SHOW(pthread_attr_setsigmask_np(&attr, &all));
	MUST(!pthread_create(&p, &attr, posix_thread, NULL));
	SHOW(pthread_join(p, NULL));
}

static volatile sig_atomic_t caught;
static sigjmp_buf out;

static void catch(int sig)
{
	char c;

	caught = sig;
	RAW(SYS_read, -1, &c, 1);
}

static void leave(int sig)
{
	caught = sig;
	siglongjmp(out, 1);
}

static void receive(void *data)
{
	SHOW_RAW(RAW(SYS_read, *(int *)data, buf, 1));
}

/* A raw call waits, a handler interrupts it and makes raw calls itself. */
CASE(raw_interrupted)
{
	struct sigaction act = { .sa_handler = catch };
	struct worker w;
	int udp[2];

	datagram_pair(udp);
	SHOW(sigaction(SIGUSR1, &act, NULL));
	start_and_await(&w, receive, udp);
	MUST(!pthread_kill(w.thread, SIGUSR1));
	join(&w);
	SHOW(caught == SIGUSR1);
	act.sa_flags = SA_RESTART;
	SHOW(sigaction(SIGUSR2, &act, NULL));
	start_and_await(&w, receive, udp);
	MUST(!pthread_kill(w.thread, SIGUSR2));
	while (caught != SIGUSR2)
		sched_yield();
	MUST(send(udp[1], "x", 1, 0) == 1); /* both threads would speak at once */
	join(&w);
	/* A handler that does not return. */
	act.sa_handler = leave;
	SHOW(sigaction(SIGALRM, &act, NULL));
	for (int i = 0; i < 3; i++)
		if (!sigsetjmp(out, 1)) {
			ualarm(20000, 0);
			receive(udp);
		}
	SHOW(caught == SIGALRM);
	alarm(60);
	echo();
}

struct kernel_action {
	void (*handler)(int);
	unsigned long flags;
	void (*restorer)(void);
	unsigned long mask;
};

static void count(int sig)
{
	caught = sig;
}

static char other_stack[65536];

static void where(int sig)
{
	char here;

	(void)sig;
	SHOW(&here >= other_stack && &here < other_stack + sizeof(other_stack));
}

/* A handler of SIGSYS runs on the stack that its program wants. */
CASE(raw_handler_stack)
{
	struct sigaction act = { .sa_handler = where };
	stack_t other = { .ss_sp = other_stack, .ss_size = sizeof(other_stack) };

	MUST(!sigaltstack(&other, NULL));
	MUST(!sigaction(SIGSYS, &act, NULL));
	SHOW(raise(SIGSYS));
	act.sa_flags = SA_ONSTACK;
	MUST(!sigaction(SIGSYS, &act, NULL));
	SHOW(raise(SIGSYS));
}

/* The kernel's own structure, as runtimes without libc use it. */
CASE(raw_sigaction)
{
#if defined(__x86_64__)
	struct kernel_action act = { .handler = count,
				     .flags = SA_RESTART | 0x04000000,
				     .mask = ~0ul },
			     old;
	struct sigaction libcs;
	int udp[2];

	/* The handler needs code by which to return: that of libc is used. */
	sigaction(SIGUSR1, &(struct sigaction){ .sa_handler = count }, NULL);
	SHOW_RAW(RAW(SYS_rt_sigaction, SIGUSR1, 0, &old, 8));
	SHOW(old.handler == count);
	SHOW(old.mask);
	act.restorer = old.restorer;
	SHOW_RAW(RAW(SYS_rt_sigaction, SIGUSR1, &act, &old, 8));
	SHOW_RAW(RAW(SYS_rt_sigaction, SIGUSR1, &act, &old, 4));
	SHOW_RAW(RAW(SYS_rt_sigaction, SIGUSR1, 8, &old, 8));
	SHOW_RAW(RAW(SYS_rt_sigaction, SIGKILL, &act, 0, 8));
	SHOW_RAW(RAW(SYS_rt_sigaction, 99, &act, 0, 8));
	SHOW(sigaction(SIGUSR1, NULL, &libcs));
	SHOW(libcs.sa_handler == count);
	SHOW(libcs.sa_flags & SA_RESTART);
	caught = 0;
	SHOW(raise(SIGUSR1));
	SHOW(caught == SIGUSR1);
	datagram_pair(udp);
	echo();
#endif
}

/* With all signals blocked raw calls go on, also in a handler. */
CASE(masks)
{
	struct sigaction act = { .sa_handler = catch };
	sigset_t all, now;
	unsigned long kernels = ~0ul;

	sigfillset(&all);
	act.sa_mask = all;
	SHOW(sigaction(SIGUSR1, &act, NULL));
	SHOW(raise(SIGUSR1));
	SHOW(caught == SIGUSR1);
	SHOW(sigprocmask(SIG_BLOCK, &all, NULL));
	SHOW_RAW(RAW(SYS_close, -1));
	SHOW(pthread_sigmask(SIG_SETMASK, &all, NULL));
	SHOW_RAW(RAW(SYS_close, -1));
	SHOW_RAW(RAW(SYS_rt_sigprocmask, SIG_BLOCK, &kernels, 0, 8));
	SHOW_RAW(RAW(SYS_rt_sigprocmask, SIG_BLOCK, 8, 0, 8));
	SHOW_RAW(RAW(SYS_rt_sigprocmask, 4711, &kernels, 0, 8));
	SHOW_RAW(RAW(SYS_close, -1));
	SHOW(sigprocmask(SIG_SETMASK, NULL, &now));
	SHOW(sigismember(&now, SIGUSR1));
	SHOW(sigismember(&now, SIGTERM));
	SHOW(raise(SIGUSR1));
	sigdelset(&all, SIGUSR1);
	caught = 0;
	SHOW(sigsuspend(&all));
	SHOW(caught == SIGUSR1);
	echo();
}

static volatile sig_atomic_t bad_system_call;
static volatile char selector;

static void on_sigsys(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	bad_system_call = info->si_code;
	selector = 0; /* or the handler could not return */
}

/* SIGSYS and the dispatch are the program's as well. */
CASE(raw_dispatch)
{
	struct sigaction act = { .sa_sigaction = on_sigsys, .sa_flags = SA_SIGINFO }, old;

	SHOW(sigaction(SIGSYS, &act, &old));
	SHOW(old.sa_handler == SIG_DFL);
	SHOW_RAW(RAW(SYS_close, -1));
	SHOW(bad_system_call);
	SHOW(raise(SIGSYS));
	SHOW(bad_system_call == SI_TKILL);
	SHOW(sigaction(SIGSYS, NULL, &old));
	SHOW(old.sa_sigaction == on_sigsys);
	SHOW(prctl(PR_GET_DUMPABLE));
	SHOW(prctl(4711, 0, 0, 0, 0));
#if defined(__x86_64__)
	if (prctl(59, 1, 0, 0, &selector)) {
		puts("no dispatch");
		return;
	}
	selector = 1; /* all calls, from here on */
	RAW(SYS_close, -1);
	SHOW(bad_system_call);
	SHOW(prctl(59, 0, 0, 0, 0));
	SHOW_RAW(RAW(SYS_close, -1));
#endif
}

/* Children made by raw calls. */
CASE(raw_fork)
{
	/* flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls */
	static uint64_t fork_args[8] = { [4] = SIGCHLD };
	static volatile int shared;
	long pid;
	int status;

#if defined(__x86_64__)
	pid = RAW(SYS_fork);
	if (!pid) {
		echo();
		RAW(SYS_exit_group, 3);
	}
	MUST(waitpid((pid_t)pid, &status, 0) == pid);
	SHOW(WEXITSTATUS(status));
#endif
	pid = RAW(SYS_clone, SIGCHLD);
	if (!pid) {
		echo();
		RAW(SYS_exit_group, 4);
	}
	MUST(waitpid((pid_t)pid, &status, 0) == pid);
	SHOW(WEXITSTATUS(status));
	pid = RAW(SYS_clone3, &fork_args, sizeof(fork_args));
	if (!pid) {
		echo();
		RAW(SYS_exit_group, 6);
	}
	MUST(waitpid((pid_t)pid, &status, 0) == pid);
	SHOW(WEXITSTATUS(status));
	pid = syscall(SYS_clone3, &fork_args, sizeof(fork_args));
	if (!pid) {
		echo();
		_exit(7);
	}
	MUST(waitpid((pid_t)pid, &status, 0) == pid);
	SHOW(WEXITSTATUS(status));
	/* As Go starts programs. */
	pid = RAW(SYS_clone, CLONE_VFORK | CLONE_VM | SIGCHLD);
	if (!pid) {
		shared = 5;
		RAW(SYS_exit, 5);
	}
	MUST(waitpid((pid_t)pid, &status, 0) == pid);
	SHOW(WEXITSTATUS(status));
	SHOW(shared);
	echo();
}

#if defined(__x86_64__)
/* One byte comes in at the listener of that number, and goes back. */
static void serve_one(int listener)
{
	long a = RAW(SYS_accept, listener, 0, 0);

	SHOW(a >= 0);
	SHOW_RAW(RAW(SYS_read, a, buf, 1));
	SHOW_RAW(RAW(SYS_write, a, buf, 1));
	SHOW_RAW(RAW(SYS_close, a));
}

#define PASSED 30

/* What raw_vfork executes. */
CASE(raw_passed)
{
	if (fcntl(PASSED, F_GETFD) < 0)
		puts("there is no such descriptor");
	else
		serve_one(PASSED);
}

static struct {
	long none, moved, mask;
} seen_by_child;

/* As Go does it; in its parent's memory, so it says nothing itself. */
__attribute__((noinline, noreturn)) static void child_executes(int listener, bool nests)
{
	struct kernel_action none = { .handler = SIG_DFL };
	char *const argv[] = { "raw", "raw_passed", NULL };
	volatile long pid;

	for (int sig = 1; sig < NSIG; sig++)
		RAW(SYS_rt_sigaction, sig, &none, 0, 8);
	seen_by_child.mask = RAW(SYS_rt_sigprocmask, SIG_SETMASK, &none.mask, 0, 8);
	seen_by_child.none = RAW(SYS_execve, "/no/such/program", argv, environ);
	seen_by_child.moved = RAW(SYS_dup3, listener, PASSED, 0);
	if (nests) {
		pid = RAW(SYS_clone, CLONE_VFORK | CLONE_VM | SIGCHLD);
		if (!pid)
			RAW(SYS_exit, 0);
		RAW(SYS_wait4, pid, 0, 0, 0);
		RAW(SYS_exit, 7);
	}
	RAW(SYS_execve, "/proc/self/exe", argv, environ);
	for (;;)
		RAW(SYS_exit, 9);
}

/* The child of a raw vfork hands a socket to the program that it executes, and leaves its parent
 * as it was. */
CASE(raw_vfork)
{
	static uint64_t vfork_args[8] = { CLONE_VFORK | CLONE_VM, [4] = SIGCHLD };
	struct sigaction act = { .sa_handler = catch };
	struct sockaddr_in addr;
	int listener = bound(SOCK_STREAM, &addr), c = -1, status;
	volatile long pid;
	volatile int how;

	SHOW(sigaction(SIGUSR1, &act, NULL));
	for (how = 0; how < 4; how++) {
		if (how == 0)
			pid = RAW(SYS_clone, CLONE_VFORK | CLONE_VM | SIGCHLD);
		else if (how == 1)
			pid = RAW(SYS_vfork);
		else if (how == 2)
			pid = RAW(SYS_clone3, vfork_args, sizeof(vfork_args));
		else
			pid = RAW(SYS_clone, CLONE_VFORK | CLONE_VM | SIGCHLD);
		if (!pid)
			child_executes(listener, how == 3);
		printf("way %d\n", how);
		SHOW_RAW(seen_by_child.none);
		SHOW_RAW(seen_by_child.moved);
		SHOW_RAW(seen_by_child.mask);
		if (how < 3) { /* the child speaks, too */
			c = socket(AF_INET, SOCK_STREAM, 0);
			MUST(!connect(c, (struct sockaddr *)&addr, sizeof(addr)));
			MUST(send(c, "x", 1, 0) == 1);
		}
		MUST(waitpid((pid_t)pid, &status, 0) == pid);
		SHOW(WEXITSTATUS(status));
		if (how < 3) {
			SHOW(recv(c, buf, 2, MSG_WAITALL));
			SHOW(close(c));
		}
		SHOW(fcntl(PASSED, F_GETFD));
	}
	caught = 0;
	SHOW(raise(SIGUSR1));
	SHOW(caught == SIGUSR1);
	SHOW_RAW(RAW(SYS_read, 8, 8, 1));
	SHOW(sigaction(SIGSEGV, NULL, &act));
	SHOW(act.sa_handler == SIG_DFL);
	echo();
}

static int woken;
static volatile long in_handler[3];

/* Other calls than the one that it has interrupted, with other results. */
static void call_elsewhere(int sig)
{
	char text[32];

	for (int i = 0; i < 3; i++)
		in_handler[i] = RAW(SYS_readlink, "/proc/self/exe", text, i + 2);
	if (woken >= 0)
		RAW(SYS_sendto, woken, "x", 1, 0, 0, 0);
	caught = sig;
}

/* A handler on an alternate stack, a large or a small one, interrupts a raw call. */
CASE(raw_alternate_stack)
{
	struct sigaction act = { .sa_handler = call_elsewhere };
	int udp[2];

	datagram_pair(udp);
	for (size_t size = 65536; size >= 8192; size /= 8) {
		stack_t other = { .ss_sp = malloc(size), .ss_size = size };

		MUST(!sigaltstack(&other, NULL));
		for (int restarts = 0; restarts < 2; restarts++) {
			woken = restarts ? udp[1] : -1;
			act.sa_flags = SA_ONSTACK | (restarts ? SA_RESTART : 0);
			MUST(!sigaction(SIGALRM, &act, NULL));
			caught = 0;
			ualarm(20000, 0);
			SHOW_RAW(RAW(SYS_recvfrom, udp[0], buf, 1, 0, 0, 0));
			SHOW(caught == SIGALRM);
			for (int i = 0; i < 3; i++)
				SHOW(in_handler[i]);
		}
	}
	MUST(signal(SIGALRM, SIG_DFL) != SIG_ERR);
	alarm(60);
	echo();
}

/* A thread without libc: it may only make raw calls, and here it makes one. */
CASE(raw_clone)
{
	long *stack = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long tid;

	MUST(stack != MAP_FAILED);
	__asm__ volatile("syscall\n"
			 "test %%rax, %%rax\n"
			 "jnz 1f\n"
			 "xor %%edi, %%edi\n"
			 "mov $60, %%eax\n"
			 "syscall\n"
			 "1:\n"
			 : "=a"(tid)
			 : "0"(SYS_clone),
			   "D"(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
			       CLONE_SYSVSEM),
			   "S"(stack + 8192), "d"(0)
			 : "rcx", "r11", "memory");
	SHOW(tid > 0);
	echo();
}
#endif
