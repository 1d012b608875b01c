// SPDX-License-Identifier: GPL-2.0-only
/* The far end of the link. */
#include "far.h"

#include <linux/if_ether.h>
#include <netinet/in.h>
#include <string.h>

#define IPV6_HDR          40
#define ARP_REQUEST       1
#define ARP_TARGET        24
#define NEIGHBOUR_SOLICIT 135
#define ICMP_ECHO_ANSWER  0
#define ICMP6_ECHO_ANSWER 129
#define TCP_SYN           0x02
#define TCP_RST           0x04

static uint32_t be16(const uint8_t *p)
{
	return (uint32_t)(p[0] << 8 | p[1]);
}

static uint32_t be32(const uint8_t *p)
{
	return be16(p) << 16 | be16(p + 2);
}

static struct frame *next_answer(struct far *far)
{
	return far->answers < FAR_ANSWERS ? &far->answer[far->answers++] : NULL;
}

static void see_tcp(struct far *far, bool six, const uint8_t *tcp, uint32_t len)
{
	uint32_t seq = be32(tcp + 4), ack = be32(tcp + 8), data = len - (tcp[12] >> 4) * 4u;

	if (be16(tcp) != FRAME_SERVICE || data > len)
		return;
	for (uint32_t i = 0; i < FLOWS; i++) {
		struct flow *flow = &far->flow[i];

		if (flow->six != six || flow->port != be16(tcp + 2))
			continue;
		if (tcp[13] & TCP_RST) {
			flow->open = false;
		} else if (tcp[13] & TCP_SYN) {
			flow->open = true;
			flow->snd = ack;
			flow->rcv = seq + 1;
		} else if (flow->open) {
			flow->snd = ack;
			if ((int32_t)(seq + data - flow->rcv) > 0)
				flow->rcv = seq + data;
		}
	}
}

static void see_icmp6(struct far *far, const uint8_t *icmp, uint32_t len)
{
	struct frame *f;

	if (icmp[0] == NEIGHBOUR_SOLICIT && len >= 24) {
		f = next_answer(far);
		if (f)
			frame_neighbour_answer(f, icmp + 8);
	} else if (icmp[0] == ICMP6_ECHO_ANSWER && len >= 8) {
		far->heard6 |= be16(icmp + 4) == FAR_ECHO_ID && be16(icmp + 6) == far->echo;
	}
}

static void see_ip4(struct far *far, const uint8_t *ip, uint32_t len)
{
	uint32_t hdr = (ip[0] & 15) * 4u, total = be16(ip + 2);

	if (hdr + 20 > len)
		return;
	if (ip[9] == IPPROTO_TCP && total >= hdr)
		see_tcp(far, false, ip + hdr, total - hdr);
	else if (ip[9] == IPPROTO_ICMP && ip[hdr] == ICMP_ECHO_ANSWER)
		far->heard4 |= be16(ip + hdr + 4) == FAR_ECHO_ID && be16(ip + hdr + 6) == far->echo;
}

static void see_ip6(struct far *far, const uint8_t *ip, uint32_t len)
{
	if (IPV6_HDR + 20 > len)
		return;
	if (ip[6] == IPPROTO_TCP)
		see_tcp(far, true, ip + IPV6_HDR, be16(ip + 4));
	else if (ip[6] == IPPROTO_ICMPV6)
		see_icmp6(far, ip + IPV6_HDR, len - IPV6_HDR);
}

void far_see(struct far *far, const uint8_t *bytes, uint32_t len)
{
	const uint8_t *content = bytes + FRAME_HDR + ETH_HLEN;
	struct frame *f;

	if (len < FRAME_HDR + ETH_HLEN + 28)
		return;
	len -= FRAME_HDR + ETH_HLEN;
	switch (be16(content - 2)) {
	case ETH_P_ARP:
		if (be16(content + 6) != ARP_REQUEST)
			break;
		f = next_answer(far);
		if (f)
			frame_arp_answer(f, content + ARP_TARGET);
		break;
	case ETH_P_IP:
		see_ip4(far, content, len);
		break;
	case ETH_P_IPV6:
		see_ip6(far, content, len);
		break;
	}
}

void far_settle(struct far *far)
{
	for (uint32_t i = 0; i < FLOWS; i++)
		far->flow[i].next = far->flow[i].snd;
}
