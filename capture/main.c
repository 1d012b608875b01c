// SPDX-License-Identifier: GPL-2.0-only
/*
 * guise-capture: what passes the interfaces of a stack, as pcapng on standard output.
 * guise capture starts it with a ticket ($GUISE_STACK); it joins the stack, and reads a
 * packet socket there, as tcpdump would. So it costs the stack a copy of each packet,
 * and nothing when it has ended.
 *
 * It ends with status 0 at SIGINT or SIGTERM, after so many packets, when nobody reads
 * its output any more, or with the stack; and says then how many packets it wrote,
 * and how many there was no room for.
 */
#include "pcapng.h"

#include "guise/syscall.h"
#include "host/sys.h"
#include "region/stack.h"
#include "setup/setup.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>

#define OUTPUT       1
#define FAILED       125 /* as the command line's own failures */
#define USAGE        2
#define SOCKET_QUEUE (8 << 20)

struct capture {
	struct guise_stack *s;
	int fd; /* of the stack: the packet socket */
	struct pollfd host[3];
	int only; /* index of the one interface, or 0 */
	uint64_t packets, most;
	struct pcapng file;
	uint8_t packet[PCAPNG_LONGEST];
};

enum host_fd { SIGNALS, READER, HOLDER };

static int complain(int status)
{
	fprintf(stderr, "guise: capture: %s\n", guise_error());
	return status;
}

static bool open_socket(struct capture *c, const char *interface)
{
	struct sockaddr_ll a = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
	int on = 1, queue = SOCKET_QUEUE, err;

	if (interface) {
		c->only = guise_ifindex(c->s, interface);
		if (c->only < 0)
			return false;
		a.sll_ifindex = c->only;
	}
	/* Without a protocol it hears nothing until it is bound. */
	c->fd = guise_socket(c->s, AF_PACKET, SOCK_RAW, 0);
	if (c->fd < 0) {
		guise_fail(-c->fd, "no packet socket: %s", strerror(-c->fd));
		return false;
	}
	guise_setsockopt(c->s, c->fd, SOL_SOCKET, SO_RCVBUFFORCE, &queue, sizeof(queue));
	err = guise_setsockopt(c->s, c->fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on));
	if (!err)
		err = guise_bind(c->s, c->fd, (void *)&a, sizeof(a));
	if (err)
		guise_fail(-err, "the packet socket cannot be set up: %s", strerror(-err));
	return !err;
}

static bool watch_host(struct capture *c)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	c->host[SIGNALS] =
		(struct pollfd){ .fd = signalfd(-1, &set, SFD_CLOEXEC), .events = POLLIN };
	/* Of a pipe whose reader has gone; a file never hangs up. */
	c->host[READER] = (struct pollfd){ .fd = OUTPUT };
	c->host[HOLDER] = (struct pollfd){ .fd = c->s->alive };
	if (c->host[SIGNALS].fd >= 0)
		return true;
	guise_fail(errno, "no signalfd: %s", strerror(errno));
	return false;
}

/* 0, or -errno: EINTR with *host for the host's descriptors. */
static long receive(struct capture *c, struct msghdr *m, int flags, int *host)
{
	*host = 0;
	return guise_call_polling(c->s, c->host, 3, host, GUISE_NR_recvmsg, c->fd, (long)m,
				  flags | MSG_TRUNC, 0, 0, 0);
}

/* An interface that came with its first packet. */
static int describe(struct capture *c, const struct sockaddr_ll *from)
{
	struct ifreq req = { .ifr_ifindex = from->sll_ifindex };
	uint16_t link = from->sll_hatype == ARPHRD_NONE ? PCAPNG_RAW_IP : PCAPNG_ETHERNET;

	if (pcapng_knows(&c->file, from->sll_ifindex))
		return pcapng_interface(&c->file, from->sll_ifindex, "", link);
	if (guise_call(c->s, GUISE_NR_ioctl, c->fd, SIOCGIFNAME, (long)&req, 0, 0, 0))
		snprintf(req.ifr_name, sizeof(req.ifr_name), "if%d", from->sll_ifindex);
	return pcapng_interface(&c->file, from->sll_ifindex, req.ifr_name, link);
}

static uint64_t time_of(struct msghdr *m)
{
	struct timespec t = { 0 };

	for (struct cmsghdr *h = CMSG_FIRSTHDR(m); h; h = CMSG_NXTHDR(m, h))
		if (h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_TIMESTAMPNS)
			memcpy(&t, CMSG_DATA(h), sizeof(t));
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int write_packet(struct capture *c, struct msghdr *m, long length)
{
	const struct sockaddr_ll *from = m->msg_name;
	struct pcapng_packet p = {
		.time = time_of(m),
		.data = c->packet,
		.length = (uint32_t)length < sizeof(c->packet) ? (uint32_t)length
							       : sizeof(c->packet),
		.whole = (uint32_t)length,
		.direction = from->sll_pkttype == PACKET_OUTGOING ? PCAPNG_OUT : PCAPNG_IN,
	};
	int number;

	/* What goes out on lo comes in there: once is enough. */
	if (from->sll_hatype == ARPHRD_LOOPBACK && p.direction == PCAPNG_OUT)
		return 0;
	number = describe(c, from);
	if (number == -ENOSPC)
		return 0;
	if (number < 0)
		return number;
	p.interface = (unsigned int)number;
	c->packets++;
	return pcapng_packet(&c->file, &p);
}

/* 0 at an end that is well, or -errno. */
static int copy(struct capture *c)
{
	char control[256] __attribute__((aligned(16)));
	struct sockaddr_ll from;
	int err = pcapng_flush(&c->file), host, flags = MSG_DONTWAIT;

	while (!err && (!c->most || c->packets < c->most)) {
		struct iovec iov = { c->packet, sizeof(c->packet) };
		struct msghdr m = {
			.msg_name = &from,
			.msg_namelen = sizeof(from),
			.msg_iov = &iov,
			.msg_iovlen = 1,
			.msg_control = control,
			.msg_controllen = sizeof(control),
		};
		long n = receive(c, &m, flags, &host);

		if (n >= 0) {
			err = write_packet(c, &m, n);
			flags = MSG_DONTWAIT;
		} else if (n == -EAGAIN) { /* what there is has been written; now wait */
			err = pcapng_flush(&c->file);
			flags = 0;
		} else if (host || n == -ENETDOWN) {
			return 0;
		} else if (n != -EINTR) {
			err = (int)n;
		}
	}
	return err;
}

static uint64_t lost(struct capture *c)
{
	struct tpacket_stats stats = { 0 };
	socklen_t len = sizeof(stats);

	guise_getsockopt(c->s, c->fd, SOL_PACKET, PACKET_STATISTICS, &stats, &len);
	return stats.tp_drops;
}

static int run(struct capture *c)
{
	struct timespec now;
	uint64_t dropped;
	char path[200];
	ssize_t n;
	int err;

	err = pcapng_begin(&c->file, OUTPUT);
	if (!err)
		err = copy(c);
	dropped = lost(c);
	clock_gettime(CLOCK_REALTIME, &now);
	if (!err)
		err = pcapng_lost(&c->file,
				  (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec,
				  dropped);
	if (!err)
		err = pcapng_flush(&c->file);
	fprintf(stderr, "guise: %llu packets captured, %llu lost\n", (unsigned long long)c->packets,
		(unsigned long long)dropped);
	if (!err || err == -EPIPE)
		return 0;
	n = readlink("/proc/self/fd/1", path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = '\0';
	guise_fail(-err, "cannot write to %s: %s", n > 0 ? path : "the output", strerror(-err));
	return complain(FAILED);
}

int main(int argc, char **argv)
{
	static struct capture c;
	const char *interface = NULL;
	int err;

	for (int i = 1; i < argc; i += 2) {
		if (i + 1 < argc && !strcmp(argv[i], "--interface")) {
			interface = argv[i + 1];
		} else if (i + 1 < argc && !strcmp(argv[i], "--count")) {
			c.most = strtoull(argv[i + 1], NULL, 10);
		} else {
			fprintf(stderr, "usage: guise-capture [--interface IFNAME] [--count N]\n"
					"Started by guise capture.\n");
			return USAGE;
		}
	}
	c.s = guise_join(-1, &err);
	if (!c.s)
		return complain(FAILED);
	if (!open_socket(&c, interface))
		return complain(interface && c.only < 0 ? USAGE : FAILED);
	if (!watch_host(&c))
		return complain(FAILED);
	return run(&c);
}
