// SPDX-License-Identifier: GPL-2.0-only
/*
 * ICMP port unreachable, through a raw socket in the stack: the message that a host
 * sends for a datagram to a closed port. It has the headers of that datagram, by which
 * the stack finds the program's socket. The kernel computes the checksum for IPv6.
 */
#include "relay/refusal.h"

#include "region/stack.h"

#include <arpa/inet.h>
#include <netinet/icmp6.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/ip_icmp.h>
#include <netinet/udp.h>
#include <string.h>

int refusal_begin(struct engine *g)
{
	for (int k = 0; k < 2; k++) {
		int err;

		end_init(&g->icmp[k], g, true, -1, NULL, NULL);
		err = end_socket(&g->icmp[k], k ? AF_INET6 : AF_INET, SOCK_RAW,
				 k ? IPPROTO_ICMPV6 : IPPROTO_ICMP);
		if (err < 0)
			return guise_fail(-err, "no raw socket for the relays: %s", strerror(-err));
		/* It is only for sending: received packets must not take memory. */
		end_option(&g->icmp[k], SOL_SOCKET, SO_RCVBUF, 1);
		if (k)
			end_option(&g->icmp[k], IPPROTO_IPV6, IPV6_FREEBIND, 1);
	}
	return 0;
}

static uint16_t checksum(const void *data, size_t n)
{
	const uint8_t *b = data;
	uint32_t sum = 0;

	for (size_t i = 0; i + 1 < n; i += 2)
		sum += (uint32_t)(b[i] << 8 | b[i + 1]);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons((uint16_t)~sum);
}

static void fill_udp(struct udphdr *u, const struct sockaddr_storage *client,
		     const struct sockaddr_storage *dst, size_t payload)
{
	u->source = ((const struct sockaddr_in *)client)->sin_port;
	u->dest = ((const struct sockaddr_in *)dst)->sin_port;
	u->len = htons((uint16_t)(sizeof(*u) + payload));
}

/* Sends a raw packet. A control message sets its source address. */
static void send_from(struct end *e, const void *packet, size_t n,
		      const struct sockaddr_storage *to, int level, int type, const void *info,
		      size_t info_len)
{
	char control[CMSG_SPACE(sizeof(struct in6_pktinfo))] __attribute__((aligned(16))) = { 0 };
	struct iovec iov = { (void *)packet, n };
	struct sockaddr_storage name = *to;
	struct msghdr m = {
		.msg_name = &name,
		.msg_namelen = address_length(to),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = CMSG_SPACE(info_len),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	/* A raw socket would take the port as the number of a protocol. */
	((struct sockaddr_in *)&name)->sin_port = 0;
	c->cmsg_level = level;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(info_len);
	memcpy(CMSG_DATA(c), info, info_len);
	end_call(e, sendmsg, &m, MSG_DONTWAIT, 0, 0, 0);
}

static void send4(struct engine *g, const struct sockaddr_storage *client,
		  const struct sockaddr_storage *dst, size_t payload)
{
	struct {
		struct icmphdr icmp;
		struct iphdr ip;
		struct udphdr udp;
	} p = { .icmp = { .type = ICMP_DEST_UNREACH, .code = ICMP_PORT_UNREACH } };
	struct in_pktinfo from = { .ipi_spec_dst = ((const struct sockaddr_in *)dst)->sin_addr };

	p.ip.version = 4;
	p.ip.ihl = 5;
	p.ip.tot_len = htons((uint16_t)(sizeof(p.ip) + sizeof(p.udp) + payload));
	p.ip.ttl = 64;
	p.ip.protocol = IPPROTO_UDP;
	p.ip.saddr = ((const struct sockaddr_in *)client)->sin_addr.s_addr;
	p.ip.daddr = ((const struct sockaddr_in *)dst)->sin_addr.s_addr;
	p.ip.check = checksum(&p.ip, sizeof(p.ip));
	fill_udp(&p.udp, client, dst, payload);
	p.icmp.checksum = checksum(&p, sizeof(p));
	send_from(&g->icmp[0], &p, sizeof(p), client, IPPROTO_IP, IP_PKTINFO, &from, sizeof(from));
}

static void send6(struct engine *g, const struct sockaddr_storage *client,
		  const struct sockaddr_storage *dst, size_t payload)
{
	struct {
		struct icmp6_hdr icmp;
		struct ip6_hdr ip;
		struct udphdr udp;
	} p = { .icmp = { .icmp6_type = ICMP6_DST_UNREACH,
			  .icmp6_code = ICMP6_DST_UNREACH_NOPORT } };
	struct in6_pktinfo from = { .ipi6_addr = ((const struct sockaddr_in6 *)dst)->sin6_addr };

	p.ip.ip6_vfc = 6 << 4;
	p.ip.ip6_plen = htons((uint16_t)(sizeof(p.udp) + payload));
	p.ip.ip6_nxt = IPPROTO_UDP;
	p.ip.ip6_hlim = 64;
	p.ip.ip6_src = ((const struct sockaddr_in6 *)client)->sin6_addr;
	p.ip.ip6_dst = ((const struct sockaddr_in6 *)dst)->sin6_addr;
	fill_udp(&p.udp, client, dst, payload);
	send_from(&g->icmp[1], &p, sizeof(p), client, IPPROTO_IPV6, IPV6_PKTINFO, &from,
		  sizeof(from));
}

void refusal_send(struct engine *g, const struct sockaddr_storage *client,
		  const struct sockaddr_storage *dst, size_t payload)
{
	if (dst->ss_family == AF_INET)
		send4(g, client, dst, payload);
	else
		send6(g, client, dst, payload);
}
