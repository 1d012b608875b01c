// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a stack is made of besides TCP and UDP. Runs under guise run without
 * the preload library (env GUISE_PRELOAD=off) and joins by itself, so that it can
 * make namespaces; Debian's tools, which it starts, are preloaded with
 * $PRELOAD and configure the stack's first namespace. Usage: features WHAT
 *
 *	nat masquerade|plain	the source address that a server beyond a router sees
 *	rule			which way packets go, by their source address
 *	bridge			a connection between two ports of a bridge
 *	tun, tap		packets in both directions through a stack's /dev/net/tun
 *	packet			packet sockets: raw and cooked, auxiliary data, a filter
 *	diag			sockets of all kinds, and then the command lines that follow
 *	files			the stack's /proc/net and /sys/class/net
 *	ipv6			connections over lo and over a cable
 *	htb			nanoseconds that a megabyte took at 16 Mbit/s
 */
#include "guise/guise.h"
#include "guise/syscall.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#define PORT     5001
#define PATIENCE 20000 /* ms for what has to come */

static struct guise_stack *s;

static int must(long ret, const char *what)
{
	if (ret >= 0)
		return (int)ret;
	fprintf(stderr, "features: %s: %s (%s)\n", what, strerror((int)-ret), guise_error());
	exit(1);
}

/* A command line, on the stack; it works in the first namespace. */
static void tool(const char *line)
{
	char all[4096];

	snprintf(all, sizeof(all), "unset GUISE_PRELOAD; export LD_PRELOAD='%s'; %s",
		 getenv("PRELOAD"), line);
	fflush(stdout);
	if (system(all))
		must(-EIO, line);
}

struct address {
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	};
	socklen_t len;
};

static struct address address(const char *text, int port)
{
	struct address a = { .len = sizeof(a.v4) };

	if (strchr(text, ':')) {
		a.len = sizeof(a.v6);
		a.v6.sin6_family = AF_INET6;
		a.v6.sin6_port = htons((uint16_t)port);
		inet_pton(AF_INET6, text, &a.v6.sin6_addr);
	} else {
		a.v4.sin_family = AF_INET;
		a.v4.sin_port = htons((uint16_t)port);
		inet_pton(AF_INET, text, &a.v4.sin_addr);
	}
	return a;
}

static int bound(int type, const char *text, int port)
{
	struct address a = address(text, port);
	int fd = must(guise_socket(s, a.any.sa_family, type, 0), "socket");

	must(guise_bind(s, fd, &a.any, a.len), "bind");
	return fd;
}

static int listener(const char *text)
{
	int fd = bound(SOCK_STREAM, text, PORT);

	must(guise_listen(s, fd, 4), "listen");
	return fd;
}

static int connected(const char *from, const char *to)
{
	struct address a = address(to, PORT);
	int fd = bound(SOCK_STREAM, from, 0);

	must(guise_connect(s, fd, &a.any, a.len), "connect");
	return fd;
}

/* The client's address, as the server sees it; a word goes from client to server. */
static void greet(int listening, int client)
{
	struct address a = { .len = sizeof(a.v6) };
	int fd = must(guise_accept4(s, listening, &a.any, &a.len, 0), "accept");
	char text[INET6_ADDRSTRLEN], word[8] = { 0 };

	must(guise_write(s, client, "hello", 5), "write");
	must(guise_read(s, fd, word, 5), "read");
	inet_ntop(a.any.sa_family,
		  a.any.sa_family == AF_INET ? (void *)&a.v4.sin_addr : (void *)&a.v6.sin6_addr,
		  text, sizeof(text));
	printf("%s from %s\n", word, text);
	guise_close(s, fd);
	guise_close(s, client);
}

/* A namespace with one end of a veth pair to the first one; both ends have the same name. */
static int host_on_cable(const char *name, const char *addr, const char *gateway)
{
	int ns = must(guise_netns_new(s), "namespace");

	must(guise_veth_add(s, -1, name, ns, name), "veth");
	must(guise_netns_enter(s, ns), "enter");
	must(guise_addr_add(s, name, addr), addr);
	must(guise_link_set(s, name, 1), "up");
	if (gateway)
		must(guise_route_add(s, "default", gateway, NULL, 0), "route");
	must(guise_netns_enter(s, -1), "leave");
	must(guise_link_set(s, name, 1), "up");
	return ns;
}

static void nat(const char *how)
{
	int inner = host_on_cable("in", "10.1.0.2/24", "10.1.0.1");
	int outer = host_on_cable("out", "10.2.0.2/24", "10.2.0.1"), server, client;

	must(guise_addr_add(s, "in", "10.1.0.1/24"), "address");
	must(guise_addr_add(s, "out", "10.2.0.1/24"), "address");
	must(guise_sysctl_set(s, "net.ipv4.ip_forward", "1"), "forward");
	if (!strcmp(how, "masquerade"))
		tool("nft 'table ip nat { chain post { type nat hook postrouting priority 100; "
		     "oifname \"out\" masquerade; }; }'");
	must(guise_netns_enter(s, outer), "outer");
	server = listener("10.2.0.2");
	must(guise_netns_enter(s, inner), "inner");
	client = connected("10.1.0.2", "10.2.0.2");
	greet(server, client);
}

static void rule(void)
{
	static const char *const from[] = { "10.1.0.1", "10.2.0.1" };
	int ns[2] = { host_on_cable("a", "10.1.0.2/24", "10.1.0.1"),
		      host_on_cable("b", "10.2.0.2/24", "10.2.0.1") };
	struct pollfd server[2];

	for (int i = 0; i < 2; i++) {
		must(guise_netns_enter(s, ns[i]), "enter");
		must(guise_addr_add(s, "lo", "10.9.9.9/32"), "address");
		server[i] = (struct pollfd){ listener("10.9.9.9"), POLLIN, 0 };
	}
	must(guise_netns_enter(s, -1), "leave");
	must(guise_addr_add(s, "a", "10.1.0.1/24"), "address");
	must(guise_addr_add(s, "b", "10.2.0.1/24"), "address");
	must(guise_route_add(s, "10.9.9.9/32", "10.1.0.2", NULL, 0), "route");
	must(guise_route_add(s, "10.9.9.9/32", "10.2.0.2", NULL, 100), "route of table 100");
	tool("ip rule add from 10.2.0.1 table 100");
	for (int i = 0; i < 2; i++) {
		int client = connected(from[i], "10.9.9.9"), at;

		must(guise_poll(s, server, 2, PATIENCE) - 1, "nobody is reached");
		at = server[0].revents ? 0 : 1;
		printf("%c: ", 'a' + at);
		greet(server[at].fd, client);
	}
}

static void bridge(void)
{
	int x = host_on_cable("x", "10.3.0.1/24", NULL), server, client;
	int y = host_on_cable("y", "10.3.0.2/24", NULL);

	tool("ip link add br0 type bridge; ip link set x master br0; ip link set y master br0; "
	     "ip link set br0 up");
	must(guise_netns_enter(s, y), "enter");
	server = listener("10.3.0.2");
	must(guise_netns_enter(s, x), "enter");
	client = connected("10.3.0.1", "10.3.0.2");
	greet(server, client);
}

/* ---- tun and tap ------------------------------------------------------------------------- */

static unsigned short checksum(const void *p, size_t n)
{
	const unsigned short *w = p;
	unsigned int sum = 0;

	for (n /= 2; n--;)
		sum += *w++;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (unsigned short)~sum;
}

/* A datagram "ping" from 10.4.0.2 to the stack's 10.4.0.1; its length. */
static size_t datagram(unsigned char *p)
{
	struct iphdr ip = { .version = 4,
			    .ihl = 5,
			    .ttl = 64,
			    .protocol = IPPROTO_UDP,
			    .tot_len = htons(32),
			    .saddr = inet_addr("10.4.0.2"),
			    .daddr = inet_addr("10.4.0.1") };
	struct udphdr udp = { .source = htons(7), .dest = htons(PORT), .len = htons(12) };

	ip.check = checksum(&ip, sizeof(ip));
	memcpy(p, &ip, sizeof(ip));
	memcpy(p + 20, &udp, sizeof(udp));
	memcpy(p + 28, "ping", 4);
	return 32;
}

static ssize_t await(int fd, void *buf, size_t size, struct address *from)
{
	struct pollfd p = { fd, POLLIN, 0 };

	must(guise_poll(s, &p, 1, PATIENCE) - 1, "nothing comes");
	return must(guise_recvfrom(s, fd, buf, size, 0, from ? &from->any : NULL,
				   from ? &from->len : NULL),
		    "receive");
}

static void tun(short flags)
{
	int fd = must(guise_call(s, GUISE_NR_openat, AT_FDCWD, (long)"/dev/net/tun", O_RDWR, 0, 0,
				 0),
		      "/dev/net/tun");
	struct ifreq r = { .ifr_flags = (short)(flags | IFF_NO_PI) };
	size_t head = flags == IFF_TAP ? ETH_HLEN : 0, n;
	struct address from = { .len = sizeof(from.v6) };
	unsigned char frame[2048] = { 0 };
	int packet, udp;
	ssize_t got;

	strcpy(r.ifr_name, "t0");
	must(guise_call(s, GUISE_NR_ioctl, fd, TUNSETIFF, (long)&r, 0, 0, 0), "TUNSETIFF");
	must(guise_addr_add(s, "t0", "10.4.0.1/24"), "address");
	must(guise_sysctl_set(s, "net.ipv6.conf.t0.disable_ipv6", "1"), "no IPv6");
	must(guise_link_set(s, "t0", 1), "up");
	if (head) {
		/* The neighbour's link-layer address is set, so that it is not asked for. */
		tool("ip neigh add 10.4.0.2 lladdr 02:00:00:00:00:02 dev t0 nud permanent");
		must(guise_call(s, GUISE_NR_ioctl, fd, SIOCGIFHWADDR, (long)&r, 0, 0, 0), "MAC");
		memcpy(frame, r.ifr_hwaddr.sa_data, ETH_ALEN);
		frame[6] = frame[11] = 2;
		frame[12] = ETH_P_IP >> 8;
	}
	packet = must(guise_socket(s, AF_PACKET, SOCK_RAW, htons(ETH_P_IP)), "packet socket");
	udp = bound(SOCK_DGRAM, "10.4.0.1", PORT);
	n = head + datagram(frame + head);
	must(guise_write(s, fd, frame, n), "write to the device");
	got = await(packet, frame, sizeof(frame), NULL);
	printf("packet socket: %zd of %zu %.4s\n", got, n, frame + head + 28);
	got = await(udp, frame, sizeof(frame), &from);
	printf("udp socket: %zd %.4s\n", got, frame);
	must(guise_sendto(s, udp, "pong", 4, 0, &from.any, from.len), "answer");
	got = must(guise_read(s, fd, frame, sizeof(frame)), "read from the device");
	printf("device: %zd of %zu %.4s\n", got, n, frame + head + 28);
}

/* ---- packet sockets ---------------------------------------------------------------------- */

static void packet(void)
{
	/* Accepts UDP to PORT, as tcpdump would write it for a raw socket on Ethernet. */
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, ETH_HLEN + 9),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 0, 3),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, ETH_HLEN + 22),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PORT, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 65535),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog filter = { sizeof(code) / sizeof(code[0]), code };
	char control[256] __attribute__((aligned(16))), data[2048];
	int raw = must(guise_socket(s, AF_PACKET, SOCK_RAW, htons(ETH_P_ALL)), "raw");
	int cooked = must(guise_socket(s, AF_PACKET, SOCK_DGRAM, htons(ETH_P_IP)), "cooked");
	int udp = bound(SOCK_DGRAM, "127.0.0.1", 0), one = 1;
	struct iovec iov = { data, sizeof(data) };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control,
			    .msg_controllen = sizeof(control) };
	struct tpacket_auxdata aux = { 0 };
	struct sockaddr_ll from;
	socklen_t len = sizeof(from);
	struct pollfd p = { raw, POLLIN, 0 };
	struct cmsghdr *c;
	ssize_t n;

	must(guise_setsockopt(s, raw, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)),
	     "filter");
	must(guise_setsockopt(s, raw, SOL_PACKET, PACKET_AUXDATA, &one, sizeof(one)), "auxdata");
	for (int port = PORT - 1; port <= PORT; port++) {
		struct address to = address("127.0.0.1", port);

		must(guise_sendto(s, udp, port == PORT ? "wanted" : "other", 6, 0, &to.any, to.len),
		     "send");
	}
	must(guise_poll(s, &p, 1, PATIENCE) - 1, "nothing comes");
	n = must(guise_recvmsg(s, raw, &m, 0), "recvmsg");
	for (c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
		if (c->cmsg_level == SOL_PACKET && c->cmsg_type == PACKET_AUXDATA)
			memcpy(&aux, CMSG_DATA(c), sizeof(aux));
	printf("raw: %zd %.6s, auxiliary: length %u, network at %u\n", n, data + ETH_HLEN + 28,
	       aux.tp_len, aux.tp_net);
	n = must(guise_recvfrom(s, cooked, data, sizeof(data), 0, (struct sockaddr *)&from, &len),
		 "recvfrom");
	printf("cooked: %zd %.5s, protocol %#x, interface %d\n", n, data + 28,
	       ntohs(from.sll_protocol), from.sll_ifindex);
}

static void diag(int argc, char **argv)
{
	int tcp = listener("127.0.0.1"), client = connected("127.0.0.1", "127.0.0.1");
	struct address any = address("127.0.0.1", PORT + 1);
	int mptcp = must(guise_socket(s, AF_INET, SOCK_STREAM, 262), "MPTCP");

	(void)tcp;
	(void)client;
	bound(SOCK_DGRAM, "127.0.0.1", PORT + 2);
	must(guise_socket(s, AF_INET, SOCK_RAW, IPPROTO_ICMP), "raw");
	must(guise_bind(s, mptcp, &any.any, any.len), "bind");
	must(guise_listen(s, mptcp, 1), "listen");
	for (int i = 2; i < argc; i++)
		tool(argv[i]);
}

static void files(void)
{
	static const char *const of[] = { "/proc/net/dev",
					  "/proc/net/tcp",
					  "/proc/net/snmp",
					  "/proc/net/route",
					  "/proc/net/protocols",
					  "/proc/sys/net/ipv4/tcp_congestion_control",
					  "/sys/class/net/lo/mtu",
					  "/sys/class/net/lo/operstate",
					  "/sys/class/net/lo/statistics/rx_bytes" };
	static char text[65536];

	listener("127.0.0.1");
	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		must(guise_read_file(s, of[i], text, sizeof(text)), of[i]);
		printf("== %s\n%s", of[i], text);
	}
}

static void ipv6(void)
{
	int ns = host_on_cable("v", "2001:db8::2/64", NULL), server, client;

	server = listener("::1");
	client = connected("::1", "::1");
	greet(server, client);
	must(guise_addr_add(s, "v", "2001:db8::1/64"), "address");
	must(guise_netns_enter(s, ns), "enter");
	server = listener("2001:db8::2");
	must(guise_netns_enter(s, -1), "leave");
	client = connected("2001:db8::1", "2001:db8::2");
	greet(server, client);
	/* With -w it waits for the last answer, too. */
	tool("ping -c 2 -i 0.01 -w 20 2001:db8::2 | sed -n 's/.*\\(icmp_seq=[0-9]*\\).*/\\1/p'");
}

static void htb(void)
{
	int ns = host_on_cable("v", "10.5.0.2/24", NULL), server, client, fd;
	static char buf[50000];
	struct guise_stack *here = s;
	long sent = 0, got = 0, n;
	uint64_t start;

	must(guise_addr_add(s, "v", "10.5.0.1/24"), "address");
	tool("tc qdisc add dev v root handle 1: htb default 10; "
	     "tc class add dev v parent 1: classid 1:10 htb rate 16mbit burst 15k");
	must(guise_netns_enter(s, ns), "enter");
	server = listener("10.5.0.2");
	must(guise_netns_enter(s, -1), "leave");
	client = connected("10.5.0.1", "10.5.0.2");
	fd = must(guise_accept4(s, server, NULL, NULL, 0), "accept");
	start = guise_clock(here);
	while (got < 1000000) {
		n = sent < 1000000
			    ? guise_sendto(s, client, buf, sizeof(buf), MSG_DONTWAIT, NULL, 0)
			    : -EAGAIN;
		if (n != -EAGAIN)
			sent += must(n, "send");
		n = guise_recvfrom(s, fd, buf, sizeof(buf), sent < 1000000 ? MSG_DONTWAIT : 0, NULL,
				   NULL);
		if (n != -EAGAIN)
			got += must(n - 1, "receive") + 1;
	}
	printf("%llu\n", (unsigned long long)(guise_clock(here) - start));
	tool("tc -s class show dev v");
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int err;

	s = guise_join(-1, &err);
	if (!s)
		must(err, "join");
	if (!strcmp(what, "nat") && argc == 3)
		nat(argv[2]);
	else if (!strcmp(what, "rule"))
		rule();
	else if (!strcmp(what, "bridge"))
		bridge();
	else if (!strcmp(what, "tun"))
		tun(IFF_TUN);
	else if (!strcmp(what, "tap"))
		tun(IFF_TAP);
	else if (!strcmp(what, "packet"))
		packet();
	else if (!strcmp(what, "diag"))
		diag(argc, argv);
	else if (!strcmp(what, "files"))
		files();
	else if (!strcmp(what, "ipv6"))
		ipv6();
	else if (!strcmp(what, "htb"))
		htb();
	else {
		fprintf(stderr, "usage: features WHAT, see the top of its source\n");
		return 2;
	}
	return 0;
}
