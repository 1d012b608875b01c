// SPDX-License-Identifier: GPL-2.0-only
/* Raw and packet sockets, route netlink, and the list of interfaces: over lo alone. */
#include "call.h"

#include <ifaddrs.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>

static uint16_t checksum(const void *data, size_t n)
{
	const uint16_t *word = data;
	uint32_t sum = 0;

	for (; n > 1; n -= 2)
		sum += *word++;
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~(sum + (sum >> 16));
}

CASE(raw_echo)
{
	struct sockaddr_in to = loopback(0), from;
	struct {
		struct icmphdr header;
		char data[8];
	} request = { { .type = ICMP_ECHO, .un.echo = { htons(7), htons(1) } }, "echo..." };
	struct {
		struct iphdr ip;
		struct icmphdr header;
		char data[64];
	} answer;
	socklen_t len = sizeof(from);
	int fd = socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);
	long n;

	request.header.checksum = checksum(&request, sizeof(request));
	SHOW(sendto(fd, &request, sizeof(request), 0, (void *)&to, sizeof(to)));
	/* The request comes by, and then the answer. */
	for (int i = 0; i < 2; i++) {
		await(fd, POLLIN);
		n = TELL(recvfrom(fd, &answer, sizeof(answer), 0, (void *)&from, &len),
			 "recvfrom()");
		printf("%ld of %s, type %d, ttl %d, tos %d, fragment %x, length %d\n", n,
		       inet_ntoa(from.sin_addr), answer.header.type, answer.ip.ttl, answer.ip.tos,
		       ntohs(answer.ip.frag_off), ntohs(answer.ip.tot_len));
	}
	SHOW(recv(fd, &answer, sizeof(answer), MSG_DONTWAIT));
	/* An IP header of its own. */
	fd = socket(AF_INET, SOCK_RAW, IPPROTO_RAW);
	SHOW(recv(fd, &answer, sizeof(answer), MSG_DONTWAIT));
	SHOW(sendto(fd, &request, sizeof(request), 0, (void *)&to, sizeof(to)));
	SHOW(sendto(fd, &request, 3, 0, (void *)&to, sizeof(to)));
	SHOW(send(fd, &request, sizeof(request), 0));
	SHOW(connect(fd, (void *)&to, sizeof(to)));
	memset(&answer, 0, sizeof(answer));
	answer.ip = (struct iphdr){ .version = 4,
				    .ihl = 5,
				    .ttl = 9,
				    .protocol = 253,
				    .saddr = htonl(INADDR_LOOPBACK),
				    .daddr = htonl(INADDR_LOOPBACK) };
	SHOW(send(fd, &answer, 40, 0));
	answer.ip.ihl = 15;
	SHOW(send(fd, &answer, 40, 0));
	SHOW(send(fd, &answer, 70000, 0));
}

CASE(packet_capture)
{
	struct sockaddr_ll me = { .sll_family = AF_PACKET,
				  .sll_protocol = htons(ETH_P_IP),
				  .sll_ifindex = (int)if_nametoindex("lo") };
	struct sockaddr_ll from;
	socklen_t len = sizeof(from);
	unsigned char frame[256];
	int raw = socket(AF_PACKET, SOCK_RAW, 0), cooked = socket(AF_PACKET, SOCK_DGRAM, 0);
	int udp[2], one = 1;
	long n;

	SHOW(bind(raw, (void *)&me, sizeof(me)));
	SHOW(bind(cooked, (void *)&me, sizeof(me)));
	SHOW(getsockname(raw, (void *)&from, &len));
	printf("length %u, protocol %x, interface %d, type %d, address of %d\n", len,
	       ntohs(from.sll_protocol), from.sll_ifindex, from.sll_hatype, from.sll_halen);
	SHOW(setsockopt(cooked, SOL_PACKET, PACKET_AUXDATA, &one, 4));
	datagram_pair(udp);
	MUST(send(udp[0], "seen", 4, 0) == 4);
	for (int i = 0; i < 2; i++) {
		int fd = i ? cooked : raw;

		/* As it comes: only who asks for all protocols sees it leave, too. */
		await(fd, POLLIN);
		len = sizeof(from);
		n = TELL(recvfrom(fd, frame, sizeof(frame), MSG_TRUNC, (void *)&from, &len),
			 "recvfrom(%d)", i);
		printf("%ld bytes, name of %u, protocol %x, kind %d, interface %d, hardware %d\n",
		       n, len, ntohs(from.sll_protocol), from.sll_pkttype, from.sll_ifindex,
		       from.sll_hatype);
	}
	SHOW(recv(raw, frame, sizeof(frame), MSG_DONTWAIT));
	me.sll_ifindex = 4711;
	SHOW(bind(raw, (void *)&me, sizeof(me)));
	SHOW(sendto(raw, frame, 60, 0, (void *)&me, sizeof(me)));
	me.sll_ifindex = 1;
	for (size_t i = 0; i < 20; i++)
		TELL(sendto(raw, frame, i, 0, (void *)&me, sizeof(me)), "sendto(frame of %zu)", i);
	for (socklen_t i = 0; i < 22; i++)
		TELL(bind(cooked, (void *)&me, i), "bind(packet, %u)", i);
}

/* Classic filters, good and bad. */
CASE(packet_filters)
{
	struct sock_filter none[] = { BPF_STMT(BPF_RET | BPF_K, 0) };
	struct sock_filter two[] = { BPF_STMT(BPF_RET | BPF_K, 10) };
	struct sock_filter loop[] = { BPF_JUMP(BPF_JMP | BPF_JA, 0xffffffff, 0, 0),
				      BPF_STMT(BPF_RET | BPF_K, 0) };
	struct sock_filter endless[] = { BPF_STMT(BPF_LD | BPF_IMM, 1) };
	struct sock_fprog prog = { 1, none };
	int udp[2], one = 1;
	char buf[16];

	datagram_pair(udp);
	SHOW(setsockopt(udp[0], SOL_SOCKET, SO_DETACH_FILTER, &one, 4));
	SHOW(setsockopt(udp[0], SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)));
	SHOW(send(udp[1], "abcdef", 6, 0));
	SHOW(recv(udp[0], buf, 16, MSG_DONTWAIT));
	prog = (struct sock_fprog){ 1, two };
	SHOW(setsockopt(udp[0], SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)));
	SHOW(send(udp[1], "abcdef", 6, 0));
	SHOW(recv(udp[0], buf, 16, MSG_DONTWAIT));
	prog = (struct sock_fprog){ 2, loop };
	SHOW(setsockopt(udp[0], SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)));
	prog = (struct sock_fprog){ 1, endless };
	SHOW(setsockopt(udp[0], SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)));
	prog = (struct sock_fprog){ 0, none };
	SHOW(setsockopt(udp[0], SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)));
	prog = (struct sock_fprog){ 5000, none };
	SHOW(setsockopt(udp[0], SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)));
	EACH_BAD_POINTER(p)
	{
		prog = (struct sock_fprog){ 1, p->at };
		TELL(setsockopt(udp[0], SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)),
		     "setsockopt(filter %s)", p->name);
	}
	SHOW(setsockopt(udp[0], SOL_SOCKET, SO_LOCK_FILTER, &one, 4));
	SHOW(setsockopt(udp[0], SOL_SOCKET, SO_DETACH_FILTER, &one, 4));
}

static void dump(int fd, int type, int family)
{
	struct {
		struct nlmsghdr header;
		struct rtgenmsg family;
	} request = { { .nlmsg_len = sizeof(request),
			.nlmsg_type = (uint16_t)type,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
			.nlmsg_seq = 5 },
		      { .rtgen_family = (unsigned char)family } };
	static char room[65536];
	bool more = true;

	TELL(send(fd, &request, sizeof(request), 0), "send(dump of %d, %d)", type, family);
	while (more) {
		int n = (int)recv(fd, room, sizeof(room), 0);
		struct nlmsghdr *h = (void *)room;

		MUST(n > 0);
		for (; NLMSG_OK(h, (unsigned int)n); h = NLMSG_NEXT(h, n)) {
			const struct ifaddrmsg *addr = NLMSG_DATA(h);
			const struct rtmsg *rt = NLMSG_DATA(h);

			if (h->nlmsg_type == NLMSG_DONE || h->nlmsg_type == NLMSG_ERROR) {
				printf("end %d: %d\n", h->nlmsg_type, *(int *)NLMSG_DATA(h));
				more = false;
				break;
			}
			/* Interfaces: a host may have tunnels of its own. */
			if (h->nlmsg_type == RTM_NEWADDR)
				printf("address %d/%d on %u, flags %x, scope %d, %u bytes\n",
				       addr->ifa_family, addr->ifa_prefixlen, addr->ifa_index,
				       addr->ifa_flags, addr->ifa_scope, h->nlmsg_len);
			else if (h->nlmsg_type == RTM_NEWROUTE)
				printf("route %d/%d, table %d, kind %d, scope %d, by %d\n",
				       rt->rtm_family, rt->rtm_dst_len, rt->rtm_table, rt->rtm_type,
				       rt->rtm_scope, rt->rtm_protocol);
			else if (h->nlmsg_type == RTM_NEWRULE)
				printf("rule %d, table %d, action %d\n", rt->rtm_family,
				       rt->rtm_table, rt->rtm_type);
		}
	}
}

CASE(netlink_dumps)
{
	struct sockaddr_nl me = { .nl_family = AF_NETLINK }, name;
	socklen_t len = sizeof(name);
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	char buf[64];

	SHOW(bind(fd, (void *)&me, sizeof(me)));
	SHOW(bind(fd, (void *)&me, sizeof(me)));
	SHOW(getsockname(fd, (void *)&name, &len));
	SHOW(name.nl_pid == 0);
	dump(fd, RTM_GETADDR, AF_INET);
	dump(fd, RTM_GETADDR, AF_INET6);
	dump(fd, RTM_GETROUTE, AF_INET);
	dump(fd, RTM_GETRULE, AF_INET);
	dump(fd, RTM_GETRULE, AF_INET6);
	dump(fd, RTM_GETNEIGH, AF_INET);
	dump(fd, 4711, AF_INET);
	for (size_t n = 0; n < 20; n++)
		TELL(send(fd, "\20\0\0\0\22\0\1\3\1\0\0\0\0\0\0\0\0\0\0\0", n, 0), "send(%zu)", n);
	SHOW(recv(fd, buf, sizeof(buf), MSG_DONTWAIT) > 0);
	me.nl_pid = 1;
	SHOW(connect(fd, (void *)&me, sizeof(me)));
	me.nl_pid = 0;
	SHOW(connect(fd, (void *)&me, sizeof(me)));
	SHOW(connect(fd, (void *)&me, 3));
	SHOW(sendto(fd, buf, 1, 0, (void *)&me, 3));
}

/* Interfaces of the stack: lo is the first of all. */
CASE(interface_calls)
{
	struct if_nameindex *list = if_nameindex();
	struct ifaddrs *all = NULL;
	char name[IF_NAMESIZE] = "unset";

	SHOW((int)if_nametoindex("lo"));
	SHOW((int)if_nametoindex("none0"));
	TELL(if_nametoindex("none0") ? 0 : -1, "if_nametoindex(none0)");
	TELL(if_nametoindex("") ? 0 : -1, "if_nametoindex()");
	TELL(if_nametoindex("a name that is much too long") ? 0 : -1, "if_nametoindex(long)");
	TELL(if_indextoname(1, name) ? 0 : -1, "if_indextoname(1)");
	puts(name);
	TELL(if_indextoname(0, name) ? 0 : -1, "if_indextoname(0)");
	TELL(if_indextoname(4711, name) ? 0 : -1, "if_indextoname(4711)");
	MUST(list);
	printf("%u %s\n", list->if_index, list->if_name);
	if_freenameindex(list);
	SHOW(getifaddrs(&all));
	for (struct ifaddrs *a = all; a; a = a->ifa_next) {
		if (strcmp(a->ifa_name, "lo"))
			continue;
		printf("%s %d flags %x%s%s\n", a->ifa_name,
		       a->ifa_addr ? a->ifa_addr->sa_family : -1, a->ifa_flags,
		       a->ifa_netmask ? ", mask" : "", a->ifa_broadaddr ? ", broadcast" : "");
		if (a->ifa_addr && a->ifa_addr->sa_family == AF_INET)
			puts(inet_ntoa(((struct sockaddr_in *)(void *)a->ifa_addr)->sin_addr));
	}
	freeifaddrs(all);
}
