// SPDX-License-Identifier: GPL-2.0-only
/*
 * The calls that a program may make: system calls of Linux that concern a network
 * stack, under their generic numbers, and a few of the port's own. All others give
 * ENOSYS: they need an MMU, or programs that the kernel runs itself, or do not concern
 * a network stack.
 */
#include <linux/fdtable.h>
#include <linux/file.h>
#include <linux/gfp.h>
#include <linux/if_packet.h>
#include <linux/init_syscalls.h>
#include <linux/mm.h>
#include <linux/nsproxy.h>
#include <linux/sched.h>
#include <linux/socket.h>
#include <linux/syscalls.h>
#include <net/net_namespace.h>

#include <asm/guise.h>
#include <asm/unistd.h>

typedef long (*guise_call_t)(u64, u64, u64, u64, u64, u64);

/* Memory in one piece, cleared, on page boundaries: for tables that stay when a process
 * executes another program. */
static long guise_alloc(u64 bytes)
{
	void *p;

	if (!bytes || bytes > (4UL << 20))
		return -EINVAL;
	p = alloc_pages_exact(bytes, GFP_KERNEL | __GFP_ZERO | __GFP_NOWARN);
	return p ? (long)p : -ENOMEM;
}

static long guise_free(u64 addr, u64 bytes)
{
	if (!virt_addr_valid(addr) || !PAGE_ALIGNED(addr))
		return -EINVAL;
	free_pages_exact((void *)addr, bytes);
	return 0;
}

/* Makes a network namespace and returns a descriptor of it. The caller stays in its own. */
static long guise_netns_new(void)
{
	struct nsproxy *old = current->nsproxy;
	struct file *file;
	long err, fd;

	get_nsproxy(old);
	err = ksys_unshare(CLONE_NEWNET);
	if (!err) {
		file = filp_open("/proc/thread-self/ns/net", O_RDONLY, 0);
		err = PTR_ERR_OR_ZERO(file);
		if (!err) {
			fd = get_unused_fd_flags(O_CLOEXEC);
			if (fd >= 0)
				fd_install(fd, file);
			else
				fput(file);
			err = fd;
		}
		switch_task_namespaces(current, old);
		return err;
	}
	put_nsproxy(old);
	return err;
}

static long guise_own_call(u64 nr, const u64 *a)
{
	switch (nr) {
	case GUISE_NR_LINK_ADD:
		return guise_link_add(a[0]);
	case GUISE_NR_LINK_DEL:
		return guise_link_del(a[0]);
	case GUISE_NR_ALLOC:
		return guise_alloc(a[0]);
	case GUISE_NR_FREE:
		return guise_free(a[0], a[1]);
	case GUISE_NR_NETNS_NEW:
		return guise_netns_new();
	case GUISE_NR_GIVE:
		return guise_give(a[0], a[1]);
	case GUISE_NR_TAKE:
		return guise_take(a[0], a[1]);
	case GUISE_NR_INODE:
		return guise_set_inode(a[0], a[1]);
	case GUISE_NR_RING:
		return guise_ring(a[0], a[1], a[2]);
	case GUISE_NR_RING_MAPPED:
		return guise_ring_mapped(a[0], a[1]);
	case GUISE_NR_FORK:
		return guise_fork(a[0], a[1], a[2], a[3], a[4]);
	case GUISE_NR_LINK_CARRIER:
		return guise_link_carrier(a[0], a[1]);
	case GUISE_NR_IDENTIFY:
		return guise_identify(a);
	}
	return -ENOSYS;
}

/*
 * Zero copy would pin pages of the program, and the port has page structs only for its own
 * memory. A program that requests it gets the error of a kernel without it, and sends with
 * a copy. The rings of a packet socket cannot be changed while they are mapped (ring.c).
 */
static long guise_setsockopt(u64 fd, u64 level, u64 name, u64 value, u64 len, u64 unused)
{
	if (level == SOL_SOCKET && name == SO_ZEROCOPY)
		return -ENOPROTOOPT;
	if (level == SOL_PACKET && (name == PACKET_RX_RING || name == PACKET_TX_RING) &&
	    guise_ring_is_mapped(fd))
		return -EBUSY;
	return sys_setsockopt(fd, level, name, (char __user *)value, len);
}

/*
 * MSG_CMSG_COMPAT: a kernel that also runs programs of 32 bits sets this flag for their
 * messages, and refuses it from programs. The port runs no such programs, and without
 * this check it would ignore the flag.
 */
#define OF_32_BITS 0x80000000

static long guise_sendmsg(u64 fd, u64 msg, u64 flags, u64 a, u64 b, u64 c)
{
	return flags & OF_32_BITS ? -EINVAL : sys_sendmsg(fd, (void __user *)msg, flags);
}

static long guise_recvmsg(u64 fd, u64 msg, u64 flags, u64 a, u64 b, u64 c)
{
	return flags & OF_32_BITS ? -EINVAL : sys_recvmsg(fd, (void __user *)msg, flags);
}

static long guise_sendmmsg(u64 fd, u64 msgs, u64 n, u64 flags, u64 a, u64 b)
{
	return flags & OF_32_BITS ? -EINVAL : sys_sendmmsg(fd, (void __user *)msgs, n, flags);
}

static long guise_recvmmsg(u64 fd, u64 msgs, u64 n, u64 flags, u64 timeout, u64 a)
{
	if (flags & OF_32_BITS)
		return -EINVAL;
	return sys_recvmmsg(fd, (void __user *)msgs, n, flags, (void __user *)timeout);
}

/* sys_*() differ only in the types of their parameters, which are all passed in registers. */
#define CALL(name) [__NR_##name] = (guise_call_t)(void *)sys_##name

/* clang-format would put each call on a line of its own. */
/* clang-format off */
static const guise_call_t guise_calls[__NR_syscalls] = {
	/* Sockets. */
	CALL(socket), CALL(socketpair), CALL(bind), CALL(listen), CALL(accept),
	CALL(accept4), CALL(connect), CALL(shutdown), CALL(getsockname),
	CALL(getpeername), CALL(sendto), CALL(recvfrom),
	[__NR_sendmsg] = guise_sendmsg, [__NR_recvmsg] = guise_recvmsg,
	[__NR_sendmmsg] = guise_sendmmsg, [__NR_recvmmsg] = guise_recvmmsg,
	[__NR_setsockopt] = guise_setsockopt, CALL(getsockopt),
	/* Files: sockets, and the stack's /proc and /sys. */
	CALL(read), CALL(write), CALL(readv), CALL(writev), CALL(pread64),
	CALL(pwrite64), CALL(preadv), CALL(pwritev), CALL(preadv2),
	CALL(pwritev2), CALL(lseek),
	CALL(openat), CALL(close), CALL(close_range), CALL(dup), CALL(dup3),
	[__NR3264_fcntl] = (guise_call_t)(void *)sys_fcntl, CALL(ioctl),
	CALL(getdents64), CALL(statx), CALL(readlinkat), CALL(mkdirat), CALL(unlinkat),
	CALL(mknodat), CALL(mount), CALL(faccessat),
	[__NR_umount2] = (guise_call_t)(void *)sys_umount,
	CALL(splice), CALL(tee), [__NR3264_sendfile] = (guise_call_t)(void *)sys_sendfile64,
	CALL(pipe2), CALL(fsync),
	/* Waiting. */
	CALL(ppoll), CALL(pselect6), CALL(epoll_create1), CALL(epoll_ctl),
	CALL(epoll_pwait), CALL(epoll_pwait2), CALL(eventfd2),
	CALL(timerfd_create), CALL(timerfd_settime), CALL(timerfd_gettime),
	CALL(nanosleep), CALL(clock_nanosleep), CALL(clock_gettime),
	CALL(clock_getres), CALL(gettimeofday),
	/* Processes and namespaces. */
	CALL(getpid), CALL(getppid), CALL(gettid), CALL(getuid), CALL(geteuid),
	CALL(getgid), CALL(getegid), CALL(setns), CALL(unshare),
	[__NR_uname] = (guise_call_t)(void *)sys_newuname,
	CALL(sysinfo), CALL(sched_yield), CALL(kill), CALL(tgkill),
	CALL(prlimit64), CALL(capget), CALL(capset), CALL(sethostname),
};
/* clang-format on */

long guise_syscall(u64 nr, const u64 arg[6])
{
	if (likely(nr < __NR_syscalls && guise_calls[nr]))
		return guise_calls[nr](arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
	return guise_own_call(nr, arg);
}
