// SPDX-License-Identifier: GPL-2.0-only
/*
 * A program that is served, with a real stack: this process has the stack and is the servant, its
 * child has the ring alone. The child makes calls of each shape, in several threads, with signals
 * and with descriptors of the host; then it writes into the ring what no honest program would.
 */
#include "served/client.h"
#include "served/servant.h"

#include "guise/guise.h"
#include "guise/syscall.h"
#include "host/signal.h"
#include "host/sys.h"
#include "region/vcpu.h"
#include "test/tap.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <linux/ethtool.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BIG (4u << 20)

static struct guise_stack served; /* the child's */

#define CALL_OF(s, nr, a, b, c, d, e, f)                                                    \
	guise_call(s, GUISE_NR_##nr, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), \
		   (long)(f))
#define CALL(nr, a, b, c, d, e, f) CALL_OF(&served, nr, a, b, c, d, e, f)

static struct sockaddr_in loopback(unsigned int port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons((uint16_t)port),
				     .sin_addr = { htonl(INADDR_LOOPBACK) } };
}

static long listener(unsigned int port)
{
	struct sockaddr_in a = loopback(port);
	long fd = CALL(socket, AF_INET, SOCK_STREAM, 0, 0, 0, 0);

	return CALL(bind, fd, &a, sizeof(a), 0, 0, 0) || CALL(listen, fd, 8, 0, 0, 0, 0) ? -1 : fd;
}

static long bound(unsigned int port)
{
	struct sockaddr_in a = loopback(port);
	long fd = CALL(socket, AF_INET, SOCK_DGRAM, 0, 0, 0, 0);

	return CALL(bind, fd, &a, sizeof(a), 0, 0, 0) ? -1 : fd;
}

static char *sent, *received;

static void *sender(void *arg)
{
	struct sockaddr_in a = loopback(1000);
	long fd = CALL(socket, AF_INET, SOCK_STREAM, 0, 0, 0, 0), n;

	(void)arg;
	if (CALL(connect, fd, &a, sizeof(a), 0, 0, 0))
		return "connect";
	n = CALL(write, fd, sent, BIG, 0, 0, 0);
	CALL(close, fd, 0, 0, 0, 0, 0);
	return n == BIG ? NULL : "write";
}

static void streams(void)
{
	struct sockaddr_in who;
	socklen_t length = sizeof(who);
	long fd = listener(1000), new, n, all = 0;
	pthread_t thread;
	void *failed = "";

	sent = malloc(BIG);
	received = malloc(BIG);
	for (unsigned int i = 0; i < BIG; i++)
		sent[i] = (char)(i * 31 + i / 251);
	pthread_create(&thread, NULL, sender, NULL);
	new = CALL(accept4, fd, &who, &length, SOCK_CLOEXEC, 0, 0);
	tap(new >= 0 && length == sizeof(who) && who.sin_addr.s_addr == htonl(INADDR_LOOPBACK),
	    "accepts, and is told from where");
	while ((n = CALL(read, new, received + all, BIG - all, 0, 0, 0)) > 0)
		all += n;
	pthread_join(thread, &failed);
	tap(!failed, "one write of 4 MiB to a stream is done whole");
	tap(!n && all == BIG && !memcmp(sent, received, BIG), "and all of it arrives, in order");
	CALL(close, new, 0, 0, 0, 0, 0);
	CALL(close, fd, 0, 0, 0, 0, 0);
}

/* As many as a message can have, and its name, and what comes with it. */
static void many_buffers(long a, long b, struct sockaddr_in *to)
{
	static char bytes[UIO_MAXIOV];
	static struct iovec in[UIO_MAXIOV];
	struct sockaddr_in from = { 0 };
	char beside[64];
	struct msghdr m = { .msg_name = &from,
			    .msg_namelen = sizeof(from),
			    .msg_iov = in,
			    .msg_iovlen = UIO_MAXIOV,
			    .msg_control = beside,
			    .msg_controllen = sizeof(beside) };

	for (unsigned int i = 0; i < UIO_MAXIOV; i++)
		in[i] = (struct iovec){ &bytes[i], 1 };
	tap(CALL(sendto, a, sent, UIO_MAXIOV, 0, to, sizeof(*to)) == UIO_MAXIOV &&
		    CALL(recvmsg, b, &m, 0, 0, 0, 0) == UIO_MAXIOV &&
		    !memcmp(bytes, sent, UIO_MAXIOV) && m.msg_namelen == sizeof(from) &&
		    from.sin_port == htons(1001) && !m.msg_controllen && !m.msg_flags,
	    "a message comes into 1024 buffers");
}

static void messages(void)
{
	long a = bound(1001), b = bound(1002);
	struct sockaddr_in to = loopback(1002), from = { 0 };
	char one[] = "first", two[] = "second", x[4], y[64];
	struct iovec out[2] = { { one, 5 }, { two, 6 } }, in[2] = { { x, 4 }, { y, 64 } };
	struct msghdr m = {
		.msg_name = &to, .msg_namelen = sizeof(to), .msg_iov = out, .msg_iovlen = 2
	};
	struct mmsghdr many[3], got[3];
	struct iovec part[3], gather[3];
	char text[3][8];

	tap(CALL(sendmsg, a, &m, 0, 0, 0, 0) == 11, "a message of two buffers");
	m = (struct msghdr){
		.msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = in, .msg_iovlen = 2
	};
	memset(y, '#', sizeof(y));
	tap(CALL(recvmsg, b, &m, 0, 0, 0, 0) == 11 && !memcmp(x, "firs", 4) &&
		    !memcmp(y, "tsecond#", 8) && from.sin_port == htons(1001) &&
		    m.msg_namelen == sizeof(from),
	    "comes into two others, with its sender, and no byte more");
	for (int i = 0; i < 3; i++) {
		part[i] = (struct iovec){ &one[i], (size_t)(i + 1) };
		many[i].msg_hdr = (struct msghdr){ .msg_name = &to,
						   .msg_namelen = sizeof(to),
						   .msg_iov = &part[i],
						   .msg_iovlen = 1 };
		gather[i] = (struct iovec){ text[i], 8 };
		got[i].msg_hdr = (struct msghdr){ .msg_iov = &gather[i], .msg_iovlen = 1 };
	}
	tap(CALL(sendmmsg, a, many, 3, 0, 0, 0) == 3 && many[2].msg_len == 3,
	    "three messages in one call");
	tap(CALL(recvmmsg, b, got, 3, MSG_DONTWAIT, 0, 0) == 3 && got[0].msg_len == 1 &&
		    got[2].msg_len == 3 && !memcmp(text[1], "ir", 2) && !memcmp(text[2], "rst", 3),
	    "come in one call");
	many_buffers(a, b, &to);
	CALL(sendto, a, one, 5, 0, &to, sizeof(to));
	tap(CALL(recvfrom, b, x, 4, MSG_TRUNC, 0, 0) == 5 && !memcmp(x, "firs", 4),
	    "a message that is longer than its buffer");
	tap(CALL(sendto, a, sent, 100000, 0, &to, sizeof(to)) == -EMSGSIZE, "one that is too long");
	tap(CALL(sendto, a, sent, BIG, 0, &to, sizeof(to)) == -EMSGSIZE, "and far too long");
	CALL(close, a, 0, 0, 0, 0, 0);
	CALL(close, b, 0, 0, 0, 0, 0);
}

static void options(void)
{
	long fd = CALL(socket, AF_INET, SOCK_STREAM, 0, 0, 0, 0), n;
	struct ethtool_value link = { .cmd = ETHTOOL_GLINK, .data = 77 };
	struct ifreq r = { .ifr_name = "lo" }, list[4];
	struct ifconf c = { .ifc_len = sizeof(list), .ifc_req = list };
	struct {
		struct nlmsghdr h;
		struct rtgenmsg g;
	} ask = { { sizeof(ask), RTM_GETLINK, NLM_F_REQUEST | NLM_F_DUMP, 1, 0 }, { AF_UNSPEC } };
	int value = 70000;
	socklen_t length = sizeof(value);
	char text[8192];

	tap(!CALL(setsockopt, fd, SOL_SOCKET, SO_RCVBUF, &value, sizeof(value), 0) &&
		    !CALL(getsockopt, fd, SOL_SOCKET, SO_RCVBUF, &value, &length, 0) &&
		    value == 140000 && length == sizeof(value),
	    "an option is set and read");
	tap(!CALL(ioctl, fd, SIOCGIFFLAGS, &r, 0, 0, 0) && r.ifr_flags & IFF_UP,
	    "ioctl: an interface's flags");
	tap(!CALL(ioctl, fd, SIOCGIFCONF, &c, 0, 0, 0) && c.ifc_len == sizeof(list[0]) &&
		    c.ifc_req == list && !strcmp(list[0].ifr_name, "lo"),
	    "ioctl: the list of interfaces, by a pointer in its argument");
	r.ifr_data = (void *)&link;
	tap(!CALL(ioctl, fd, SIOCETHTOOL, &r, 0, 0, 0) && link.data == 1 &&
		    r.ifr_data == (void *)&link,
	    "ioctl: of ethtool, likewise");
	CALL(close, fd, 0, 0, 0, 0, 0);
	fd = CALL(socket, AF_NETLINK, SOCK_RAW, NETLINK_ROUTE, 0, 0, 0);
	CALL(sendto, fd, &ask, sizeof(ask), 0, 0, 0);
	n = CALL(recvfrom, fd, text, sizeof(text), 0, 0, 0);
	tap(n > 100 && ((struct nlmsghdr *)text)->nlmsg_type == RTM_NEWLINK, "netlink: a dump");
	CALL(close, fd, 0, 0, 0, 0, 0);
	fd = CALL(openat, AT_FDCWD, "/proc/sys/net/ipv4/ip_forward", O_RDONLY, 0, 0, 0);
	tap(fd >= 0 && CALL(read, fd, text, sizeof(text), 0, 0, 0) == 2 && *text == '0',
	    "a file of the stack");
	CALL(close, fd, 0, 0, 0, 0, 0);
}

static void waits(void)
{
	const struct timespec little = { .tv_nsec = 20000000 };
	long fd = bound(1003), ep = CALL(epoll_create1, 0, 0, 0, 0, 0, 0);
	struct pollfd p = { .fd = (int)fd, .events = POLLIN };
	struct epoll_event ev = { .events = EPOLLIN, .data.u64 = 0x1122334455667788 }, got;
	struct sockaddr_in to = loopback(1003);

	tap(!CALL(ppoll, &p, 1, &little, 0, 0, 0), "ppoll ends with its time");
	CALL(epoll_ctl, ep, EPOLL_CTL_ADD, fd, &ev, 0, 0);
	tap(!CALL(epoll_pwait, ep, &got, 1, 20, 0, 0), "so does epoll");
	CALL(sendto, fd, "x", 1, 0, &to, sizeof(to));
	tap(CALL(ppoll, &p, 1, 0, 0, 0, 0) == 1 && p.revents == POLLIN, "ppoll sees a datagram");
	tap(CALL(epoll_pwait, ep, &got, 1, -1, 0, 0) == 1 && got.data.u64 == ev.data.u64,
	    "epoll, too");
	CALL(close, ep, 0, 0, 0, 0, 0);
	CALL(close, fd, 0, 0, 0, 0, 0);
}

static int pipes[2];

static void *writes_later(void *arg)
{
	const struct timespec moment = { .tv_nsec = 50000000 };

	nanosleep(&moment, NULL);
	/* A number of the stack's may be 0. */
	return arg ? (void *)CALL(sendto, (long)arg - 1, "x", 1, 0,
				  (&(struct sockaddr_in[]){ loopback(1004) }[0]),
				  sizeof(struct sockaddr_in))
		   : (void *)(write(pipes[1], "x", 1) - 1);
}

static void mixed_waits(void)
{
	long fd = bound(1004), ret;
	struct pollfd p = { .fd = (int)fd, .events = POLLIN }, host;
	pthread_t thread;
	int ready = 0;
	char c;

	if (pipe2(pipes, O_CLOEXEC))
		return;
	host = (struct pollfd){ .fd = pipes[0], .events = POLLIN };
	pthread_create(&thread, NULL, writes_later, NULL);
	ret = guise_call_polling(&served, &host, 1, &ready, GUISE_NR_ppoll, (long)&p, 1, 0, 0, 0,
				 0);
	tap(ret <= 0 && ready == 1 && host.revents == POLLIN,
	    "a wait for both ends with the host's descriptor");
	pthread_join(thread, NULL);
	tap(read(pipes[0], &c, 1) == 1, "which can be read");
	pthread_create(&thread, NULL, writes_later, (void *)(fd + 1));
	ret = guise_call_polling(&served, &host, 1, &ready, GUISE_NR_ppoll, (long)&p, 1, 0, 0, 0,
				 0);
	if (!tap(ret == 1 && ready <= 0 && p.revents == POLLIN, "or with the stack's"))
		printf("# %ld %d %x\n", ret, ready, (unsigned int)p.revents);
	pthread_join(thread, NULL);
	CALL(close, fd, 0, 0, 0, 0, 0);
}

static volatile int caught;
static long in_handler;

static void handle(int sig)
{
	(void)sig;
	in_handler = CALL(getppid, 0, 0, 0, 0, 0, 0);
	caught++;
}

static pthread_t main_thread;

static void *kills(void *arg)
{
	const struct timespec moment = { .tv_nsec = 30000000 };
	struct sockaddr_in to = loopback(1005);

	nanosleep(&moment, NULL);
	pthread_kill(main_thread, SIGUSR1);
	nanosleep(&moment, NULL);
	return (void *)CALL(sendto, (long)arg, "x", 1, 0, &to, sizeof(to));
}

static void signals(void)
{
	long fd = bound(1005), ret;
	struct sigaction act = { .sa_handler = handle };
	pthread_t thread;
	char c;

	main_thread = pthread_self();
	guise_signal_action(SIGUSR1, &act, NULL);
	pthread_create(&thread, NULL, kills, (void *)fd);
	ret = CALL(recvfrom, fd, &c, 1, 0, 0, 0);
	tap(ret == -EINTR && caught == 1 && in_handler >= 0,
	    "a signal ends a wait; its handler makes a call");
	pthread_join(thread, NULL);
	CALL(recvfrom, fd, &c, 1, 0, 0, 0);
	act.sa_flags = SA_RESTART;
	guise_signal_action(SIGUSR1, &act, NULL);
	pthread_create(&thread, NULL, kills, (void *)fd);
	ret = CALL(recvfrom, fd, &c, 1, 0, 0, 0);
	tap(ret == 1 && caught == 2, "with SA_RESTART it is waited for again");
	pthread_join(thread, NULL);
	CALL(close, fd, 0, 0, 0, 0, 0);
}

/* Addresses that are nobody's, and a page of which the second is not there. */
static void bad_pointers(void)
{
	char *edge = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long fd = bound(1006);
	struct sockaddr_in to = loopback(1006);
	struct msghdr m = { .msg_iov = (void *)8, .msg_iovlen = 1 };

	munmap(edge + 4096, 4096);
	tap(CALL(sendto, fd, 8, 100, 0, &to, sizeof(to)) == -EFAULT &&
		    CALL(sendto, fd, edge + 4000, 200, 0, &to, sizeof(to)) == -EFAULT &&
		    CALL(sendmsg, fd, &m, 0, 0, 0, 0) == -EFAULT &&
		    CALL(sendmsg, fd, 8, 0, 0, 0, 0) == -EFAULT &&
		    CALL(bind, fd, 8, sizeof(to), 0, 0, 0) == -EFAULT &&
		    CALL(openat, AT_FDCWD, 8, O_RDONLY, 0, 0, 0) == -EFAULT &&
		    CALL(ioctl, fd, SIOCGIFFLAGS, 8, 0, 0, 0) == -EFAULT,
	    "bad pointers give EFAULT");
	strcpy(edge + 4096 - 6, "/proc");
	tap(CALL(openat, AT_FDCWD, edge + 4096 - 6, O_RDONLY | O_DIRECTORY, 0, 0, 0) >= 0,
	    "a string at the edge of its page is read to its end, and no further");
	CALL(close, fd, 0, 0, 0, 0, 0);
}

/* ---- what no honest program does ------------------------------------------------------------- */

/* Writes a call into a lane as it is, and waits for its answer. */
static long raw(uint64_t nr, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	struct guise_lane *lane = guise_ring_lane(served.served->ring, 900);
	uint32_t number = lane->asked + 1;

	lane->nr = nr;
	lane->arg[0] = a;
	lane->arg[1] = b;
	lane->arg[2] = c;
	lane->arg[3] = d;
	lane->arg[4] = lane->arg[5] = 0;
	__atomic_store_n(&lane->asked, number, __ATOMIC_SEQ_CST);
	guise_futex_wake(&lane->asked, 1);
	if (served.served->ring->lanes <= 900)
		served.served->ring->lanes = 901;
	__atomic_add_fetch(&served.served->ring->bell, 1, __ATOMIC_SEQ_CST);
	guise_futex_wake(&served.served->ring->bell, 1);
	while (__atomic_load_n(&lane->answered, __ATOMIC_ACQUIRE) != number)
		;
	return lane->ret;
}

/* victim: of the servant's memory; region: an address in the stack's. */
static void attacks(char *victim, uint64_t region)
{
	struct guise_ring *ring = served.served->ring;
	uint64_t end = (uint64_t)ring + GUISE_RING_SIZE, honest = ring->address;
	char *room = guise_ring_room(ring, 900);
	long fd = bound(1007);
	struct sockaddr_in to = loopback(1007);

	memcpy(room, &to, sizeof(to));
	tap(raw(GUISE_NR_connect, (uint64_t)fd, (uint64_t)room, sizeof(to), 0) == 0,
	    "an honest pointer");
	tap(raw(GUISE_NR_write, (uint64_t)fd, (uint64_t)victim, 8, 0) == -EFAULT &&
		    raw(GUISE_NR_write, (uint64_t)fd, region, 8, 0) == -EFAULT &&
		    raw(GUISE_NR_write, (uint64_t)fd, end - 4, 8, 0) == -EFAULT &&
		    raw(GUISE_NR_write, (uint64_t)fd, (uint64_t)ring - 4, 8, 0) == -EFAULT,
	    "the servant's memory, the stack's, and what is beside the ring cannot be read");
	tap(raw(GUISE_NR_write, (uint64_t)fd, end - 8, 8, 0) == 8, "the ring's last bytes can");
	tap(raw(GUISE_NR_write, (uint64_t)fd, (uint64_t)room, 8, 0) == 8 &&
		    raw(GUISE_NR_read, (uint64_t)fd, (uint64_t)victim, 8, 0) == -EFAULT,
	    "nor written");
	tap(raw(GUISE_NR_ALLOC, 4096, 0, 0, 0) == -ENOSYS &&
		    raw(GUISE_NR_FREE, region, 4096, 0, 0) == -ENOSYS &&
		    raw(GUISE_NR_FORK, 1, region, 1, 0) == -ENOSYS &&
		    raw(GUISE_NR_IDENTIFY, 0, 0, 0, 0) == -ENOSYS &&
		    raw(GUISE_NR_LINK_DEL, 0, 0, 0, 0) == -ENOSYS &&
		    raw(GUISE_NR_kill, 1, 9, 0, 0) == -ENOSYS && raw(~0ull, 0, 0, 0, 0) == -ENOSYS,
	    "calls that are for members only are refused");
	memset(room, 0, 16);
	tap(raw(GUISE_NR_prlimit64, 1, RLIMIT_CPU, (uint64_t)room, 0) == -ENOSYS &&
		    raw(GUISE_NR_fcntl, (uint64_t)fd, F_SETOWN, 1, 0) == -ENOSYS &&
		    raw(GUISE_NR_fcntl, (uint64_t)fd, F_SETOWN_EX, (uint64_t)room, 0) == -ENOSYS &&
		    raw(GUISE_NR_ioctl, (uint64_t)fd, FIOSETOWN, (uint64_t)room, 0) == -ENOSYS &&
		    raw(GUISE_NR_ioctl, (uint64_t)fd, SIOCSPGRP, (uint64_t)room, 0) == -ENOSYS,
	    "other processes of the stack are not limited, nor sent signals");
	tap(raw(GUISE_NR_prlimit64, 0, RLIMIT_CPU, (uint64_t)room, 0) == -ENOSYS &&
		    raw(GUISE_NR_prlimit64, 0, RLIMIT_RTTIME, (uint64_t)room, 0) == -ENOSYS &&
		    raw(GUISE_NR_fcntl, (uint64_t)fd, F_SETSIG, SIGKILL, 0) == -ENOSYS,
	    "nor is the servant killed by what it does");
	tap(raw(GUISE_NR_prlimit64, 0, RLIMIT_NOFILE, 0, (uint64_t)room) == 0,
	    "the program's own limits are told");
	ring->address = 0;
	tap(raw(GUISE_NR_write, (uint64_t)fd, (uint64_t)victim, 8, 0) == -EFAULT,
	    "another address of the ring helps nobody");
	ring->address = (uint64_t)0 - (uint64_t)GUISE_RING_ROOMS;
	tap(raw(GUISE_NR_write, (uint64_t)fd, (uint64_t)victim, 8, 0) == -EFAULT,
	    "nor one that wraps around");
	ring->address = honest;
	ring->lanes = ~0u;
	__atomic_add_fetch(&ring->bell, 1, __ATOMIC_SEQ_CST);
	guise_futex_wake(&ring->bell, 1);
	tap(CALL(getppid, 0, 0, 0, 0, 0, 0) >= 0, "more lanes than there are do no harm");
}

/* ---- a stack that is left -------------------------------------------------------------------- */

static struct guise_stack *second;
static int called[2], left[2];

static void *ends_later(void *arg)
{
	char c;
	const bool good = guise_call(second, GUISE_NR_getppid, 0, 0, 0, 0, 0, 0) >= 0 &&
			  write(called[1], "x", 1) == 1 && read(left[0], &c, 1) == 1;

	return good ? arg : NULL;
}

/* Another stack, over the same ring: the first is not used any more. */
static void leaves(const struct guise_servant *v, int ring)
{
	pthread_t thread;
	void *good = NULL;
	char c;

	second = guise_stack_new();
	if (!second || pipe2(called, O_CLOEXEC) || pipe2(left, O_CLOEXEC))
		return;
	for (int i = 0; i < GUISE_LANE_BELLS; i++)
		second->bell[i] = dup(v->bell[i]);
	second->route = GUISE_SERVED;
	second->served = guise_served_open(ring);
	pthread_create(&thread, NULL, ends_later, second);
	tap(read(called[0], &c, 1) == 1 && CALL_OF(second, getppid, 0, 0, 0, 0, 0, 0) >= 0,
	    "two threads make calls");
	guise_leave(second);
	if (write(left[1], "x", 1) != 1)
		return;
	pthread_join(thread, &good);
	tap(good, "one ends when the other has left the stack");
}

/* ---- a sandbox ------------------------------------------------------------------------------- */

static bool enough;

static void *calls_on(void *made)
{
	while (!__atomic_load_n(&enough, __ATOMIC_RELAXED))
		if (CALL(getppid, 0, 0, 0, 0, 0, 0) >= 0)
			__atomic_add_fetch((unsigned long *)made, 1, __ATOMIC_RELAXED);
	return NULL;
}

/* The filter ends the program if one of its threads makes sched_yield(2). */
static bool filter_yields(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_yield, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog filter = { sizeof(code) / sizeof(code[0]), code };

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter);
}

static void sandbox(void)
{
	static unsigned long made[4];
	pthread_t thread[4];
	bool filtered, all = true;

	tap(!guise_served_filtered(), "there is no filter yet");
	for (int i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, calls_on, &made[i]);
	guise_served_sandbox(served.served);
	filtered = filter_yields();
	tap(filtered && guise_served_filtered(), "there is one now");
	for (int i = 0; i < 4; i++) {
		unsigned long then = __atomic_load_n(&made[i], __ATOMIC_RELAXED);

		while (__atomic_load_n(&made[i], __ATOMIC_RELAXED) < then + 2000)
			usleep(1000);
	}
	__atomic_store_n(&enough, true, __ATOMIC_RELAXED);
	for (int i = 0; i < 4; i++)
		all = !pthread_join(thread[i], NULL) && all;
	tap(all, "threads wait for answers without the call that it forbids");
}

/* from: says where the region is, once the servant has one. */
static int child(struct guise_servant *v, int from, char *victim)
{
	uint64_t region;
	int again = dup(v->fd);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (read(from, &region, sizeof(region)) != sizeof(region))
		return 1;
	served.route = GUISE_SERVED;
	served.control = -1;
	memcpy(served.bell, v->bell, sizeof(v->bell));
	served.served = guise_served_open(v->fd);
	if (!tap(served.served, "the ring is opened"))
		return tap_end();
	guise_fault_handler(&guise_stacks_signals);
	tap(CALL(getppid, 0, 0, 0, 0, 0, 0) >= 0, "a first call");
	streams();
	messages();
	options();
	waits();
	mixed_waits();
	signals();
	bad_pointers();
	attacks(victim, region);
	leaves(v, again);
	sandbox();
	return tap_end();
}

static void *run_servant(void *arg)
{
	guise_servant_run(arg);
}

int main(void)
{
	struct guise_options opt = GUISE_OPTIONS_INIT;
	static char path[4096], victim[64] = "untouched";
	struct guise_servant *v;
	struct guise_stack *s;
	int err, made[2], status = 0;
	pthread_t thread;
	pid_t pid;

	alarm(120);
	if (readlink("/proc/self/exe", path, sizeof(path) - 64) < 0)
		return 1;
	strcat(dirname(path), "/../../../guise-kernel");
	opt.image = path;
	v = guise_servant_make(NULL);
	if (!v || pipe2(made, O_CLOEXEC))
		return 1;
	/* Before there are threads: one of them may be in malloc(). */
	pid = fork();
	if (!pid) {
		close(made[1]);
		status = child(v, made[0], victim);
		fflush(stdout);
		_exit(status);
	}
	s = guise_create(&opt, &err);
	if (!s) {
		printf("# %s\n", guise_error());
		return 1;
	}
	v->stack = s;
	if (write(made[1], &s->region, sizeof(s->region)) != sizeof(s->region))
		return 1;
	pthread_create(&thread, NULL, run_servant, v);
	waitpid(pid, &status, 0);
	/* Its threads are in the stack yet: so this process does not leave it, but ends. */
	return WIFEXITED(status) && !strcmp(victim, "untouched") ? WEXITSTATUS(status) : 1;
}
