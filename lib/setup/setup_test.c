// SPDX-License-Identifier: GPL-2.0-only
/*
 * The netlink writer against a real kernel: the host's, in a network namespace
 * that the test makes for itself. guise_call() is replaced by one that hands
 * the same calls to the host; what they did is read back with ip and tc.
 */
#include "setup/setup.h"

#include "guise/layout.h"
#include "guise/syscall.h"
#include "host/sys.h"
#include "test/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CANNOT_RUN 77

static int first_ns;

static long new_namespace(void)
{
	int here = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC), made;

	if (here < 0 || unshare(CLONE_NEWNET))
		return -errno;
	made = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	if (setns(here, CLONE_NEWNET))
		abort();
	close(here);
	return made;
}

long guise_call(struct guise_stack *s, long nr, long a, long b, long c, long d, long e, long f)
{
	static const struct {
		long stack, host;
	} numbers[] = {
		{ GUISE_NR_socket, SYS_socket }, { GUISE_NR_setsockopt, SYS_setsockopt },
		{ GUISE_NR_sendto, SYS_sendto }, { GUISE_NR_recvfrom, SYS_recvfrom },
		{ GUISE_NR_close, SYS_close },   { GUISE_NR_ioctl, SYS_ioctl },
		{ GUISE_NR_openat, SYS_openat }, { GUISE_NR_read, SYS_read },
		{ GUISE_NR_write, SYS_write },   { GUISE_NR_getdents64, SYS_getdents64 },
		{ GUISE_NR_setns, SYS_setns },
	};

	(void)s;
	if (nr == GUISE_NR_NETNS_NEW)
		return new_namespace();
	/* The host's first namespace is not ours to enter. */
	if (nr == GUISE_NR_openat && !strcmp((const char *)b, "/proc/1/ns/net"))
		return fcntl(first_ns, F_DUPFD_CLOEXEC, 0);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (numbers[i].stack == nr)
			return host_sys6(numbers[i].host, a, b, c, d, e, f);
	printf("# call %ld is not known to this test\n", nr);
	abort();
}

/* Whether a command's output has a word. */
static bool shows(const char *command, const char *word)
{
	char text[8192];
	size_t n;
	/* NOLINTNEXTLINE(bugprone-command-processor): the commands are this file's */
	FILE *p = popen(command, "r");

	if (!p)
		return false;
	n = fread(text, 1, sizeof(text) - 1, p);
	text[n] = '\0';
	pclose(p);
	if (strstr(text, word))
		return true;
	printf("# %s: no \"%s\" in:\n# %s\n", command, word, text);
	return false;
}

static void done(int err, const char *name)
{
	if (!tap(!err, "%s", name))
		printf("# %s\n", guise_error());
}

static void interfaces(void)
{
	done(guise_link_set(NULL, "lo", 1), "lo goes up");
	done(guise_veth_add(NULL, -1, "v0", -1, "v1"), "a veth cable within a namespace");
	done(guise_link_set(NULL, "v0", 1), "v0 goes up");
	done(guise_link_set(NULL, "v1", 1), "v1 goes up");
	done(guise_link_mtu(NULL, "v0", 1400), "an MTU is set");
	tap(shows("ip link show v0", "mtu 1400") && shows("ip link show v0", "UP"), "ip sees both");
	done(guise_addr_add(NULL, "v0", "192.0.2.2/24"), "an IPv4 address");
	done(guise_addr_add(NULL, "v0", "2001:db8::2/64"), "an IPv6 address");
	tap(shows("ip addr show v0", "192.0.2.2/24 brd 192.0.2.255") &&
		    shows("ip addr show v0", "2001:db8::2/64"),
	    "ip sees them");
	tap(shows("ip -o -6 addr show v0", "2001:db8::2/64 scope global nodad"),
	    "IPv6 without duplicate address detection");

	tap_fails(guise_link_set(NULL, "v7", 1), ENODEV, "there are lo, v");
	tap_fails(guise_link_set(NULL, "", 1), EINVAL, "no interface name");
	tap_fails(guise_addr_add(NULL, "v0", "192.0.2.2.4/24"), EINVAL, "such as 192.0.2.2/24");
	tap_fails(guise_addr_add(NULL, "v0", "192.0.2.2/33"), EINVAL, "0 to 32");
	tap_fails(guise_addr_add(NULL, "v0", "192.0.2.2/24"), EEXIST,
		  "address 192.0.2.2/24 on v0: ");
	tap_fails(guise_link_mtu(NULL, "v0", 1), EINVAL, "mtu");
}

static void routes(void)
{
	const struct guise_rule v4 = { .from = "192.0.2.2", .table = 1000 },
				v6 = { .from = "2001:db8::/64", .table = 7 },
				whole = { .from = "10.0.0.0/8",
					  .to = "192.0.2.0/24",
					  .iif = "v0",
					  .oif = "lo",
					  .fwmark = 3,
					  .priority = 50,
					  .table = 9 },
				marked = { .fwmark = 5, .table = 11 },
				none = { .from = "192.0.2.2" },
				mixed = { .from = "192.0.2.2", .to = "fd00::/8", .table = 3 };

	done(guise_route_add(NULL, "default", "192.0.2.1", NULL, 0), "a default route");
	done(guise_route_add(NULL, "default", "2001:db8::1", NULL, 0),
	     "one of IPv6, by its gateway");
	done(guise_route_add(NULL, "10.0.0.0/8", NULL, "v0", 0), "a route to an interface");
	done(guise_route_add(NULL, "default", "192.0.2.1", "v0", 1000), "a route in table 1000");
	done(guise_rule_change(NULL, &v4, true), "a rule");
	done(guise_rule_change(NULL, &v6, true), "a rule of IPv6");
	done(guise_rule_change(NULL, &whole, true), "a rule with all there is");
	done(guise_rule_change(NULL, &marked, true), "a rule of both families");
	tap(shows("ip route", "default via 192.0.2.1 dev v0") &&
		    shows("ip -6 route", "default via 2001:db8::1 dev v0") &&
		    shows("ip route", "10.0.0.0/8 dev v0 proto static scope link") &&
		    shows("ip route show table 1000", "default via 192.0.2.1 dev v0") &&
		    shows("ip rule", "from 192.0.2.2 lookup 1000") &&
		    shows("ip -6 rule", "from 2001:db8::/64 lookup 7") &&
		    shows("ip rule",
			  "50:	from 10.0.0.0/8 to 192.0.2.0/24 fwmark 0x3 iif v0 oif lo "
			  "lookup 9") &&
		    shows("ip rule", "fwmark 0x5 lookup 11") &&
		    shows("ip -6 rule", "fwmark 0x5 lookup 11"),
	    "ip sees them all");

	tap_fails(guise_route_add(NULL, "default", NULL, NULL, 0), EINVAL, "needs a gateway");
	tap_fails(guise_route_add(NULL, "default", "203.0.113.1", NULL, 5), ENETUNREACH,
		  "Nexthop has invalid gateway");
	tap_fails(guise_route_add(NULL, "10.0.0.0/8", "2001:db8::1", NULL, 0), EINVAL, "IPv6");
	tap_fails(guise_route_add(NULL, "default", "192.0.2.1/24", NULL, 0), EINVAL,
		  "without a length");
	tap_fails(guise_rule_change(NULL, &none, true), EINVAL, "table 0");
	tap_fails(guise_rule_change(NULL, &mixed, true), EINVAL, "IPv6");
}

static void bridge(void)
{
	const char *const ports[] = { "b0", "b1" };

	done(guise_veth_add(NULL, -1, "b0", -1, "x0") ?: guise_veth_add(NULL, -1, "b1", -1, "x1"),
	     "two cables");
	done(guise_bridge_add(NULL, "br0", ports, 2), "a bridge over their ends");
	tap(shows("ip link show b0", "master br0") && shows("ip link show b1", "master br0") &&
		    shows("ip link show br0", ",UP"),
	    "ip sees it");
	tap_fails(guise_bridge_add(NULL, "br0", ports, 2), EEXIST, "bridge br0");
	tap_fails(guise_bridge_add(NULL, "br1", (const char *const[]){ "b9" }, 1), ENODEV,
		  "\"b9\"");
}

static void qdisc(const char *spec, const char *seen)
{
	int err = guise_qdisc_set(NULL, "v0", spec);

	if (err == -ENOENT && strstr(guise_error(), "unknown")) {
		tap_skip(spec, "not in the host's kernel");
		return;
	}
	if (!tap(!err && shows("tc qdisc show dev v0", seen), "%s", spec))
		printf("# %s\n", guise_error());
}

static void qdiscs(void)
{
	qdisc("pfifo limit 100", "limit 100p");
	qdisc("pfifo limit 50", "limit 50p");
	qdisc("bfifo limit 64kb", "limit 64Kb");
	qdisc("tbf rate 10mbit burst 32kb latency 50ms", "rate 10Mbit burst 32Kb lat 50ms");
	qdisc("tbf rate 100gbit burst 1mb limit 2mb", "rate 100Gbit");
	qdisc("netem delay 20ms loss 0.2% rate 100mbit seed 7",
	      "delay 20ms loss 0.2% rate 100Mbit");
	qdisc("netem", "netem");
	qdisc("fq maxrate 1gbit", "maxrate 1Gbit");
	qdisc("fq_codel target 7ms noecn", "target 7ms");
	qdisc("pfifo limit 70", "limit 70p");
	qdisc("pfifo", "pfifo");
	tap(shows("tc qdisc show dev v0 | grep -c 70p", "0"),
	    "a discipline of the same kind starts anew");
	done(guise_qdisc_set(NULL, "v0", "none"), "none");
	done(guise_qdisc_set(NULL, "v0", "none"), "none where there is none");
	tap(shows("tc qdisc show dev v0", "noqueue"), "tc sees what was there at first");
}

static void sysctls(void)
{
	char value[256];

	done(guise_sysctl_set(NULL, "net.ipv4.ip_forward", "1"), "a sysctl is set");
	tap(guise_sysctl_get(NULL, "net/ipv4/ip_forward", value, sizeof(value)) == 1 &&
		    !strcmp(value, "1"),
	    "and read, with slashes");
	done(guise_sysctl_set(NULL, "net.ipv4.tcp_rmem", "4096 65536 131072"), "three values");
	done(guise_sysctl_set(NULL, "net.ipv4.conf.v0.forwarding", "0"), "one of an interface");
	tap_fails(guise_sysctl_set(NULL, "net.ipv4.tcp_congestion", "cubic"), ENOENT,
		  "net.ipv4.tcp_congestion_control");
	tap_fails(guise_sysctl_set(NULL, "net.ipv4.tcp_sakc", "1"), ENOENT, "net.ipv4.tcp_sack");
	tap_fails(guise_sysctl_set(NULL, "net.ipv5.tcp_sack", "1"), ENOENT, "net.ipv4");
	tap_fails(guise_sysctl_set(NULL, "nett.ipv4.tcp_sack", "1"), ENOENT, "the nearest are net");
	tap_fails(guise_sysctl_set(NULL, "net.ipv4.tcp_sack.x", "1"), ENOENT, "no such key");
	tap_fails(guise_sysctl_set(NULL, "net.ipv4.tcp_congestion_control", "tahoe"), ENOENT,
		  "(valid are ");
	tap_fails(guise_sysctl_set(NULL, "net.ipv4.ip_default_ttl", "300"), EINVAL, "(it is 64)");
	tap_fails(guise_sysctl_set(NULL, "net..x", "1"), EINVAL, "empty part");
	tap_fails(guise_sysctl_set(NULL, "../../etc/passwd", "1"), EINVAL, "expected a key");
	tap_fails(guise_sysctl_get(NULL, "net.ipv4", value, sizeof(value)), EISDIR, "folder");
}

static void mptcp(void)
{
	int err = guise_mptcp_limits(NULL, 4, 5);

	if (err == -ENOENT) {
		tap_skip("mptcp", "not in the host's kernel");
		return;
	}
	done(err, "limits of MPTCP");
	done(guise_mptcp_endpoint(NULL, "192.0.2.2", "v0", "subflow backup"), "an endpoint");
	done(guise_mptcp_endpoint(NULL, "2001:db8::2", NULL, "signal"), "one of IPv6");
	tap(shows("ip mptcp limits", "add_addr_accepted 4 subflows 5") &&
		    shows("ip mptcp endpoint", "192.0.2.2 id 1 subflow backup dev v0") &&
		    shows("ip mptcp endpoint", "2001:db8::2 id 2 signal"),
	    "ip sees them");
	tap_fails(guise_mptcp_limits(NULL, 4, 500), EINVAL, "mptcp limits 4 500: ");
	tap_fails(guise_mptcp_endpoint(NULL, "192.0.2.3", NULL, "fast"), EINVAL,
		  "signal, subflow, backup, fullmesh");
	tap_fails(guise_mptcp_endpoint(NULL, "192.0.2.0/24", NULL, ""), EINVAL, "without a length");
	tap_fails(guise_mptcp_endpoint(NULL, "192.0.2.2", NULL, "signal"), EEXIST, "endpoint");
}

static void namespaces(void)
{
	int ns = guise_netns_new(NULL);

	done(ns < 0 ? ns : 0, "a new namespace");
	done(guise_veth_add(NULL, -1, "out", ns, "in"), "a cable into it");
	tap(shows("ip link", "out") && shows("ip link", "v0"), "the thread stays where it was");
	done(guise_netns_enter(NULL, ns), "the thread enters it");
	tap(shows("ip link", "in@") && shows("ip link show lo", "UP"),
	    "there: the cable, and lo up");
	tap_fails(guise_link_set(NULL, "v0", 1), ENODEV, "there are lo, in");
	done(guise_netns_enter(NULL, -1), "back to the first");
	tap(shows("ip link", "v0"), "there: what was");
	close(ns);
	tap_fails(guise_netns_enter(NULL, ns), EBADF, "cannot enter");
}

int main(void)
{
	if (unshare(CLONE_NEWNET)) {
		printf("# this test makes a network namespace, which needs CAP_SYS_ADMIN\n");
		return CANNOT_RUN;
	}
	/* NOLINTNEXTLINE(bugprone-command-processor) */
	if (system("ip -V >/dev/null && tc -V >/dev/null")) {
		printf("# this test looks with ip and tc (package iproute2)\n");
		return CANNOT_RUN;
	}
	first_ns = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	interfaces();
	routes();
	bridge();
	qdiscs();
	sysctls();
	mptcp();
	namespaces();
	return tap_end();
}
