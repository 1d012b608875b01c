// SPDX-License-Identifier: GPL-2.0-only
/* See wire.h. The namespaces have no names: they exist while their descriptors are open. */
#include "wire.h"

#include "workload.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <net/route.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PORT       5201
#define WIRE_BYTES (128ull << 20)

/* ---- a netlink message, to make a veth pair, which ioctl cannot ------------------ */

struct request {
	struct nlmsghdr h;
	struct ifinfomsg link;
	char attributes[256];
};

static struct rtattr *put(struct request *q, unsigned short type, const void *data, size_t len)
{
	struct rtattr *a = (struct rtattr *)((char *)q + NLMSG_ALIGN(q->h.nlmsg_len));

	a->rta_type = type;
	a->rta_len = (unsigned short)RTA_LENGTH(len);
	if (len)
		memcpy(RTA_DATA(a), data, len);
	q->h.nlmsg_len = (unsigned int)(NLMSG_ALIGN(q->h.nlmsg_len) + RTA_ALIGN(a->rta_len));
	return a;
}

static void end(struct request *q, struct rtattr *a)
{
	a->rta_len = (unsigned short)((char *)q + q->h.nlmsg_len - (char *)a);
}

/* Makes veth0 in this namespace, and its other end, also veth0, in the namespace `there`. */
static int make_veth(int there)
{
	static const struct ifinfomsg none;
	struct request q = {
		.h = {
			.nlmsg_len = NLMSG_LENGTH(sizeof(struct ifinfomsg)),
			.nlmsg_type = RTM_NEWLINK,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL,
		},
	};
	struct rtattr *info, *data, *peer;
	struct {
		struct nlmsghdr h;
		struct nlmsgerr e;
		char echo[sizeof(struct request)];
	} answer;
	int fd, ret = 0;

	put(&q, IFLA_IFNAME, "veth0", sizeof("veth0"));
	info = put(&q, IFLA_LINKINFO, NULL, 0);
	put(&q, IFLA_INFO_KIND, "veth", sizeof("veth"));
	data = put(&q, IFLA_INFO_DATA, NULL, 0);
	peer = put(&q, VETH_INFO_PEER, &none, sizeof(none));
	put(&q, IFLA_IFNAME, "veth0", sizeof("veth0"));
	put(&q, IFLA_NET_NS_FD, &there, sizeof(there));
	end(&q, peer);
	end(&q, data);
	end(&q, info);

	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (fd < 0)
		return -errno;
	if (send(fd, &q, q.h.nlmsg_len, 0) < 0 || recv(fd, &answer, sizeof(answer), 0) < 0)
		ret = -errno;
	else if (answer.h.nlmsg_type == NLMSG_ERROR)
		ret = answer.e.error;
	close(fd);
	return ret;
}

/* ---- interfaces --------------------------------------------------------------- */

int wire_tap(const char *name, int *tap)
{
	struct ifreq req = { .ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR };

	snprintf(req.ifr_name, sizeof(req.ifr_name), "%s", name);
	*tap = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (*tap < 0 || ioctl(*tap, TUNSETIFF, &req))
		return -errno;
	return 0;
}

static int set_address(const char *name, const char *address)
{
	struct ifreq req = { 0 };
	struct sockaddr_in *a = (struct sockaddr_in *)&req.ifr_addr;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), ret = 0;

	if (fd < 0)
		return -errno;
	snprintf(req.ifr_name, sizeof(req.ifr_name), "%s", name);
	a->sin_family = AF_INET;
	inet_pton(AF_INET, address, &a->sin_addr);
	if (ioctl(fd, SIOCSIFADDR, &req))
		ret = -errno;
	inet_pton(AF_INET, "255.255.255.0", &a->sin_addr);
	if (!ret && ioctl(fd, SIOCSIFNETMASK, &req))
		ret = -errno;
	req.ifr_flags = IFF_UP;
	if (!ret && ioctl(fd, SIOCSIFFLAGS, &req))
		ret = -errno;
	close(fd);
	return ret;
}

/* Makes the far end the default gateway. */
static int set_route(void)
{
	struct rtentry route = { .rt_flags = RTF_UP | RTF_GATEWAY };
	struct sockaddr_in *a = (struct sockaddr_in *)&route.rt_gateway;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), ret = 0;

	if (fd < 0)
		return -errno;
	a->sin_family = route.rt_dst.sa_family = route.rt_genmask.sa_family = AF_INET;
	inet_pton(AF_INET, WIRE_FAR, &a->sin_addr);
	if (ioctl(fd, SIOCADDRT, &route))
		ret = -errno;
	close(fd);
	return ret;
}

/* ---- namespaces ---------------------------------------------------------------- */

int wire_own_namespace(void)
{
	return open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
}

int wire_new_namespace(int *fd)
{
	if (unshare(CLONE_NEWNET))
		return -errno;
	*fd = wire_own_namespace();
	return *fd < 0 ? -errno : 0;
}

static int make_ends(struct wire *w, bool tap)
{
	int err;

	if (!tap) {
		err = wire_new_namespace(&w->near);
		if (err)
			return err;
	}
	err = wire_new_namespace(&w->far);
	if (err)
		return err;
	if (tap) {
		err = wire_tap("tap0", &w->tap);
		return err ? err : set_address("tap0", WIRE_FAR);
	}
	err = make_veth(w->near);
	if (!err)
		err = set_address("veth0", WIRE_FAR);
	if (!err)
		err = set_address("lo", WIRE_BEYOND);
	if (!err && setns(w->near, CLONE_NEWNET))
		err = -errno;
	if (!err)
		err = set_address("lo", "127.0.0.1");
	if (!err)
		err = set_address("veth0", WIRE_NEAR);
	return err ? err : set_route();
}

static struct sockaddr_in far_address(const char *address)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(PORT) };

	inet_pton(AF_INET, address, &a.sin_addr);
	return a;
}

static __attribute__((noreturn)) void far_process(const struct wire *w, int to,
						  void (*serve)(int fd))
{
	struct sockaddr_in a = far_address("0.0.0.0");
	int fd, conn;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (setns(w->far, CLONE_NEWNET))
		die(-errno, "setns");
	calls_begin(WAY_HOST);
	fd = must(net.socket(AF_INET, SOCK_STREAM));
	must(net.bind(fd, &a));
	must(net.listen(fd));
	if (write(to, "x", 1) != 1)
		die(-errno, "write to a pipe");
	conn = must(net.accept(fd));
	tune(conn);
	serve(conn);
	_exit(0);
}

static int start_server(struct wire *w, void (*serve)(int fd))
{
	char byte;
	int p[2], err = 0;

	if (pipe2(p, O_CLOEXEC))
		return -errno;
	w->server = fork();
	if (w->server < 0)
		err = -errno;
	else if (!w->server)
		far_process(w, p[1], serve);
	close(p[1]);
	if (!err && read(p[0], &byte, 1) != 1)
		err = -EIO;
	close(p[0]);
	return err;
}

bool wire_make(struct wire *w, bool tap, void (*serve)(int fd), char *why, size_t size)
{
	int home = wire_own_namespace(), err;

	w->near = w->tap = w->far = -1;
	w->server = -1;
	err = home < 0 ? -errno : make_ends(w, tap);
	if (home >= 0 && setns(home, CLONE_NEWNET))
		die(-errno, "cannot return to this process's network namespace");
	close(home);
	if (!err)
		err = start_server(w, serve);
	if (!err)
		return true;
	snprintf(why, size, "no %s between network namespaces: %s", tap ? "tap" : "veth",
		 strerror(-err));
	wire_remove(w);
	return false;
}

void wire_remove(struct wire *w)
{
	const int own[] = { w->near, w->tap, w->far };

	if (w->server > 0) {
		kill(w->server, SIGKILL);
		waitpid(w->server, NULL, 0);
	}
	for (int i = 0; i < 3; i++)
		if (own[i] >= 0)
			close(own[i]);
}

/* ---- the workloads ---------------------------------------------------------------- */

static int connect_far(enum way way, const char *address)
{
	struct sockaddr_in a = far_address(address);
	int fd;

	calls_begin(way);
	fd = must(net.socket(AF_INET, SOCK_STREAM));
	must(net.connect(fd, &a));
	tune(fd);
	return fd;
}

double wire_rr(enum way way)
{
	return rr_client(connect_far(way, WIRE_FAR));
}

double wire_bulk(enum way way)
{
	return bulk_client(connect_far(way, WIRE_FAR), WIRE_BYTES);
}

void wire_rr_server(int fd)
{
	rr_server(fd);
}

void wire_bulk_server(int fd)
{
	bulk_server(fd, WIRE_BYTES);
}

double wire_connections(enum way way)
{
	return connections_client(connect_far(way, WIRE_FAR), far_address(WIRE_FAR));
}

void wire_connections_server(int fd)
{
	connections_server(fd);
}

double guest_rr(enum way way)
{
	return rr_client(connect_far(way, WIRE_BEYOND));
}

double guest_bulk(enum way way)
{
	return bulk_client(connect_far(way, WIRE_BEYOND), WIRE_BYTES);
}
