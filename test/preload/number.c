// SPDX-License-Identifier: GPL-2.0-only
/* System calls by number, as libraries make them that their libc lacks. */
#include "case.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <ucontext.h>

static char buf[100];

static void datagrams(void)
{
	struct iovec v = { "many", 4 }, room = { buf, sizeof(buf) };
	struct mmsghdr m[2] = { { .msg_hdr = { .msg_iov = &v, .msg_iovlen = 1 } },
				{ .msg_hdr = { .msg_iov = &v, .msg_iovlen = 1 } } };
	int fd[2];

	datagram_pair(fd);
	SHOW(syscall(SYS_sendmmsg, fd[0], m, 2, 0));
	SHOW(m[1].msg_len);
	m[0].msg_hdr.msg_iov = m[1].msg_hdr.msg_iov = &room;
	SHOW(syscall(SYS_recvmmsg, fd[1], m, 2, MSG_DONTWAIT, NULL));
	SHOW(syscall(SYS_sendmsg, fd[0], &m[0].msg_hdr, 0));
	SHOW(syscall(SYS_recvmsg, fd[1], &m[0].msg_hdr, 0));
	SHOW(syscall(SYS_close, fd[0]));
	SHOW(syscall(SYS_close, fd[0]));
}

static void waits(int fd)
{
	struct timespec none = { 0 };
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	struct epoll_event ev = { .events = EPOLLOUT };
	sigset_t mask;
	struct {
		sigset_t *mask;
		size_t size;
	} six = { &mask, 8 };
	fd_set set;
	int ep;

	sigemptyset(&mask);
	FD_ZERO(&set);
	FD_SET(fd, &set);
	SHOW(syscall(SYS_ppoll, &p, 1, &none, NULL, 8));
	SHOW(syscall(SYS_pselect6, fd + 1, NULL, &set, NULL, &none, &six));
	SHOW(syscall(SYS_pselect6, fd + 1, NULL, &set, NULL, &none, NULL));
	SHOW(ep = (int)syscall(SYS_epoll_create1, 0));
	SHOW(syscall(SYS_epoll_ctl, ep, EPOLL_CTL_ADD, fd, &ev));
	SHOW(syscall(SYS_epoll_pwait, ep, &ev, 1, 0, NULL, 8));
	SHOW(syscall(SYS_epoll_pwait2, ep, &ev, 1, &none, NULL, 8));
#ifdef SYS_poll
	SHOW(syscall(SYS_poll, &p, 1, 0));
	SHOW(syscall(SYS_epoll_wait, ep, &ev, 1, 0));
#endif
	SHOW(syscall(SYS_dup, ep));
	SHOW(syscall(SYS_close_range, ep, ep, 0));
}

CASE(by_number)
{
	struct sockaddr_in addr = loopback(0);
	socklen_t len = sizeof(addr);
	struct iovec v = { buf, 5 };
	int l, c, a, value = 1;

	SHOW(l = (int)syscall(SYS_socket, AF_INET, SOCK_STREAM, 0));
	SHOW(syscall(SYS_setsockopt, l, SOL_SOCKET, SO_REUSEADDR, &value, sizeof(value)));
	SHOW(syscall(SYS_bind, l, &addr, len));
	SHOW(syscall(SYS_listen, l, 5));
	SHOW(syscall(SYS_getsockname, l, &addr, &len));
	SHOW(c = (int)syscall(SYS_socket, AF_INET, SOCK_STREAM, 0));
	SHOW(syscall(SYS_connect, c, &addr, len));
	SHOW(a = (int)syscall(SYS_accept4, l, NULL, NULL, SOCK_CLOEXEC));
	SHOW(syscall(SYS_getpeername, c, &addr, &len));
	SHOW(syscall(SYS_getsockopt, c, SOL_SOCKET, SO_TYPE, &value, &len));
	SHOW(syscall(SYS_write, c, "12345", 5));
	SHOW(syscall(SYS_read, a, buf, 5));
	SHOW(syscall(SYS_writev, c, &v, 1));
	SHOW(syscall(SYS_readv, a, &v, 1));
	SHOW(syscall(SYS_sendto, c, "12345", 5, 0, NULL, 0));
	SHOW(syscall(SYS_recvfrom, a, buf, 5, MSG_WAITALL, NULL, NULL));
	SHOW(syscall(SYS_fcntl, a, F_SETFL, O_NONBLOCK));
	SHOW(syscall(SYS_read, a, buf, 5));
	SHOW(syscall(SYS_ioctl, a, 0xdead, buf));
	SHOW(syscall(SYS_dup3, a, 30, 0));
	SHOW(syscall(SYS_shutdown, a, SHUT_WR));
	SHOW(syscall(SYS_recvfrom, c, buf, 5, 0, NULL, NULL));
	SHOW(syscall(SYS_socketpair, AF_INET, SOCK_STREAM, 0, buf));
	SHOW(syscall(SYS_getpid) == getpid());
	SHOW(syscall(4711));
	datagrams();
	waits(c);
}

#define TRAP(nr) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP)

static volatile sig_atomic_t answered;

/* The call that was refused, made by its older number; as Chromium's handler does it. */
static void answer(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
#if defined(__x86_64__)
	greg_t *regs = uc->uc_mcontext.gregs, *result = &regs[REG_RAX];
	long a = regs[REG_RDI], b = regs[REG_RSI], c = regs[REG_RDX], d = regs[REG_R10];
#elif defined(__aarch64__)
	unsigned long long *regs = uc->uc_mcontext.regs, *result = &regs[0];
	long a = (long)regs[0], b = (long)regs[1], c = (long)regs[2], d = (long)regs[3];
#endif
	const char *path = (const char *)b;
	long ret = -ENOSYS;

	(void)sig;
	answered++;
	if (info->si_syscall == SYS_newfstatat && !*path && d & AT_EMPTY_PATH)
		ret = syscall(SYS_fstat, (int)a, c);
#ifdef SYS_open
	else if (info->si_syscall == SYS_newfstatat && d & AT_SYMLINK_NOFOLLOW)
		ret = syscall(SYS_lstat, path, c);
	else if (info->si_syscall == SYS_newfstatat)
		ret = syscall(SYS_stat, path, c);
	else if (info->si_syscall == SYS_openat)
		ret = syscall(SYS_open, path, (int)c, (int)d);
#endif
	*result = ret == -1 ? -errno : ret;
}

/* A number is that one, not what libc makes of it: where a filter traps libc's, the handler's
 * own call by the older number goes through. */
CASE(by_older_number)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		TRAP(SYS_newfstatat),
#ifdef SYS_open
		TRAP(SYS_openat),
#endif
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(f) / sizeof(*f), f };
	struct sigaction act = { .sa_sigaction = answer, .sa_flags = SA_SIGINFO | SA_NODEFER };
	struct stat st;

	SHOW(socket(AF_INET, SOCK_DGRAM, 0));
	MUST(!sigaction(SIGSYS, &act, NULL));
	MUST(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	MUST(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
	SHOW(fstat(STDIN_FILENO, &st));
	SHOW(S_ISCHR(st.st_mode));
	SHOW(fstat(99, &st));
	SHOW(answered);
#ifdef SYS_open
	SHOW(stat("/dev/null", &st));
	SHOW(lstat("/dev/nonesuch", &st));
	SHOW(open("/dev/null", O_RDONLY));
	SHOW(answered);
#endif
}

/* Also those that the vDSO reads by a system call of its own, and those that do not exist. */
CASE(clocks)
{
	struct timespec first = { 0 }, last;
	struct timeval now;
	clockid_t own;

	MUST(!pthread_getcpuclockid(pthread_self(), &own));
	for (clockid_t id = 0; id <= 12; id++)
		SHOW(clock_gettime(id, &first));
	SHOW(clock_gettime(own, &first));
	SHOW(clock_gettime(99, &first));
	SHOW(clock_gettime(-1, &first));
	SHOW(clock_gettime(CLOCK_THREAD_CPUTIME_ID, (void *)8));
	SHOW(syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &first));
	SHOW(syscall(SYS_clock_gettime, CLOCK_MONOTONIC, 8));
	SHOW(gettimeofday(&now, NULL));
	SHOW(gettimeofday(NULL, NULL));
	SHOW(now.tv_sec > 1700000000);
	SHOW(clock() > 0);
	MUST(!clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &first));
	while (clock() < first.tv_sec * CLOCKS_PER_SEC + first.tv_nsec / 1000 + 20000)
		;
	SHOW(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &last));
	SHOW(last.tv_sec * 1000000000 + last.tv_nsec >=
	     first.tv_sec * 1000000000 + first.tv_nsec + 19000000);
}

static long slept(void)
{
	struct rusage used;

	getrusage(RUSAGE_SELF, &used);
	return used.ru_nvcsw;
}

/* A raw call stops for the tracer. */
CASE(clocks_are_no_raw_calls)
{
	struct timespec used;
	long before;

	SHOW(socket(AF_INET, SOCK_DGRAM, 0));
	before = slept();
	for (int i = 0; i < 1000; i++) {
		MUST(!clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used));
		MUST(clock() >= 0);
	}
	SHOW(slept() - before < 1000);
}
