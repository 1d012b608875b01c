// SPDX-License-Identifier: GPL-2.0-only
/*
 * The tap backend: the stack's interface is the other end of a tap device of
 * the host. The host's kernel itself uses the virtio-net header, so a large TCP
 * segment needs one system call and one copy, and no checksum is computed.
 * And the tun backend, which is the same without Ethernet: IP packets alone.
 *
 * spec: "IFNAME" opens (or makes) that device; "fd=N" copies an open one, which
 * must have IFF_TAP (or IFF_TUN) | IFF_NO_PI | IFF_VNET_HDR. With offload=off the host's
 * kernel segments packets and computes checksums before guise reads them, and the port,
 * whose device then has no such features, does the same for packets that it sends.
 *
 * The descriptor is non-blocking. port->state is the link, for its counters.
 */
#include "host/fd.h"
#include "host/sys.h"
#include "link/backends.h"
#include "link/frame.h"
#include "region/stack.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>

#define KINDS (IFF_TAP | IFF_TUN)
/* Malformed frames that are skipped in one call: many must not keep the virtual CPU. */
#define TAP_SKIP 16

_Static_assert(sizeof(struct guise_iov) == sizeof(struct iovec), "passed to readv(2) as it is");

static int tap_make(const char *kind, const char *ifname, short flags)
{
	struct ifreq req = { .ifr_flags = flags };
	long fd, ret;

	if (!*ifname || strlen(ifname) >= IFNAMSIZ)
		return guise_fail(EINVAL,
				  "%s: \"%s\" is no interface name (1 to %d characters); "
				  "expected %s",
				  kind, ifname, IFNAMSIZ - 1, guise_link_forms(kind));
	fd = host_sys(SYS_openat, AT_FDCWD, "/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return guise_fail((int)-fd,
				  "%s: cannot open /dev/net/tun: %s; the host needs its "
				  "tun driver (modprobe tun)",
				  kind, strerror((int)-fd));
	strcpy(req.ifr_name, ifname);
	ret = host_sys(SYS_ioctl, fd, TUNSETIFF, &req);
	if (!ret)
		return guise_fd_high((int)fd);
	host_sys(SYS_close, fd);
	switch (-ret) {
	case EPERM:
		return guise_fail(
			EPERM,
			"%s: to use %s this process lacks CAP_NET_ADMIN; run it as "
			"root, or have root give you the device: ip tuntap add dev %s mode "
			"%s vnet_hdr user $USER",
			kind, ifname, ifname, kind);
	case EBUSY:
		return guise_fail(EBUSY, "%s: another process has %s open; choose another name",
				  kind, ifname);
	case EINVAL:
		return guise_fail(EINVAL, "%s: %s exists on the host and is not a %s device", kind,
				  ifname, kind);
	default:
		return guise_fail((int)-ret, "%s: cannot attach to %s: %s", kind, ifname,
				  strerror((int)-ret));
	}
}

static int tap_copy(const char *kind, const char *number, short flags)
{
	struct ifreq req = { 0 };
	char *end;
	long fd = strtol(number, &end, 10), ret;

	if (end == number || *end || fd < 0 || fd > INT32_MAX)
		return guise_fail(EINVAL, "%s: fd=%s: expected the number of an open %s descriptor",
				  kind, number, kind);
	ret = host_sys(SYS_ioctl, fd, TUNGETIFF, &req);
	if (ret < 0)
		return guise_fail((int)-ret, "%s: fd=%ld is not a %s descriptor (%s)", kind, fd,
				  kind, strerror((int)-ret));
	if ((req.ifr_flags & flags) != flags)
		return guise_fail(EINVAL,
				  "%s: fd=%ld (%.*s) lacks%s%s%s; open it with %s | "
				  "IFF_NO_PI | IFF_VNET_HDR",
				  kind, fd, IFNAMSIZ, req.ifr_name,
				  (req.ifr_flags & flags & KINDS) ? ""
				  : flags & IFF_TUN               ? " IFF_TUN"
								  : " IFF_TAP",
				  req.ifr_flags & IFF_NO_PI ? "" : " IFF_NO_PI",
				  req.ifr_flags & IFF_VNET_HDR ? "" : " IFF_VNET_HDR",
				  flags & IFF_TUN ? "IFF_TUN" : "IFF_TAP");
	ret = host_sys(SYS_fcntl, fd, F_GETFL);
	if (ret >= 0)
		ret = host_sys(SYS_fcntl, fd, F_SETFL, ret | O_NONBLOCK);
	if (ret < 0)
		return guise_fail((int)-ret, "%s: fd=%ld cannot be made non-blocking: %s", kind, fd,
				  strerror((int)-ret));
	ret = guise_fd_copy((int)fd);
	if (ret < 0)
		return guise_fail((int)-ret, "%s: fd=%ld cannot be copied: %s", kind, fd,
				  strerror((int)-ret));
	return (int)ret;
}

static int tap_attach(struct guise_stack *s, struct guise_link *link, struct guise_link_port *port)
{
	(void)s;
	port->state = link;
	return 0;
}

static int tap_open(struct guise_stack *s, struct guise_link *link, struct guise_link_port *port,
		    const char *spec)
{
	short flags = (link->features & GUISE_LINK_RAW ? IFF_TUN : IFF_TAP) | IFF_NO_PI |
		      IFF_VNET_HDR;
	int hdr = GUISE_FRAME_HDR, fd;
	unsigned int offload = 0;
	long ret;

	fd = strncmp(spec, "fd=", 3) ? tap_make(link->kind, spec, flags)
				     : tap_copy(link->kind, spec + 3, flags);
	if (fd < 0)
		return fd;
	/* With NOGRO the user wants each packet in a frame of its own. */
	if (!(link->features & GUISE_LINK_NOGRO)) {
		offload = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN;
		link->features |= GUISE_LINK_CSUM | GUISE_LINK_TSO;
	}
	ret = host_sys(SYS_ioctl, fd, TUNSETVNETHDRSZ, &hdr);
	if (!ret)
		ret = host_sys(SYS_ioctl, fd, TUNSETOFFLOAD, offload);
	if (ret < 0) {
		host_sys(SYS_close, fd);
		return guise_fail((int)-ret,
				  "%s: the host's kernel refuses the virtio-net header "
				  "or its offloads: %s",
				  link->kind, strerror((int)-ret));
	}
	port->fd[0] = fd;
	return tap_attach(s, link, port);
}

static int64_t tap_out(struct guise_link_port *port, const struct guise_iov *iov, uint32_t n)
{
	return host_sys(SYS_writev, port->fd[0], iov, n);
}

static int64_t tap_in(struct guise_link_port *port, const struct guise_iov *iov, uint32_t n)
{
	struct guise_link *link = port->state;
	size_t header = link->features & GUISE_LINK_RAW ? GUISE_FRAME_IP : GUISE_FRAME_ETHER;
	int64_t ret;
	int i;

	for (i = 0; i < TAP_SKIP; i++) {
		ret = host_sys(SYS_readv, port->fd[0], iov, n);
		if (ret < 0 || guise_frame_ok(iov[0].base, ret, header))
			return ret;
		link->rx_malformed++;
	}
	return -EAGAIN; /* the descriptor is still readable: `in` is called again */
}

static void tap_detach(struct guise_link_port *port)
{
	port->state = NULL;
}

const struct guise_link_backend guise_link_tap = {
	.room_by_pollout = true,
	.open = tap_open,
	.attach = tap_attach,
	.out = tap_out,
	.in = tap_in,
	.detach = tap_detach,
};

const struct guise_link_backend guise_link_tun = {
	.room_by_pollout = true,
	.open = tap_open,
	.attach = tap_attach,
	.out = tap_out,
	.in = tap_in,
	.detach = tap_detach,
};
