// SPDX-License-Identifier: GPL-2.0-only
/*
 * A real tap, in a network namespace of its own: frames go through the host's
 * kernel, from a packet socket with virtio-net headers. The kernel refuses or
 * rewrites much of what it is given, so this shows that the two sides mean the
 * same, rather than what the port does with what no kernel would send.
 */
#include "wire.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define IFNAME    "fuzz0"
#define HOST_HDR  sizeof(struct virtio_net_hdr)
#define HOST_MTU  65521
#define NO_IPV6   "/proc/sys/net/ipv6/conf/default/disable_ipv6"
#define HAVE_ROOM (4 << 20)

static int packets;

static const char *host_tap_missing(void)
{
	static char why[128];
	int fd;

	if (unshare(CLONE_NEWNET)) {
		snprintf(why, sizeof(why), "cannot make a network namespace (%s); it needs root",
			 strerror(errno));
		return why;
	}
	fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
	if (fd < 0) {
		snprintf(why, sizeof(why), "cannot open /dev/net/tun: %s", strerror(errno));
		return why;
	}
	close(fd);
	/* Only we are to send: no solicitations of the host's own. */
	fd = open(NO_IPV6, O_WRONLY | O_CLOEXEC);
	if (fd >= 0) {
		if (write(fd, "1", 1) != 1)
			fprintf(stderr, "%s cannot be written\n", NO_IPV6);
		close(fd);
	}
	return NULL;
}

/* Up, without ARP, for frames of every size. */
static int bring_up(int *ifindex)
{
	struct ifreq req = { .ifr_name = IFNAME };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), err = 0;

	if (fd < 0)
		return -errno;
	req.ifr_mtu = HOST_MTU;
	if (ioctl(fd, SIOCSIFMTU, &req))
		err = -errno;
	req.ifr_flags = IFF_UP | IFF_NOARP;
	if (!err && ioctl(fd, SIOCSIFFLAGS, &req))
		err = -errno;
	if (!err && ioctl(fd, SIOCGIFINDEX, &req))
		err = -errno;
	*ifindex = req.ifr_ifindex;
	close(fd);
	return err;
}

static int host_tap_open(struct guise_stack *s)
{
	struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_protocol = htobe16(ETH_P_ALL) };
	int err = guise_link_open(s, "eth0", "tap:" IFNAME ",mac=" FRAME_STACK_MAC), one = 1;
	int room = HAVE_ROOM;

	if (err < 0)
		return err;
	err = bring_up(&at.sll_ifindex);
	if (err)
		return guise_fail(-err, "%s cannot be set up: %s", IFNAME, strerror(-err));
	packets = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (packets < 0 || setsockopt(packets, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof(one)) ||
	    setsockopt(packets, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof(one)) ||
	    setsockopt(packets, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)) ||
	    setsockopt(packets, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room)) ||
	    bind(packets, (struct sockaddr *)&at, sizeof(at)))
		return guise_fail(errno, "no packet socket on %s: %s", IFNAME, strerror(errno));
	return 0;
}

static enum feed host_tap_feed(const struct frame *f)
{
	struct iovec iov[2] = { { (void *)f->bytes, HOST_HDR } };
	struct msghdr m = { .msg_iov = iov, .msg_iovlen = 2 };

	if (f->len < FRAME_HDR)
		return FEED_REFUSED;
	/* The host's header is the older one, without the count of buffers. */
	iov[1] = (struct iovec){ (void *)(f->bytes + FRAME_HDR), f->len - FRAME_HDR };
	if (sendmsg(packets, &m, 0) >= 0)
		return FED;
	return errno == EAGAIN ? FEED_FULL : FEED_REFUSED;
}

static int64_t host_tap_take(uint8_t *buf, uint32_t size)
{
	struct sockaddr_ll from = { 0 };
	struct iovec iov[2] = { { buf, HOST_HDR }, { buf + FRAME_HDR, size - FRAME_HDR } };
	struct msghdr m = {
		.msg_name = &from,
		.msg_namelen = sizeof(from),
		.msg_iov = iov,
		.msg_iovlen = 2,
	};
	ssize_t n;

	do {
		m.msg_namelen = sizeof(from);
		n = recvmsg(packets, &m, 0);
	} while (n >= 0 && from.sll_pkttype == PACKET_OUTGOING);
	if (n < 0)
		return -errno;
	return n + (int64_t)(FRAME_HDR - HOST_HDR);
}

const struct wire wire_host_tap = {
	.name = "host-tap",
	.what = "the tap backend on a tap of the host's kernel",
	.missing = host_tap_missing,
	.open = host_tap_open,
	.feed = host_tap_feed,
	.take = host_tap_take,
};
