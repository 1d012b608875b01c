// SPDX-License-Identifier: GPL-2.0-only
/* A program's own tun and tap devices, by /dev/net/tun: as VPNs and emulators have them. */
#include "call.h"

#include <linux/if.h>
#include <linux/if_tun.h>
#include <linux/sockios.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#define TUN  "/dev/net/tun"
#define NAME "tun7"

static struct ifreq named(int flags)
{
	struct ifreq request = { .ifr_flags = (short)flags };

	strcpy(request.ifr_name, NAME);
	return request;
}

/* Whether there is such an interface, by an ioctl on a socket. */
static long exists(void)
{
	struct ifreq request = named(0);
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	long ret = ioctl(fd, SIOCGIFINDEX, &request);

	close(fd);
	return ret;
}

static int opened(int how, int kind)
{
	struct ifreq request = named(kind);
	int fd = open(TUN, how);

	MUST(fd >= 0 && !ioctl(fd, TUNSETIFF, &request));
	return fd;
}

/* Brings it up with 10.99.0.1/24, without the packets that IPv6 sends by itself. */
static void configure(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	int off = open("/proc/sys/net/ipv6/conf/" NAME "/disable_ipv6", O_WRONLY);
	struct sockaddr_in address = { .sin_family = AF_INET };
	struct ifreq request = named(0);

	MUST(write(off, "1", 1) == 1 && !close(off));
	address.sin_addr.s_addr = inet_addr("10.99.0.1");
	memcpy(&request.ifr_addr, &address, sizeof(address));
	MUST(!ioctl(fd, SIOCSIFADDR, &request));
	address.sin_addr.s_addr = inet_addr("255.255.255.0");
	memcpy(&request.ifr_netmask, &address, sizeof(address));
	MUST(!ioctl(fd, SIOCSIFNETMASK, &request));
	request = named(IFF_UP | IFF_RUNNING);
	MUST(!ioctl(fd, SIOCSIFFLAGS, &request));
	close(fd);
}

static int asking(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(7) };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	to.sin_addr.s_addr = inet_addr("10.99.0.2");
	MUST(!connect(fd, (void *)&to, sizeof(to)));
	return fd;
}

/* A packet of UDP with four bytes, on its way back with others. */
static void turn(unsigned char *packet, const char *text)
{
	unsigned char other[4];

	memcpy(other, packet + 12, 4);
	memcpy(packet + 12, packet + 16, 4);
	memcpy(packet + 16, other, 4);
	memcpy(other, packet + 20, 2);
	memcpy(packet + 20, packet + 22, 2);
	memcpy(packet + 22, other, 2);
	memset(packet + 26, 0, 2); /* no checksum */
	memcpy(packet + 28, text, 4);
}

static void show_packet(const unsigned char *packet, long n)
{
	MUST(n >= 32);
	printf("%ld bytes, protocol %d, %.4s\n", n, packet[9], packet + 28);
}

CASE(tun_requests)
{
	struct ifreq request = named(IFF_TUN | IFF_NO_PI);
	int fd, other, sent, size = 0;
	unsigned int features = 0;
	unsigned char buf[64];
	struct stat st;

	SHOW(access(TUN, R_OK | W_OK));
	SHOW(stat(TUN, &st));
	printf("%d %u:%u\n", S_ISCHR(st.st_mode), major(st.st_rdev), minor(st.st_rdev));
	SHOW(open(TUN "/below", O_RDWR));
	SHOW(open(TUN "nel", O_RDWR));
	fd = open(TUN, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	SHOW(fd < 0);
	SHOW(fcntl(fd, F_GETFD));
	SHOW(fcntl(fd, F_GETFL) & O_NONBLOCK);
	SHOW(fstat(fd, &st));
	printf("%d %u:%u\n", S_ISCHR(st.st_mode), major(st.st_rdev), minor(st.st_rdev));
	/* Not yet a device. */
	SHOW(read(fd, buf, sizeof(buf)));
	SHOW(write(fd, buf, sizeof(buf)));
	SHOW(ioctl(fd, TUNGETIFF, &request));
	SHOW(ioctl(fd, TUNGETFEATURES, &features));
	SHOW(features & (IFF_TUN | IFF_TAP | IFF_NO_PI | IFF_VNET_HDR | IFF_MULTI_QUEUE));
	EACH_BAD_POINTER(p)
	{
		if (strcmp(p->name, "read only"))
			TELL(ioctl(fd, TUNSETIFF, p->at), "ioctl(TUNSETIFF, %s)", p->name);
		TELL(ioctl(fd, TUNGETFEATURES, p->at), "ioctl(TUNGETFEATURES, %s)", p->name);
	}
	request = named(IFF_NO_PI);
	SHOW(ioctl(fd, TUNSETIFF, &request));
	request = named(IFF_TUN | IFF_NO_PI);
	SHOW(ioctl(fd, TUNSETIFF, &request));
	SHOW(exists());
	SHOW(ioctl(fd, TUNSETIFF, &request));
	memset(&request, 0, sizeof(request));
	SHOW(ioctl(fd, TUNGETIFF, &request));
	printf("%s %x\n", request.ifr_name, request.ifr_flags & (IFF_TUN | IFF_TAP | IFF_NO_PI));
	other = open(TUN, O_RDWR);
	request = named(IFF_TUN | IFF_NO_PI);
	SHOW(ioctl(other, TUNSETIFF, &request));
	SHOW(close(other));
	SHOW(ioctl(fd, TUNGETSNDBUF, &size) || size <= 0);
	SHOW(ioctl(fd, TUNSETOFFLOAD, TUN_F_CSUM));
	SHOW(ioctl(fd, TUNSETOFFLOAD, 0x8000));
	SHOW(ioctl(fd, 0x5499, 0));
	other = ioctl(fd, TUNGETDEVNETNS);
	SHOW(other < 0);
	SHOW(close(other));
	SHOW(read(fd, buf, sizeof(buf)));
	SHOW(lseek(fd, 0, SEEK_SET));
	SHOW(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED);
	SHOW(send(fd, buf, 1, 0));
	SHOW(getsockname(fd, NULL, NULL));
	/* Still there with one of its descriptors, and gone with the last. */
	other = dup(fd);
	SHOW(close(fd));
	SHOW(exists());
	SHOW(close(other));
	SHOW(exists());
	/* One that stays. */
	fd = opened(O_RDWR, IFF_TAP | IFF_NO_PI);
	SHOW(ioctl(fd, TUNSETPERSIST, 1));
	SHOW(close(fd));
	SHOW(exists());
	fd = opened(O_RDWR, IFF_TAP | IFF_NO_PI);
	SHOW(ioctl(fd, TUNSETPERSIST, 0));
	SHOW(close(fd));
	SHOW(exists());
	/* By number. */
	fd = (int)syscall(SYS_openat, AT_FDCWD, TUN, O_RDWR);
	request = named(IFF_TUN | IFF_NO_PI);
	SHOW(syscall(SYS_ioctl, fd, TUNSETIFF, &request));
	SHOW(exists());
	configure();
	sent = asking();
	SHOW(send(sent, "ping", 4, 0));
	SHOW(syscall(SYS_read, fd, buf, sizeof(buf)));
	SHOW(syscall(SYS_close, fd));
	SHOW(exists());
	close(sent);
}

CASE(tun_traffic)
{
	int fd = opened(O_RDWR | O_CLOEXEC, IFF_TUN | IFF_NO_PI), host = eventfd(0, 0);
	int epoll = epoll_create1(0), sent, status;
	struct epoll_event event = { .events = EPOLLIN };
	unsigned char packet[64];
	char text[8] = "";
	struct pollfd p[2] = { { .fd = fd, .events = POLLIN }, { .fd = host, .events = POLLIN } };
	struct iovec iov[2] = { { packet, 20 }, { packet + 20, 44 } };
	long n;

	configure();
	sent = asking();
	MUST(!epoll_ctl(epoll, EPOLL_CTL_ADD, host, &event));
	event.data.u64 = 1;
	MUST(!epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
	SHOW(poll(p, 2, 0));
	SHOW(epoll_wait(epoll, &event, 1, 0));

	SHOW(send(sent, "ping", 4, 0));
	SHOW(poll(p, 2, 20000));
	SHOW(p[0].revents);
	SHOW(epoll_wait(epoll, &event, 1, 20000));
	SHOW(event.data.u64);
	n = read(fd, packet, sizeof(packet));
	show_packet(packet, n);
	SHOW(poll(p, 2, 0));
	turn(packet, "pong");
	SHOW(write(fd, packet, (size_t)n));
	SHOW(recv(sent, text, sizeof(text), 0));
	puts(text);

	/* In pieces, and cut off where there is no room. */
	SHOW(send(sent, "pin2", 4, 0));
	n = readv(fd, iov, 2);
	show_packet(packet, n);
	turn(packet, "pon2");
	iov[1].iov_len = (size_t)n - 20;
	SHOW(writev(fd, iov, 2));
	SHOW(recv(sent, text, sizeof(text), 0));
	puts(text);
	SHOW(send(sent, "pin3", 4, 0));
	SHOW(read(fd, packet, 28));
	SHOW(poll(p, 2, 0));
	SHOW(write(fd, "nonsense", 8));
	SHOW(write(fd, packet, 0));
	EACH_BAD_POINTER(b)
	{
		if (strcmp(b->name, "read only"))
			TELL(write(fd, b->at, 20), "write(%s)", b->name);
	}

	/* A child has it, and waits for what its parent sends. */
	fflush(stdout);
	if (!fork()) {
		n = read(fd, packet, sizeof(packet));
		show_packet(packet, n);
		turn(packet, "pon5");
		SHOW(write(fd, packet, (size_t)n));
		fflush(stdout);
		_exit(0);
	}
	MUST(send(sent, "pin5", 4, 0) == 4);
	MUST(wait(&status) > 0);
	SHOW(recv(sent, text, sizeof(text), 0));
	puts(text);
	SHOW(status);
	SHOW(fcntl(fd, F_SETFL, O_NONBLOCK));
	SHOW(read(fd, packet, sizeof(packet)));
	SHOW(close(fd));
	SHOW(exists());
	SHOW(send(sent, "gone", 4, 0));
}
