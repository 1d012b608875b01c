// SPDX-License-Identifier: GPL-2.0-only
/*
 * The tap backend: the stack's interface is the other end of a tap device of
 * the host. The host's kernel speaks the virtio-net header itself, so a large
 * TCP segment crosses in one system call and one copy, its checksum undone.
 *
 * spec: "IFNAME" opens (or makes) that tap; "fd=N" copies an open one, which
 * must have IFF_TAP | IFF_NO_PI | IFF_VNET_HDR. With offload=off the host's
 * kernel is told to segment and sum before it hands a frame over, and the
 * port, which then sees no offload bits, does the same outwards.
 *
 * The descriptor does not block. Its state is the link alone, for counting.
 */
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

#define TAP_FLAGS (IFF_TAP | IFF_NO_PI | IFF_VNET_HDR)
/* Malformed frames skipped in one call, so that a flood cannot hold the CPU. */
#define TAP_SKIP 16

_Static_assert(sizeof(struct guise_iov) == sizeof(struct iovec), "passed to readv(2) as it is");

static int tap_make(const char *ifname)
{
	struct ifreq req = { .ifr_flags = TAP_FLAGS };
	long fd, ret;

	if (!*ifname || strlen(ifname) >= IFNAMSIZ)
		return guise_fail(EINVAL,
				  "tap: \"%s\" is no interface name (1 to %d characters); "
				  "expected tap:IFNAME or tap:fd=N",
				  ifname, IFNAMSIZ - 1);
	fd = host_sys(SYS_openat, AT_FDCWD, "/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return guise_fail((int)-fd,
				  "tap: cannot open /dev/net/tun: %s; the host needs its "
				  "tun driver (modprobe tun)",
				  strerror((int)-fd));
	strcpy(req.ifr_name, ifname);
	ret = host_sys(SYS_ioctl, fd, TUNSETIFF, &req);
	if (!ret)
		return guise_fd_high((int)fd);
	host_sys(SYS_close, fd);
	switch (-ret) {
	case EPERM:
		return guise_fail(
			EPERM,
			"tap: to use %s this process lacks CAP_NET_ADMIN; run it as "
			"root, or have root give you the device: ip tuntap add dev %s mode "
			"tap vnet_hdr user $USER",
			ifname, ifname);
	case EBUSY:
		return guise_fail(EBUSY, "tap: another process has %s open; choose another name",
				  ifname);
	case EINVAL:
		return guise_fail(EINVAL, "tap: %s exists on the host and is not a tap device",
				  ifname);
	default:
		return guise_fail((int)-ret, "tap: cannot attach to %s: %s", ifname,
				  strerror((int)-ret));
	}
}

static int tap_copy(const char *number)
{
	struct ifreq req = { 0 };
	char *end;
	long fd = strtol(number, &end, 10), ret;

	if (end == number || *end || fd < 0 || fd > INT32_MAX)
		return guise_fail(EINVAL,
				  "tap: fd=%s: expected the number of an open tap descriptor",
				  number);
	ret = host_sys(SYS_ioctl, fd, TUNGETIFF, &req);
	if (ret < 0)
		return guise_fail((int)-ret, "tap: fd=%ld is not a tap descriptor (%s)", fd,
				  strerror((int)-ret));
	if ((req.ifr_flags & TAP_FLAGS) != TAP_FLAGS)
		return guise_fail(EINVAL,
				  "tap: fd=%ld (%.*s) lacks%s%s%s; open it with IFF_TAP | "
				  "IFF_NO_PI | IFF_VNET_HDR",
				  fd, IFNAMSIZ, req.ifr_name,
				  req.ifr_flags & IFF_TAP ? "" : " IFF_TAP",
				  req.ifr_flags & IFF_NO_PI ? "" : " IFF_NO_PI",
				  req.ifr_flags & IFF_VNET_HDR ? "" : " IFF_VNET_HDR");
	ret = host_sys(SYS_fcntl, fd, F_GETFL);
	if (ret >= 0)
		ret = host_sys(SYS_fcntl, fd, F_SETFL, ret | O_NONBLOCK);
	if (ret < 0)
		return guise_fail((int)-ret, "tap: fd=%ld cannot be made non-blocking: %s", fd,
				  strerror((int)-ret));
	ret = guise_fd_copy((int)fd);
	if (ret < 0)
		return guise_fail((int)-ret, "tap: fd=%ld cannot be copied: %s", fd,
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
	int hdr = GUISE_FRAME_HDR, fd;
	unsigned int offload = 0;
	long ret;

	fd = strncmp(spec, "fd=", 3) ? tap_make(spec) : tap_copy(spec + 3);
	if (fd < 0)
		return fd;
	/* NOGRO is set already where the user wants each frame on its own. */
	if (!link->features) {
		offload = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN;
		link->features = GUISE_LINK_CSUM | GUISE_LINK_TSO;
	}
	ret = host_sys(SYS_ioctl, fd, TUNSETVNETHDRSZ, &hdr);
	if (!ret)
		ret = host_sys(SYS_ioctl, fd, TUNSETOFFLOAD, offload);
	if (ret < 0) {
		host_sys(SYS_close, fd);
		return guise_fail((int)-ret,
				  "tap: the host's kernel refuses the virtio-net header "
				  "or its offloads: %s",
				  strerror((int)-ret));
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
	int64_t ret;
	int i;

	for (i = 0; i < TAP_SKIP; i++) {
		ret = host_sys(SYS_readv, port->fd[0], iov, n);
		if (ret < 0 || guise_frame_ok(iov[0].base, ret))
			return ret;
		link->rx_malformed++;
	}
	return -EAGAIN; /* the descriptor is still readable, so we will be back */
}

static void tap_detach(struct guise_link_port *port)
{
	port->state = NULL;
}

const struct guise_link_backend guise_link_tap = {
	.kind = "tap",
	.room_by_pollout = true,
	.open = tap_open,
	.attach = tap_attach,
	.out = tap_out,
	.in = tap_in,
	.detach = tap_detach,
};
