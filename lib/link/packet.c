// SPDX-License-Identifier: GPL-2.0-only
/*
 * The packet backend: the stack uses an interface of the host itself, by an AF_PACKET socket
 * that is bound to it. Frames have a virtio-net header in both directions, so the stack gets
 * what the host's GRO has merged, and the host's kernel or hardware segments and computes
 * checksums of what the stack sends.
 *
 * spec: "IFNAME" opens a socket, "fd=N" copies an open one, which must be SOCK_RAW and bound.
 * An interface gives its MTU and its MAC address, and says whether there is an Ethernet header:
 * tun, WireGuard, PPP, IP tunnels and the modems of phones have none, and the link is
 * GUISE_LINK_RAW.
 *
 * What the socket receives is a matter of its filter. An opened one gets a filter here, and
 * whoever makes a socket for fd=N (internal/hostnet/share) attaches and locks one: a member
 * cannot change it. A socket without a filter of its own would receive
 *
 *	- what the host sends on the interface (from Linux 4.20 on it can be left out at less
 *	  cost: PACKET_IGNORE_OUTGOING)
 *	- frames of a VLAN, without the tag that says so. They belong to the host's interface
 *	  for that VLAN, which can be a link of its own
 *	- what another interface receives, once a member has bound the socket to that one
 *
 * The host's own stack gets all frames, too, unless a rule of the host drops them; the
 * command line makes one.
 *
 * Limits: with offload=off the stack sends each packet in a frame of its own, but receives
 * frames as GRO has merged them, because the host has merged them before the socket sees them
 * (`ethtool -K IFNAME gro off` changes that). On PPP and on IP tunnels packets are sent one by
 * one: older kernels would look for their IP header at the wrong place. An interface that goes
 * down and up again is used again. One that is removed is not seen to be gone: the stack's
 * frames are dropped and counted.
 *
 * The socket is non-blocking. It takes frames until its send buffer is full, and is writable
 * again when half of it is free, which poll(2) tells.
 */
#include "host/fd.h"
#include "host/memory.h"
#include "host/sys.h"
#include "link/backends.h"
#include "link/frame.h"
#include "region/stack.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

/* Linux 4.20 and 6.6; Debian 12 has no headers of the latter. */
#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23
#endif
#ifndef PACKET_VNET_HDR_SZ
#define PACKET_VNET_HDR_SZ 24
#endif
#ifndef ARPHRD_RAWIP
#define ARPHRD_RAWIP 519
#endif

/* Frames that are skipped in one call: many must not keep the virtual CPU. */
#define PACKET_SKIP 16
/* The pieces of a frame: those of the port, which has MAX_SKB_FRAGS of 17. */
#define PACKET_PIECES 32
/*
 * A burst of a round trip fits into the first at 1 Gbit/s and 30 ms. The second is what may wait
 * in the queues of the interface: some large frames, as with the sockets of the host's own TCP.
 */
#define PACKET_RECEIVE (4 << 20)
#define PACKET_SEND    (1 << 20)

/* A link in this process. */
struct packet_end {
	struct guise_link *link;
	int ifindex;
	uint32_t header; /* bytes of the virtio-net header, as the socket has it */
	bool raw;
};

_Static_assert(sizeof(struct guise_iov) == sizeof(struct iovec), "passed to recvmsg(2) as it is");

static long packet_set(int fd, int name, int value)
{
	return host_sys(SYS_setsockopt, fd, SOL_PACKET, name, &value, sizeof(value));
}

/* Room in the socket's queues; less where the process may not exceed the host's limits. */
static void packet_room(int fd, int forced, int option, int bytes)
{
	if (host_sys(SYS_setsockopt, fd, SOL_SOCKET, forced, &bytes, sizeof(bytes)) < 0)
		host_sys(SYS_setsockopt, fd, SOL_SOCKET, option, &bytes, sizeof(bytes));
}

/* The filter of a socket of our own, which stays; see the head of this file. */
static long packet_filter(int fd, int ifindex)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_IFINDEX)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)ifindex, 0, 5),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_PKTTYPE)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PACKET_OUTGOING, 3, 0),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS,
			 (uint32_t)(SKF_AD_OFF + SKF_AD_VLAN_TAG_PRESENT)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 0xffffffff),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog program = { .len = sizeof(code) / sizeof(code[0]), .filter = code };
	int lock = 1;
	long ret;

	ret = host_sys(SYS_setsockopt, fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
	if (!ret)
		ret = host_sys(SYS_setsockopt, fd, SOL_SOCKET, SO_LOCK_FILTER, &lock, sizeof(lock));
	return ret;
}

/* Also receives what is sent to this address, and to multicast groups that only the stack is in. */
static void packet_join(int fd, int ifindex, const uint8_t mac[6])
{
	struct packet_mreq groups = { .mr_ifindex = ifindex, .mr_type = PACKET_MR_ALLMULTI };
	struct packet_mreq own = { .mr_ifindex = ifindex,
				   .mr_type = PACKET_MR_UNICAST,
				   .mr_alen = 6 };

	host_sys(SYS_setsockopt, fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &groups, sizeof(groups));
	memcpy(own.mr_address, mac, 6);
	if (mac[0] | mac[1] | mac[2] | mac[3] | mac[4] | mac[5])
		host_sys(SYS_setsockopt, fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &own, sizeof(own));
}

static int packet_make(const char *ifname, const uint8_t mac[6])
{
	struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
	struct ifreq req = { 0 };
	long fd, ret;

	if (!*ifname || strlen(ifname) >= IFNAMSIZ)
		return guise_fail(EINVAL,
				  "packet: \"%s\" is no interface name (1 to %d characters); "
				  "expected %s",
				  ifname, IFNAMSIZ - 1, guise_link_forms("packet"));
	/* Protocol 0: nothing is received before the filter is there. */
	fd = host_sys(SYS_socket, AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd == -EPERM)
		return guise_fail(EPERM,
				  "packet: to use %s this process lacks CAP_NET_RAW; run it as "
				  "root",
				  ifname);
	if (fd < 0)
		return guise_fail((int)-fd,
				  "packet: the host has no packet sockets (CONFIG_PACKET): %s",
				  strerror((int)-fd));
	strcpy(req.ifr_name, ifname);
	ret = host_sys(SYS_ioctl, fd, SIOCGIFINDEX, &req);
	if (ret < 0) {
		host_sys(SYS_close, fd);
		return guise_fail((int)-ret, "packet: the host has no interface %s (%s)", ifname,
				  strerror((int)-ret));
	}
	at.sll_ifindex = req.ifr_ifindex;
	packet_join((int)fd, at.sll_ifindex, mac);
	ret = packet_filter((int)fd, at.sll_ifindex);
	if (!ret)
		ret = packet_set((int)fd, PACKET_VNET_HDR, 1);
	if (!ret)
		ret = host_sys(SYS_bind, fd, &at, sizeof(at));
	if (!ret)
		return guise_fd_high((int)fd);
	host_sys(SYS_close, fd);
	return guise_fail((int)-ret, "packet: cannot receive on %s: %s", ifname,
			  strerror((int)-ret));
}

static int packet_copy(const char *number)
{
	int family = 0, type = 0;
	socklen_t size = sizeof(int);
	char *end;
	long fd = strtol(number, &end, 10), ret;

	if (end == number || *end || fd < 0 || fd > INT32_MAX)
		return guise_fail(EINVAL,
				  "packet: fd=%s: expected the number of an open packet socket",
				  number);
	ret = host_sys(SYS_getsockopt, fd, SOL_SOCKET, SO_DOMAIN, &family, &size);
	if (!ret)
		ret = host_sys(SYS_getsockopt, fd, SOL_SOCKET, SO_TYPE, &type, &size);
	if (ret < 0)
		return guise_fail((int)-ret, "packet: fd=%ld is no socket (%s)", fd,
				  strerror((int)-ret));
	if (family != AF_PACKET || type != SOCK_RAW)
		return guise_fail(EINVAL,
				  "packet: fd=%ld is no packet socket with link-layer headers; "
				  "expected one of socket(AF_PACKET, SOCK_RAW, 0)",
				  fd);
	ret = host_sys(SYS_fcntl, fd, F_GETFL);
	if (ret >= 0)
		ret = host_sys(SYS_fcntl, fd, F_SETFL, ret | O_NONBLOCK);
	if (ret >= 0)
		ret = guise_fd_copy((int)fd);
	if (ret < 0)
		return guise_fail((int)-ret, "packet: fd=%ld cannot be used: %s", fd,
				  strerror((int)-ret));
	return (int)ret;
}

/* What the kernel says of the socket and its interface. 0 or -errno. */
static long packet_ask(int fd, struct packet_end *e, struct sockaddr_ll *at)
{
	socklen_t size = sizeof(*at), bytes = sizeof(int);
	int header = 0;
	long ret;

	ret = host_sys(SYS_getsockname, fd, at, &size);
	if (ret < 0)
		return ret;
	e->ifindex = at->sll_ifindex;
	e->header = sizeof(struct virtio_net_hdr);
	if (!host_sys(SYS_getsockopt, fd, SOL_PACKET, PACKET_VNET_HDR_SZ, &header, &bytes) &&
	    header == GUISE_FRAME_HDR)
		e->header = GUISE_FRAME_HDR;
	return 0;
}

static int packet_end_make(struct guise_link *link, struct guise_link_port *port,
			   struct sockaddr_ll *at)
{
	struct packet_end *e = guise_pages(sizeof(*e));
	long ret;

	if (!e)
		return guise_fail(ENOMEM, "packet: no memory for a link");
	e->link = link;
	ret = packet_ask(port->fd[0], e, at);
	if (ret < 0) {
		guise_pages_free(e, sizeof(*e));
		/* By its number: a handler may join a stack, and strerror() uses the heap. */
		return guise_fail((int)-ret,
				  "packet: cannot read what the socket is bound to (error %d)",
				  (int)-ret);
	}
	port->state = e;
	return 0;
}

static void packet_detach(struct guise_link_port *port)
{
	if (port->state)
		guise_pages_free(port->state, sizeof(struct packet_end));
	port->state = NULL;
}

static int packet_attach(struct guise_stack *s, struct guise_link *link,
			 struct guise_link_port *port)
{
	struct sockaddr_ll at = { 0 };
	int err = packet_end_make(link, port, &at);

	(void)s;
	if (!err)
		((struct packet_end *)port->state)->raw = link->features & GUISE_LINK_RAW;
	return err;
}

/* The features of a link on an interface of that type, or -errno. */
static int packet_features(const struct guise_link *link, int type)
{
	bool gso = !(link->features & GUISE_LINK_NOGRO);
	int csum = gso ? GUISE_LINK_CSUM : 0, tso = gso ? GUISE_LINK_TSO : 0;

	switch (type) {
	case ARPHRD_ETHER:
		return csum | tso;
	case ARPHRD_NONE:
	case ARPHRD_RAWIP:
		return GUISE_LINK_RAW | csum | tso;
	case ARPHRD_PPP:
	case ARPHRD_TUNNEL:
	case ARPHRD_TUNNEL6:
	case ARPHRD_SIT:
		return GUISE_LINK_RAW | csum;
	default:
		return -EOPNOTSUPP;
	}
}

/* Fills in what the interface says. 0 or -errno with a sentence. */
static int packet_describe(struct guise_link *link, struct guise_link_port *port,
			   const struct sockaddr_ll *at)
{
	struct ifreq req = { .ifr_ifindex = at->sll_ifindex };
	struct packet_end *e = port->state;
	int features;
	long ret;

	if (at->sll_ifindex <= 0)
		return guise_fail(EINVAL, "packet: the socket is bound to no interface, or that "
					  "is gone; expected one that is bound");
	features = packet_features(link, at->sll_hatype);
	if (features < 0)
		return guise_fail(-features,
				  "packet: frames of the interface's type (%d) are not supported; "
				  "expected Ethernet or an interface without link-layer headers",
				  at->sll_hatype);
	e->raw = features & GUISE_LINK_RAW;
	if (e->raw && (link->mac[0] | link->mac[1] | link->mac[2] | link->mac[3] | link->mac[4] |
		       link->mac[5]))
		return guise_fail(EINVAL, "packet: the interface has no Ethernet, and so no MAC "
					  "address; leave mac= out");
	link->features |= (uint32_t)features;
	if (!e->raw && !(link->mac[0] | link->mac[1] | link->mac[2] | link->mac[3] | link->mac[4] |
			 link->mac[5]))
		memcpy(link->mac, at->sll_addr, 6);
	if (link->mtu)
		return 0;
	ret = host_sys(SYS_ioctl, port->fd[0], SIOCGIFNAME, &req);
	if (!ret)
		ret = host_sys(SYS_ioctl, port->fd[0], SIOCGIFMTU, &req);
	if (ret < 0)
		return guise_fail((int)-ret, "packet: cannot read the MTU of the interface: %s",
				  strerror((int)-ret));
	link->mtu = (uint32_t)req.ifr_mtu;
	if (link->mtu > LINK_MTU_MOST_ETHERNET)
		link->mtu = LINK_MTU_MOST_ETHERNET;
	return 0;
}

static int packet_open(struct guise_stack *s, struct guise_link *link, struct guise_link_port *port,
		       const char *spec)
{
	struct sockaddr_ll at = { 0 };
	int fd, err;

	(void)s;
	fd = strncmp(spec, "fd=", 3) ? packet_make(spec, link->mac) : packet_copy(spec + 3);
	if (fd < 0)
		return fd;
	port->fd[0] = fd;
	packet_set(fd, PACKET_IGNORE_OUTGOING, 1);
	packet_room(fd, SO_RCVBUFFORCE, SO_RCVBUF, PACKET_RECEIVE);
	packet_room(fd, SO_SNDBUFFORCE, SO_SNDBUF, PACKET_SEND);
	if (packet_set(fd, PACKET_VNET_HDR_SZ, GUISE_FRAME_HDR) < 0 &&
	    packet_set(fd, PACKET_VNET_HDR, 1) < 0)
		err = guise_fail(EOPNOTSUPP,
				 "packet: the host's kernel refuses the virtio-net header");
	else
		err = packet_end_make(link, port, &at);
	if (!err)
		err = packet_describe(link, port, &at);
	if (err) {
		packet_detach(port);
		host_sys(SYS_close, fd);
		port->fd[0] = -1;
	}
	return err;
}

/*
 * The pieces as the socket wants them: where its virtio-net header lacks num_buffers, the last
 * field of the link's, the first piece is shorter by that.
 */
static const struct guise_iov *packet_pieces(const struct packet_end *e,
					     struct guise_iov room[PACKET_PIECES],
					     const struct guise_iov *iov, uint32_t n)
{
	if (e->header == GUISE_FRAME_HDR)
		return iov;
	memcpy(room, iov, n * sizeof(*iov));
	room[0].len = e->header;
	return room;
}

/* What a frame is. Not every host would find it out. */
static uint16_t packet_protocol(const struct packet_end *e, const struct guise_iov *piece)
{
	const uint8_t *at = (const uint8_t *)piece->base;

	if (e->raw)
		return htons((at[0] >> 4) == 6 ? ETH_P_IPV6 : ETH_P_IP);
	return htons((uint16_t)(at[12] << 8 | at[13]));
}

static int64_t packet_out(struct guise_link_port *port, const struct guise_iov *iov, uint32_t n)
{
	const struct packet_end *e = port->state;
	struct guise_iov room[PACKET_PIECES];
	struct sockaddr_ll to = { .sll_family = AF_PACKET };
	struct msghdr message = { .msg_name = &to, .msg_namelen = sizeof(to) };

	if (n < 2 || n > PACKET_PIECES ||
	    iov[1].len < (e->raw ? GUISE_FRAME_IP : GUISE_FRAME_ETHER))
		return -EINVAL;
	to.sll_ifindex = e->ifindex;
	to.sll_protocol = packet_protocol(e, &iov[1]);
	message.msg_iov = (struct iovec *)packet_pieces(e, room, iov, n);
	message.msg_iovlen = n;
	return host_sys(SYS_sendmsg, port->fd[0], &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Reads a frame; its length as the port counts it, 0 when it is to be skipped, or -errno. */
static int64_t packet_read(const struct guise_link_port *port, const struct guise_iov *iov,
			   uint32_t n)
{
	const struct packet_end *e = port->state;
	struct guise_iov room[PACKET_PIECES];
	struct msghdr message = { 0 };
	struct virtio_net_hdr_v1 *hdr = (struct virtio_net_hdr_v1 *)iov[0].base;
	size_t least = e->raw ? GUISE_FRAME_IP : GUISE_FRAME_ETHER;
	int64_t ret;

	message.msg_iov = (struct iovec *)packet_pieces(e, room, iov, n);
	message.msg_iovlen = n;
	ret = host_sys(SYS_recvmsg, port->fd[0], &message, MSG_DONTWAIT);
	/* The interface went down. It may come back, and the error is told once. */
	if (ret == -ENETDOWN)
		return 0;
	/* A frame that has no such header: what GRO made of another protocol. It is gone. */
	if (ret == -EINVAL)
		goto malformed;
	if (ret < 0)
		return ret;
	if (e->header != GUISE_FRAME_HDR) {
		hdr->num_buffers = 1;
		ret += GUISE_FRAME_HDR - e->header;
	}
	if (!(message.msg_flags & MSG_TRUNC) && guise_frame_ok(hdr, ret, least))
		return ret;
malformed:
	e->link->rx_malformed++;
	return 0;
}

static int64_t packet_in(struct guise_link_port *port, const struct guise_iov *iov, uint32_t n)
{
	int64_t ret;
	int i;

	if (n < 2 || n > PACKET_PIECES || iov[0].len != GUISE_FRAME_HDR)
		return -EINVAL;
	for (i = 0; i < PACKET_SKIP; i++) {
		ret = packet_read(port, iov, n);
		if (ret)
			return ret;
	}
	return -EAGAIN; /* the descriptor is still readable: `in` is called again */
}

const struct guise_link_backend guise_link_packet = {
	.room_by_pollout = true,
	.open = packet_open,
	.attach = packet_attach,
	.out = packet_out,
	.in = packet_in,
	.detach = packet_detach,
};
