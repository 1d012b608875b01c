// SPDX-License-Identifier: GPL-2.0-only
/*
 * System calls by number, through libc's syscall() and by an instruction of the program's own:
 * those whose arguments are not libc's, and those that are made on files.
 */
#include "call.h"

#include <linux/if_packet.h>
#include <linux/openat2.h>
#include <net/ethernet.h>
#include <sys/epoll.h>
#include <sys/stat.h>

#define TTL "/proc/sys/net/ipv4/ip_default_ttl"

/* -errno where it failed. */
typedef long maker(long nr, long a, long b, long c, long d, long e, long f);

static long by_libc(long nr, long a, long b, long c, long d, long e, long f)
{
	long ret = syscall(nr, a, b, c, d, e, f);

	return ret < 0 ? -errno : ret;
}

static long by_instruction(long nr, long a, long b, long c, long d, long e, long f)
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
	return by_libc(nr, a, b, c, d, e, f);
#endif
}

static maker *const makers[] = { by_libc, by_instruction };
static maker *make;

#define NUMBER6(nr, a, b, c, d, e, f, ...) \
	make(SYS_##nr, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
#define NUMBER(...) NUMBER6(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)

/* The call by number, what is said of it, and what the kernel returned. */
static long told(long ret, const char *what)
{
	errno = ret < 0 ? (int)-ret : 0;
	tell_result(ret < 0 ? -1 : ret, "%s", what);
	return ret;
}

#define NUMBERED(...) told(NUMBER(__VA_ARGS__), #__VA_ARGS__)

/* ---- waits ------------------------------------------------------------------------- */

static int udp[2], pipes[2];
static const char *whose; /* descriptors that are waited for */
static int first, second; /* or -1 */

static struct pollfd *waited(void)
{
	static struct pollfd p[2];

	p[0] = (struct pollfd){ .fd = first, .events = POLLIN };
	p[1] = (struct pollfd){ .fd = second, .events = POLLIN };
	return p;
}

static fd_set *set(void)
{
	fd_set *s = set_of(first);

	if (second >= 0)
		FD_SET(second, s);
	return s;
}

struct six {
	void *mask;
	long size;
};

/* ep waits for the same. */
static void waits_with_pointer(const char *name, void *at, int ep)
{
	const struct timespec none = { 0 };
	struct epoll_event ev;
	struct six six = { at, 8 };

	printf("%s, %s:\n", whose, name);
	if (strcmp(name, "NULL")) {
		NUMBERED(ppoll, waited(), 2, at, NULL, 8);
#ifdef SYS_select
		NUMBERED(select, 64, set(), NULL, NULL, at);
#endif
		NUMBERED(pselect6, 64, set(), NULL, NULL, at, NULL);
		NUMBERED(epoll_pwait2, ep, &ev, 1, at, NULL, 8);
	}
	NUMBERED(ppoll, waited(), 2, &none, at, 8);
	NUMBERED(ppoll, at, 1, &none, NULL, 8);
	NUMBERED(pselect6, 64, set(), NULL, NULL, &none, at);
	NUMBERED(pselect6, 64, set(), NULL, NULL, &none, &six);
	NUMBERED(pselect6, 64, at, NULL, NULL, &none, NULL);
	NUMBERED(epoll_pwait, ep, &ev, 1, 0, at, 8);
	NUMBERED(epoll_pwait2, ep, &ev, 1, &none, at, 8);
}

static void waits_with_mask_of(long size, int ep)
{
	const struct timespec none = { 0 };
	unsigned long mask[16] = { 0 };
	struct epoll_event ev;
	struct six six = { mask, size };

	printf("%s, %ld bytes of mask:\n", whose, size);
	NUMBERED(ppoll, waited(), 2, &none, mask, size);
	NUMBERED(pselect6, 64, set(), NULL, NULL, &none, &six);
	NUMBERED(epoll_pwait, ep, &ev, 1, 0, mask, size);
	NUMBERED(epoll_pwait2, ep, &ev, 1, &none, mask, size);
	six.mask = NULL;
	NUMBERED(ppoll, waited(), 2, &none, NULL, size);
	NUMBERED(pselect6, 64, set(), NULL, NULL, &none, &six);
	NUMBERED(epoll_pwait, ep, &ev, 1, 0, NULL, size);
}

static void waits_for(struct timespec time, int ep)
{
	struct timeval coarse = { time.tv_sec, time.tv_nsec / 1000 };
	struct timespec t = time;
	struct epoll_event ev;

	printf("%s, for %ld s and %ld ns:\n", whose, (long)time.tv_sec, time.tv_nsec);
	NUMBERED(ppoll, waited(), 2, &t, NULL, 8);
	printf("left: %ld %ld\n", (long)t.tv_sec, t.tv_nsec);
	t = time;
	NUMBERED(pselect6, 64, set(), NULL, NULL, &t, NULL);
	printf("left: %ld %ld\n", (long)t.tv_sec, t.tv_nsec);
#ifdef SYS_select
	NUMBERED(select, 64, set(), NULL, NULL, &coarse);
	printf("left: %ld %ld\n", (long)coarse.tv_sec, (long)coarse.tv_usec);
#endif
	t = time;
	NUMBERED(epoll_pwait2, ep, &ev, 1, &t, NULL, 8);
	printf("left: %ld %ld\n", (long)t.tv_sec, t.tv_nsec);
}

/* An hour, of which next to nothing has passed: what is ready is ready at once. */
static void waits_with_time_left(void)
{
	struct timespec t = { 3600, 5 };
	struct timeval coarse = { 3600, 5 };

	printf("%s, with time left:\n", whose);
	MUST(send(udp[1], "x", 1, 0) == 1 && write(pipes[1], "x", 1) == 1);
	NUMBERED(ppoll, waited(), 2, &t, NULL, 8);
	SHOW(t.tv_sec > 3500 && t.tv_sec <= 3600 && t.tv_nsec != 5);
	t = (struct timespec){ 3600, 5 };
	NUMBERED(pselect6, 64, set(), NULL, NULL, &t, NULL);
	SHOW(t.tv_sec > 3500 && t.tv_sec <= 3600 && t.tv_nsec != 5);
#ifdef SYS_select
	NUMBERED(select, 64, set(), NULL, NULL, &coarse);
	SHOW(coarse.tv_sec > 3500 && coarse.tv_sec <= 3600 && coarse.tv_usec != 5);
#endif
	MUST(recv(udp[0], &t, 1, 0) == 1 && read(pipes[0], &t, 1) == 1);
}

static void waits(int one, int other, const char *name)
{
	const struct timespec times[] = {
		{ 0, 0 }, { 0, 2000000 }, { 0, 1000000000 }, { 0, -1 }, { -1, 0 }
	};
	int ep = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event ev = { .events = EPOLLIN };

	whose = name;
	first = one;
	second = other;
	MUST(!epoll_ctl(ep, EPOLL_CTL_ADD, one, &ev));
	MUST(other < 0 || !epoll_ctl(ep, EPOLL_CTL_ADD, other, &ev));
	EACH_BAD_POINTER(p)
	waits_with_pointer(p->name, p->at, ep);
	for (long size = 0; size <= 128; size = size ? 2 * size : 4)
		waits_with_mask_of(size, ep);
	for (unsigned int i = 0; i < COUNT(times); i++)
		waits_for(times[i], ep);
	waits_with_time_left();
	close(ep);
}

CASE(waits_by_number)
{
	datagram_pair(udp);
	MUST(!pipe(pipes));
	for (unsigned int i = 0; i < COUNT(makers); i++) {
		make = makers[i];
		waits(udp[0], -1, "a socket");
		waits(pipes[0], -1, "a pipe");
		waits(udp[0], pipes[0], "both");
	}
}

/* ---- files ------------------------------------------------------------------------- */

static void positions(int fd)
{
	char text[32] = "", more[32] = "";
	struct iovec v[2] = { { text, 1 }, { more, sizeof(more) - 1 } }, other = { "64\n", 3 };

	NUMBERED(pwrite64, fd, "63\n", 3, 0);
	NUMBERED(pread64, fd, text, 2, 0);
	puts(text);
	NUMBERED(pread64, fd, text, 9, -1);
	NUMBERED(preadv, fd, v, 2, 0, 0);
	printf("%.1s%s", text, more);
	NUMBERED(preadv2, fd, v, 2, 1, 0, 0);
	NUMBERED(pwritev, fd, &other, 1, 0, 0);
	NUMBERED(lseek, fd, 0, SEEK_SET);
	NUMBERED(preadv2, fd, v, 2, -1, -1, 0);
	printf("%.1s%s", text, more);
	NUMBERED(pwritev2, fd, &other, 1, 0, 0, 0);
	EACH_BAD_POINTER(p)
	{
		printf("%s:\n", p->name);
		NUMBERED(pread64, fd, p->at, 9, 0);
		NUMBERED(preadv, fd, p->at, 1, 0, 0);
	}
}

static void attributes(const char *path)
{
	struct stat st;
	char text[64];

	puts(path);
	NUMBERED(getxattr, path, "system.posix_acl_access", text, 9);
	NUMBERED(lgetxattr, path, "system.posix_acl_access", text, 9);
	NUMBERED(listxattr, path, text, sizeof(text));
	NUMBERED(llistxattr, path, text, sizeof(text));
	NUMBERED(faccessat, AT_FDCWD, path, R_OK);
	NUMBERED(faccessat2, AT_FDCWD, path, R_OK, AT_EACCESS);
	NUMBERED(newfstatat, AT_FDCWD, path, &st, 0);
	NUMBERED(readlinkat, AT_FDCWD, path, text, sizeof(text));
#ifdef SYS_open
	NUMBERED(access, path, R_OK);
	NUMBERED(stat, path, &st);
	NUMBERED(lstat, path, &st);
	NUMBERED(readlink, path, text, sizeof(text));
#endif
}

static void opened(void)
{
	struct open_how how = { .flags = O_RDONLY | O_CLOEXEC };
	char text[32] = "";
	long fd;

	fd = NUMBER(openat2, AT_FDCWD, TTL, &how, sizeof(how));
	NUMBERED(read, fd, text, 2);
	puts(text);
	NUMBERED(close, fd);
	NUMBERED(openat2, AT_FDCWD, "/proc/net/no_such_file", &how, sizeof(how));
	NUMBERED(openat2, AT_FDCWD, TTL, &how, 8);
	EACH_BAD_POINTER(p)
	{
		printf("%s:\n", p->name);
		if (strcmp(p->name, "read only")) {
			NUMBERED(openat2, AT_FDCWD, p->at, &how, sizeof(how));
			NUMBERED(openat2, AT_FDCWD, TTL, p->at, sizeof(how));
			NUMBERED(openat, AT_FDCWD, p->at, O_RDONLY);
#ifdef SYS_open
			NUMBERED(open, p->at, O_RDONLY);
#endif
		}
	}
}

CASE(files_by_number)
{
	int fd = open(TTL, O_RDWR);

	for (unsigned int i = 0; i < COUNT(makers); i++) {
		make = makers[i];
		positions(fd);
		attributes(TTL);
		attributes("/sys/class/net/lo");
		attributes("/proc/net/no_such_file");
		opened();
	}
}

#define BLOCK 65536

CASE(ring_by_number)
{
	struct tpacket_req request = { BLOCK, 2, 2048, 2 * (BLOCK / 2048) };
	const size_t all = 2 * (size_t)BLOCK;

	for (unsigned int i = 0; i < COUNT(makers); i++) {
		int fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
		long ring;

		make = makers[i];
		MUST(!setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &request, sizeof(request)));
		NUMBERED(mmap, NULL, all / 2, PROT_READ, MAP_SHARED, fd, 0);
		ring = NUMBER(mmap, NULL, all, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		SHOW(ring > 0);
		NUMBERED(munmap, ring, all);
		SHOW(close(fd));
		ring = NUMBER(mmap, NULL, all, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		SHOW(ring > 0);
		NUMBERED(munmap, ring, all);
	}
}
