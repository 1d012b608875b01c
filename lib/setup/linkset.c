// SPDX-License-Identifier: GPL-2.0-only
/* Interfaces of a stack: find, up and down, MTU, bridges, veth pairs. */
#include "guise/syscall.h"
#include "region/stack.h"
#include "setup/nl.h"
#include "setup/setup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <linux/veth.h>
#include <stdio.h>
#include <string.h>

/* "lo, eth0": the interfaces of this thread's namespace. */
static void list_interfaces(struct guise_stack *s, char *names, size_t size)
{
	char text[4096], *line, *rest = text, *colon;
	size_t len = 0;

	names[0] = '\0';
	if (guise_read_file(s, "/proc/thread-self/net/dev", text, sizeof(text)) < 0)
		return;
	while ((line = strsep(&rest, "\n"))) {
		colon = strchr(line, ':');
		if (!colon)
			continue; /* the two lines of the table's head */
		*colon = '\0';
		line += strspn(line, " ");
		len += (size_t)snprintf(names + len, size - len, "%s%s", len ? ", " : "", line);
		if (len >= size)
			return;
	}
}

int guise_ifindex(struct guise_stack *s, const char *dev)
{
	struct ifreq req = { 0 };
	char names[256];
	int fd;
	long ret;

	if (!*dev || strlen(dev) >= IFNAMSIZ)
		return guise_fail(EINVAL, "\"%s\" is no interface name (1 to %d characters)", dev,
				  IFNAMSIZ - 1);
	fd = (int)guise_call(s, GUISE_NR_socket, AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE,
			     0, 0, 0);
	if (fd < 0)
		return guise_fail(-fd, "no netlink socket in the stack: %s", strerror(-fd));
	strcpy(req.ifr_name, dev);
	ret = guise_call(s, GUISE_NR_ioctl, fd, SIOCGIFINDEX, (long)&req, 0, 0, 0);
	guise_call(s, GUISE_NR_close, fd, 0, 0, 0, 0, 0);
	if (!ret)
		return req.ifr_ifindex;
	if (ret != -ENODEV)
		return guise_fail((int)-ret, "interface %s: %s", dev, strerror((int)-ret));
	list_interfaces(s, names, sizeof(names));
	return guise_fail(ENODEV, "no interface \"%s\" in the stack; there are %s", dev, names);
}

int guise_link_set(struct guise_stack *s, const char *dev, int up)
{
	struct ifinfomsg body = {
		.ifi_flags = up ? IFF_UP : 0,
		.ifi_change = IFF_UP,
	};
	struct guise_nl m;

	body.ifi_index = guise_ifindex(s, dev);
	if (body.ifi_index < 0)
		return body.ifi_index;
	guise_nl_begin(&m, RTM_NEWLINK, 0, &body, sizeof(body));
	return guise_nl_talk(s, NETLINK_ROUTE, &m, NULL, NULL, "%s %s", up ? "up" : "down", dev);
}

int guise_link_mtu(struct guise_stack *s, const char *dev, int mtu)
{
	struct ifinfomsg body = { 0 };
	struct guise_nl m;

	body.ifi_index = guise_ifindex(s, dev);
	if (body.ifi_index < 0)
		return body.ifi_index;
	guise_nl_begin(&m, RTM_NEWLINK, 0, &body, sizeof(body));
	guise_nl_u32(&m, IFLA_MTU, (uint32_t)mtu);
	return guise_nl_talk(s, NETLINK_ROUTE, &m, NULL, NULL, "mtu %d of %s", mtu, dev);
}

int guise_bridge_add(struct guise_stack *s, const char *name, const char *const *ports, int n)
{
	struct ifinfomsg body = { 0 };
	struct guise_nl m;
	size_t info;
	int err, bridge;

	guise_nl_begin(&m, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &body, sizeof(body));
	guise_nl_str(&m, IFLA_IFNAME, name);
	info = guise_nl_nest(&m, IFLA_LINKINFO, NULL, 0);
	guise_nl_str(&m, IFLA_INFO_KIND, "bridge");
	guise_nl_end(&m, info);
	err = guise_nl_talk(s, NETLINK_ROUTE, &m, NULL, NULL, "bridge %s", name);
	if (err)
		return err;
	bridge = guise_ifindex(s, name);
	if (bridge < 0)
		return bridge;

	for (int i = 0; i < n; i++) {
		memset(&body, 0, sizeof(body));
		body.ifi_index = guise_ifindex(s, ports[i]);
		if (body.ifi_index < 0)
			return body.ifi_index;
		body.ifi_flags = body.ifi_change = IFF_UP;
		guise_nl_begin(&m, RTM_NEWLINK, 0, &body, sizeof(body));
		guise_nl_u32(&m, IFLA_MASTER, (uint32_t)bridge);
		err = guise_nl_talk(s, NETLINK_ROUTE, &m, NULL, NULL, "port %s of bridge %s",
				    ports[i], name);
		if (err)
			return err;
	}
	return guise_link_set(s, name, 1);
}

int guise_veth_add(struct guise_stack *s, int ns_a, const char *name_a, int ns_b,
		   const char *name_b)
{
	struct ifinfomsg body = { 0 };
	struct guise_nl m;
	size_t info, data, peer;
	int first = -1, err;

	/* Both ends are placed by descriptor, wherever this thread works. */
	if (ns_a < 0 || ns_b < 0) {
		first = (int)guise_call(s, GUISE_NR_openat, AT_FDCWD, (long)"/proc/1/ns/net",
					O_RDONLY | O_CLOEXEC, 0, 0, 0);
		if (first < 0)
			return guise_fail(-first,
					  "veth %s: cannot open the stack's first "
					  "namespace: %s",
					  name_a, strerror(-first));
	}
	guise_nl_begin(&m, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &body, sizeof(body));
	guise_nl_str(&m, IFLA_IFNAME, name_a);
	guise_nl_u32(&m, IFLA_NET_NS_FD, (uint32_t)(ns_a < 0 ? first : ns_a));
	info = guise_nl_nest(&m, IFLA_LINKINFO, NULL, 0);
	guise_nl_str(&m, IFLA_INFO_KIND, "veth");
	data = guise_nl_nest(&m, IFLA_INFO_DATA, NULL, 0);
	peer = guise_nl_nest(&m, VETH_INFO_PEER, &body, sizeof(body));
	guise_nl_str(&m, IFLA_IFNAME, name_b);
	guise_nl_u32(&m, IFLA_NET_NS_FD, (uint32_t)(ns_b < 0 ? first : ns_b));
	guise_nl_end(&m, peer);
	guise_nl_end(&m, data);
	guise_nl_end(&m, info);
	err = guise_nl_talk(s, NETLINK_ROUTE, &m, NULL, NULL, "veth %s to %s", name_a, name_b);
	if (first >= 0)
		guise_call(s, GUISE_NR_close, first, 0, 0, 0, 0, 0);
	return err;
}
