// SPDX-License-Identifier: GPL-2.0-only
/*
 * Configuration of a stack from within, in simulated time: a datagram takes
 * exactly the delay that netem was told, a rate is kept to the byte, a seed
 * repeats which packets are lost; and the disciplines, sysctls, namespaces and
 * MPTCP settings that the host's kernel may not have are all taken here.
 */
#include "setup/setup.h"

#include "guise/syscall.h"
#include "test/kernel.h"
#include "test/tap.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>

#define MS 1000000ULL

static struct guise_stack *s;
static int far; /* the other namespace */
static int near_fd, far_fd;

static struct sockaddr_in address(const char *text)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(9) };

	inet_pton(AF_INET, text, &a.sin_addr);
	return a;
}

static int datagram_socket(const char *addr)
{
	struct sockaddr_in a = address(addr);
	int fd = guise_socket(s, AF_INET, SOCK_DGRAM, 0);

	return fd < 0 || guise_bind(s, fd, (struct sockaddr *)&a, sizeof(a)) ? -1 : fd;
}

#define LOST (~0ULL)

/* Nanoseconds until a datagram of so many bytes is there; LOST after 50 ms. */
static uint64_t flight(size_t bytes)
{
	static uint32_t number, buf[500];
	struct sockaddr_in to = address("192.0.2.2");
	struct pollfd p = { .fd = far_fd, .events = POLLIN };
	uint64_t began = guise_clock(s);

	buf[0] = ++number;
	guise_sendto(s, near_fd, buf, bytes, 0, (struct sockaddr *)&to, sizeof(to));
	do {
		if (guise_poll(s, &p, 1, 50) != 1)
			return LOST;
		guise_recvfrom(s, far_fd, buf, sizeof(buf), 0, NULL, NULL);
	} while (buf[0] != number); /* an older one that was only late */
	return guise_clock(s) - began;
}

static void two_namespaces(void)
{
	/* IPv6 would send packets of its own, and spend the seed's numbers. */
	tap_done(guise_sysctl_set(s, "net.ipv6.conf.default.disable_ipv6", "1"), "no IPv6");
	far = guise_netns_new(s);
	tap_done(far, "a second namespace");
	tap_done(guise_veth_add(s, -1, "near", far, "far"), "a cable between the two");
	tap_done(guise_netns_enter(s, far), "into the second");
	tap_done(guise_addr_add(s, "far", "192.0.2.2/24"), "an address there");
	tap_done(guise_link_set(s, "far", 1), "up");
	far_fd = datagram_socket("192.0.2.2");
	tap_done(far_fd, "a socket there");
	tap_fails(guise_link_set(s, "near", 1), ENODEV, "there are ");
	tap_done(guise_netns_enter(s, -1), "back to the first");
	tap_done(guise_addr_add(s, "near", "192.0.2.1/24"), "an address here");
	tap_done(guise_link_set(s, "near", 1), "up");
	near_fd = datagram_socket("192.0.2.1");
	tap_done(near_fd, "a socket here");
	/* The link needs a moment, and the first datagram finds the address. */
	for (int i = 0; i < 100 && flight(100) == LOST; i++)
		;
}

static void delays(void)
{
	char losses[2][201] = { "", "" };
	uint64_t t;
	int lost = 0;

	tap(flight(100) < MS, "without a discipline a datagram takes no time");
	tap_done(guise_qdisc_set(s, "near", "netem delay 20ms"), "netem delay 20ms");
	t = flight(100);
	tap(t / 100000 == 200, "it takes 20 ms (%llu ns)", (unsigned long long)t);
	/* With the headers of UDP, IP and Ethernet: 1014 bytes. */
	tap_done(guise_qdisc_set(s, "near", "netem rate 1mbit"), "netem rate 1mbit");
	t = flight(972);
	tap(t / 10000 == 811, "1014 bytes at 1 Mbit/s take 8.11 ms (%llu ns)",
	    (unsigned long long)t);
	tap(flight(100) < 2 * MS, "what the new text leaves out is gone: there is no delay");
	tap_done(guise_qdisc_set(s, "near", "netem delay 100ms reorder 100% gap 1"), "reorder");
	tap(flight(100) < MS, "all packets are sent ahead of the delayed");
	tap_done(guise_qdisc_set(s, "near", "netem loss 100%"), "netem loss 100%");
	tap(flight(100) == LOST, "nothing arrives");
	for (int run = 0; run < 2; run++) {
		guise_qdisc_set(s, "near", "none");
		tap_done(guise_qdisc_set(s, "near", "netem loss 30% seed 7"),
			 "netem loss 30% seed 7");
		for (int i = 0; i < 200; i++)
			losses[run][i] = flight(100) == LOST ? '0' : '1';
	}
	for (int i = 0; i < 200; i++)
		lost += losses[0][i] == '0';
	tap(!strcmp(losses[0], losses[1]), "the seed repeats which are lost");
	tap(lost > 30 && lost < 90, "about 60 of 200 are (%d)", lost);
	tap_done(guise_qdisc_set(s, "near", "tbf rate 1mbit burst 2kb latency 50ms"), "tbf");
	flight(1000);
	flight(1000);
	t = flight(1000);
	tap(t > 6 * MS && t < 9 * MS, "the third of three datagrams waits for its 1 kB (%llu ns)",
	    (unsigned long long)t);
}

static void kinds(void)
{
	static const char *const specs[] = {
		"netem delay 20ms 2ms 25% loss 0.2% 10% duplicate 1% corrupt 0.1% limit 500 ecn",
		"netem rate 100gbit seed 18446744073709551615",
		"fq",
		"fq limit 100 flow_limit 50 quantum 3kb initial_quantum 15kb maxrate 1gbit nopacing",
		"fq_codel limit 1000 flows 64 target 5ms interval 100ms quantum 1514 noecn",
		"fq_codel ecn",
		"pfifo limit 100",
		"bfifo limit 64kb",
		"tbf rate 100gbit burst 1mb limit 2mb",
		"none",
	};

	for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++)
		tap_done(guise_qdisc_set(s, "near", specs[i]), specs[i]);
	tap_fails(guise_qdisc_set(s, "nowhere", "fq"), ENODEV, "there are ");
}

static void settings(void)
{
	char text[256];

	tap_done(guise_sysctl_set(s, "net.ipv4.tcp_congestion_control", "bbr"),
		 "a congestion control");
	tap(guise_sysctl_get(s, "net.ipv4.tcp_congestion_control", text, sizeof(text)) == 3 &&
		    !strcmp(text, "bbr"),
	    "which can be read");
	tap_fails(guise_sysctl_set(s, "net.ipv4.tcp_congestion_control", "tahoe"), ENOENT,
		  "valid are ");
	tap_fails(guise_sysctl_set(s, "net.ipv4.tcp_congestion", "bbr"), ENOENT,
		  "net.ipv4.tcp_congestion_control");
	tap_done(guise_sysctl_set(s, "net.mptcp.enabled", "1"), "MPTCP is there");
	tap_done(guise_mptcp_limits(s, 4, 4), "its limits");
	tap_done(guise_mptcp_endpoint(s, "192.0.2.1", "near", "subflow fullmesh"), "an endpoint");
	tap_fails(guise_mptcp_endpoint(s, "192.0.2.1", "near", "subflow"), EEXIST,
		  "mptcp endpoint");
	tap_done(guise_route_add(s, "default", "192.0.2.2", NULL, 7), "a route in a table");
	tap_done(guise_rule_change(s, &(struct guise_rule){ .from = "192.0.2.1", .table = 7 },
				   true),
		 "a rule");
	tap_fails(guise_route_add(s, "default", "203.0.113.1", NULL, 0), ENETUNREACH,
		  "Nexthop has invalid gateway");
	tap_done(guise_bridge_add(s, "br0", (const char *const[]){ "near" }, 1), "a bridge");
	tap(guise_read_file(s, "/proc/thread-self/net/dev", text, 20) == -EOVERFLOW,
	    "a file that does not fit is not cut");
}

int main(void)
{
	test_find_kernel();
	s = test_stack("inside", 1);
	two_namespaces();
	delays();
	kinds();
	settings();
	guise_leave(s);
	return tap_end();
}
