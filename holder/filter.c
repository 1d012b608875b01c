// SPDX-License-Identifier: GPL-2.0-only
/*
 * Stage 7 of isolation.c: the filter of system calls, for all threads of the process.
 *
 * It is a list: a call that is not in it fails with EPERM. The list is what a carrier or a servant
 * makes from then on, of its own and by libc: to move data, to wait, to have memory and threads.
 * For some calls the filter looks at an argument as well:
 *
 *	mmap, mprotect	memory is not made executable
 *	socket		of IPv4 and IPv6 only: who listens on an abstract Unix socket of the
 *			host may believe a user id
 *	socketpair	of Unix sockets, and of the kind that stays connected: one of datagrams
 *			sends to any address
 *	newfstatat	of a descriptor, as libc makes fstat of it
 *	ioctl		what relays ask about sockets and interfaces, and what is set on the
 *			descriptor of a tap that comes while the stack has programs
 *	clone		threads only; a servant makes processes, too. clone3, whose arguments a
 *			filter cannot see, does not exist here: libc then calls clone
 *	tgkill, ...	signals to itself only; kill: none, it asks only whether a process is there
 *	prlimit64	of itself only
 *
 * What is missing from it on purpose: to open, make or change files, to execute programs, to look
 * at or change another process, namespaces, keys, BPF, io_uring, and all that takes rights.
 */
#include "holder/isolation.h"

#include "host/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/if_tun.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#if defined(__x86_64__)
#define MACHINE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define MACHINE AUDIT_ARCH_AARCH64
#endif

#ifndef SYS_rseq
#define SYS_rseq -1
#endif
#ifndef SYS_clone3
#define SYS_clone3 435
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

/* Whatever the arguments are. */
static const int plain[] = {
	/* data */
	SYS_read,
	SYS_write,
	SYS_readv,
	SYS_writev,
	SYS_pread64,
	SYS_pwrite64,
	SYS_lseek,
	SYS_sendto,
	SYS_recvfrom,
	SYS_sendmsg,
	SYS_recvmsg,
	SYS_sendmmsg,
	SYS_recvmmsg,
	/* sockets */
	SYS_connect,
	SYS_bind,
	SYS_listen,
	SYS_accept4,
	SYS_accept,
	SYS_shutdown,
	SYS_getsockname,
	SYS_getpeername,
	SYS_getsockopt,
	SYS_setsockopt,
	/* descriptors */
	SYS_close,
	SYS_close_range,
	SYS_dup,
	SYS_dup3,
	SYS_fcntl,
	SYS_fstat,
	SYS_pipe2,
	SYS_eventfd2,
	SYS_pidfd_open,
	/* waiting */
	SYS_ppoll,
	SYS_pselect6,
	SYS_epoll_create1,
	SYS_epoll_ctl,
	SYS_epoll_pwait,
	SYS_futex,
	SYS_nanosleep,
	SYS_clock_nanosleep,
	SYS_clock_gettime,
	SYS_clock_getres,
	SYS_gettimeofday,
	SYS_restart_syscall,
	SYS_sched_yield,
	/* memory */
	SYS_munmap,
	SYS_mremap,
	SYS_madvise,
	SYS_brk,
	SYS_mincore,
	SYS_membarrier,
	/* threads, signals */
	SYS_exit,
	SYS_exit_group,
	SYS_gettid,
	SYS_getpid,
	SYS_getppid,
	SYS_set_robust_list,
	SYS_set_tid_address,
	SYS_rseq,
	SYS_rt_sigaction,
	SYS_rt_sigprocmask,
	SYS_rt_sigreturn,
	SYS_rt_sigtimedwait,
	SYS_rt_sigpending,
	SYS_sigaltstack,
	SYS_sched_getaffinity,
	SYS_getcpu,
	/* of itself */
	SYS_getuid,
	SYS_geteuid,
	SYS_getgid,
	SYS_getegid,
	SYS_getresuid,
	SYS_getresgid,
	SYS_getgroups,
	SYS_capget,
	SYS_getrandom,
	SYS_sysinfo,
	SYS_uname,
	SYS_getrlimit,
#ifdef SYS_poll /* older than their kin above; some machines do not have them */
	SYS_poll,
	SYS_epoll_wait,
	SYS_select,
	SYS_time,
#endif
};

/* Of a servant, beside these. */
static const int of_servant[] = {
	SYS_wait4,    SYS_memfd_create, SYS_ftruncate,         SYS_setsid, SYS_prctl, SYS_setfsuid,
	SYS_setfsgid, SYS_tgkill,       SYS_rt_tgsigqueueinfo,
};

#define MOST 320

struct filter {
	struct sock_filter code[MOST];
	unsigned short n;
};

static void add(struct filter *f, struct sock_filter instruction)
{
	if (f->n < MOST)
		f->code[f->n++] = instruction;
}

static void load(struct filter *f, size_t at)
{
	add(f, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)at));
}

static void end(struct filter *f, uint32_t with)
{
	add(f, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, with));
}

/* The instructions up to the next n are for that call only. */
static void if_call(struct filter *f, int nr, uint8_t n)
{
	add(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)nr, 0, n));
}

static void allow(struct filter *f, const int *call, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (call[i] >= 0) {
			if_call(f, call[i], 1);
			end(f, SECCOMP_RET_ALLOW);
		}
}

static const uint32_t refuse = SECCOMP_RET_ERRNO | EPERM;

/* The lower half of an argument, on machines that begin with it. */
static size_t argument(unsigned int i)
{
	return offsetof(struct seccomp_data, args) + i * sizeof(uint64_t);
}

/* Allowed if the argument has none of these bits (or: has all of them). */
static void allow_bits(struct filter *f, int nr, unsigned int i, uint32_t bits, bool has)
{
	if_call(f, nr, 4);
	load(f, argument(i));
	add(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, has ? 0 : 1,
					    has ? 1 : 0));
	end(f, SECCOMP_RET_ALLOW);
	end(f, refuse);
}

/* Allowed if the argument is one of n values. */
static void allow_values(struct filter *f, int nr, unsigned int i, const uint32_t *value, uint8_t n)
{
	if_call(f, nr, (uint8_t)(2 * n + 2));
	load(f, argument(i));
	for (uint8_t k = 0; k < n; k++) {
		add(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value[k], 0, 1));
		end(f, SECCOMP_RET_ALLOW);
	}
	end(f, refuse);
}

/* What parts of guise talk over. */
static void allow_channels(struct filter *f)
{
	if_call(f, SYS_socketpair, 6);
	load(f, argument(0));
	add(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_UNIX, 0, 3));
	load(f, argument(1));
	add(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
					    SOCK_SEQPACKET | SOCK_CLOEXEC, 0, 1));
	end(f, SECCOMP_RET_ALLOW);
	end(f, refuse);
}

/* A process of a servant's makes others by clone, as its C library does in fork. */
static void allow_clone(struct filter *f, bool forks)
{
	const uint32_t spaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
				CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_PTRACE;

	if (forks)
		allow_bits(f, SYS_clone, 0, spaces, false);
	else
		allow_bits(f, SYS_clone, 0, CLONE_THREAD, true);
	if_call(f, SYS_clone3, 1);
	end(f, SECCOMP_RET_ERRNO | ENOSYS);
}

void isolation_seal(bool forks, unsigned int *left)
{
	const uint32_t self[] = { (uint32_t)host_sys(SYS_getpid), 0 };
	static const uint32_t family[] = { AF_INET, AF_INET6 };
	static const uint32_t control[] = {
		SIOCATMARK, SIOCOUTQ,        SIOCGIFINDEX,  SIOCGIFNAME, SIOCGIFHWADDR,
		SIOCGIFMTU, TUNSETVNETHDRSZ, TUNSETOFFLOAD, TUNGETIFF,
	};
	const uint32_t nothing = 0;
	static struct filter f;
	struct sock_fprog program = { .filter = f.code };

	f.n = 0;
#ifdef MACHINE
	load(&f, offsetof(struct seccomp_data, arch));
	add(&f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MACHINE, 1, 0));
	end(&f, SECCOMP_RET_KILL_PROCESS);
	load(&f, offsetof(struct seccomp_data, nr));
	allow(&f, plain, sizeof(plain) / sizeof(*plain));
	if (forks)
		allow(&f, of_servant, sizeof(of_servant) / sizeof(*of_servant));
	/* From here on each ends the filter for its call: the number stays where it is loaded. */
	allow_bits(&f, SYS_mmap, 2, PROT_EXEC, false);
	allow_bits(&f, SYS_mprotect, 2, PROT_EXEC, false);
	allow_bits(&f, SYS_newfstatat, 3, AT_EMPTY_PATH, true);
	allow_values(&f, SYS_socket, 0, family, sizeof(family) / sizeof(*family));
	allow_channels(&f);
	allow_values(&f, SYS_ioctl, 1, control, sizeof(control) / sizeof(*control));
	allow_values(&f, SYS_prlimit64, 0, self, 2);
	allow_values(&f, SYS_kill, 1, &nothing, 1);
	if (!forks) {
		allow_values(&f, SYS_tgkill, 0, self, 1);
		allow_values(&f, SYS_rt_tgsigqueueinfo, 0, self, 1);
	}
	allow_clone(&f, forks);
	end(&f, refuse);
	program.len = f.n;
	if (f.n < MOST &&
	    !host_sys(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program))
		return;
#endif
	*left |= ISOLATION_CALLS;
}
