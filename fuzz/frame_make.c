// SPDX-License-Identifier: GPL-2.0-only
/*
 * The corpus, made rather than stored: every kind of frame that a link may
 * carry to a host, as an orderly sender would send it, though not always in an
 * orderly order. Most get past the receiver's first checks, so that what
 * frame_mutate() then breaks is met deep inside.
 */
#include "frame_build.h"

#include <linux/if_ether.h>
#include <netinet/in.h>
#include <string.h>

#define TCP_FIN 0x01
#define TCP_SYN 0x02
#define TCP_RST 0x04
#define TCP_PSH 0x08
#define TCP_ACK 0x10
#define TCP_URG 0x20

#define MORE_FRAGMENTS 0x2000

static uint32_t payload_size(struct rng *r)
{
	/* Around what is copied, what fits into the first page, and the chunks after it. */
	static const uint32_t edges[] = {
		0, 1, 128, 214, 256, 1472, 4054, 4096, 36822, 36864, 65000
	};

	if (rng_one_in(r, 64))
		return rng_below(r, 65000);
	if (rng_one_in(r, 32))
		return rng_pick(r, edges) + rng_below(r, 3);
	return rng_below(r, rng_one_in(r, 4) ? 1460 : 64);
}

static enum checksum checksum_kind(struct rng *r)
{
	static const enum checksum kinds[] = { CHECKSUM_FULL,    CHECKSUM_FULL,    CHECKSUM_PARTIAL,
					       CHECKSUM_PARTIAL, CHECKSUM_VOUCHED, CHECKSUM_FULL,
					       CHECKSUM_PARTIAL, CHECKSUM_WRONG };

	return rng_pick(r, kinds);
}

/* Mostly the stack's own address, and who feeds. */
static struct packet random_packet(struct rng *r, bool six, uint8_t protocol)
{
	static const uint8_t to4[][4] = { { 192, 0, 2, 255 }, { 255, 255, 255, 255 },
					  { 224, 0, 0, 1 },   { 224, 0, 0, 22 },
					  { 127, 0, 0, 1 },   { 10, 1, 2, 3 },
					  { 0, 0, 0, 0 },     { 192, 0, 2, 77 } };
	static const uint8_t to6[][16] = { { 0xff, 2, [15] = 1 },
					   { 0xff, 2, [15] = 2 },
					   { 0xff, 2, [11] = 1, 0xff, [15] = 2 },
					   { 0xfe, 0x80, [15] = 9 },
					   { [15] = 1 },
					   { [10] = 0xff, 0xff, 192, 0, 2, 2 },
					   { 0 } };
	struct packet p = packet_to_stack(six, protocol);

	p.id = (uint16_t)rng_below(r, 8);
	if (rng_one_in(r, 12))
		memcpy(p.to, six ? rng_pick(r, to6) : rng_pick(r, to4), six ? 16 : 4);
	if (rng_one_in(r, 12))
		memcpy(p.from, six ? rng_pick(r, to6) : rng_pick(r, to4), six ? 16 : 4);
	else if (rng_one_in(r, 8))
		p.from[six ? 15 : 3] = (uint8_t)rng_below(r, 256);
	if (rng_one_in(r, 32))
		p.hops = (uint8_t)rng_below(r, 256);
	if (!six && rng_one_in(r, 16))
		p.options = (uint8_t)(4 * rng_below(r, 11));
	return p;
}

static void make_arp(struct frame *f, struct rng *r)
{
	build_ether(f, rng_one_in(r, 2) ? frame_broadcast_mac : frame_stack_mac, ETH_P_ARP);
	build_be16(f, 1);
	build_be16(f, ETH_P_IP);
	build_be16(f, 6 << 8 | 4);
	build_be16(f, (uint16_t)(1 + rng_below(r, 2)));
	build_bytes(f, frame_own_mac, 6);
	build_bytes(f, frame_own_ip4, 3);
	build_noise(f, r, 1);
	build_noise(f, r, 6);
	build_bytes(f, frame_stack_ip4, 4);
	build_noise(f, r, rng_below(r, 19));
}

static void make_udp(struct frame *f, struct rng *r, bool six)
{
	struct packet p = random_packet(r, six, IPPROTO_UDP);
	uint32_t size = payload_size(r);

	build_ip(f, &p, r);
	build_be16(f, (uint16_t)(40000 + rng_below(r, 16)));
	build_be16(f, rng_one_in(r, 8) ? (uint16_t)rng_next(r) : FRAME_SERVICE);
	build_be16(f, (uint16_t)(8 + size));
	build_be16(f, 0);
	build_noise(f, r, size);
	build_ip_end(f, &p);
	build_checksum(f, &p, 6, checksum_kind(r));
}

/* TCP options, padded to 4 bytes. */
static uint32_t tcp_options(uint8_t *at, struct rng *r, bool syn)
{
	static const uint8_t in_syn[][12] = {
		{ 4, 2, 4, 5, 0xb4 },                      /* maximum segment size */
		{ 3, 3, 3, 7 },                            /* window scale */
		{ 2, 2, 4, 2 },                            /* selective acknowledgements */
		{ 10, 8, 10, 0, 0, 0, 9, 0, 0, 0, 0 },     /* timestamps */
		{ 4, 30, 4, 1, 0x01 },                     /* MPTCP, capable */
		{ 11, 30, 12, 0x10, 1, 0, 0, 0, 1, 0, 0 }, /* MPTCP, join; cut short */
		{ 2, 34, 2 },                              /* fast open, asks for a cookie */
	};
	static const uint8_t later[][12] = {
		{ 10, 8, 10, 0, 0, 0, 9, 0, 0, 0, 0 },
		{ 10, 5, 10, 0, 0, 1, 0, 0, 0, 2, 0 }, /* selective acknowledgement */
		{ 8, 30, 8, 0x20, 1, 0, 0, 0, 1 },     /* MPTCP, data sequence */
		{ 4, 30, 4, 0x60, 0 },                 /* MPTCP, fast close; cut short */
		{ 1, 1 },                              /* nothing */
	};
	uint32_t n = 0, i, count = rng_below(r, 4);

	for (i = 0; i < count; i++) {
		const uint8_t *option = syn ? rng_pick(r, in_syn) : rng_pick(r, later);

		memcpy(at + n, option + 1, option[0]);
		n += option[0];
	}
	while (n % 4)
		at[n++] = 1;
	return n;
}

static void build_tcp(struct frame *f, struct rng *r, struct flow *flow, uint8_t flags,
		      uint32_t size)
{
	struct packet p = random_packet(r, flow->six, IPPROTO_TCP);
	uint8_t options[40];
	uint32_t n = tcp_options(options, r, flags & TCP_SYN);

	build_ip(f, &p, r);
	build_be16(f, flow->port);
	build_be16(f, FRAME_SERVICE);
	build_be32(f, flow->next);
	build_be32(f, flags & TCP_ACK ? flow->rcv : 0);
	build_be16(f, (uint16_t)((20 + n) / 4 << 12 | flags));
	build_be16(f, (uint16_t)(rng_one_in(r, 8) ? rng_next(r) : 65535)); /* window */
	build_be16(f, 0);                                                  /* checksum */
	build_be16(f, flags & TCP_URG ? (uint16_t)rng_below(r, 8) : 0);
	build_bytes(f, options, n);
	build_noise(f, r, size);
	build_ip_end(f, &p);
	build_checksum(f, &p, 16, size > 1460 ? CHECKSUM_PARTIAL : checksum_kind(r));
	flow->next += size;
}

/* One segment of a connection, mostly the one that is due. */
static void make_tcp(struct frame *f, struct rng *r, struct flow *flow)
{
	static const uint8_t rare[] = { TCP_RST,
					TCP_RST | TCP_ACK,
					TCP_FIN | TCP_ACK,
					TCP_SYN | TCP_ACK,
					0,
					TCP_FIN | TCP_PSH | TCP_URG,
					0xff };
	struct flow strange = *flow;

	if (!flow->open || rng_one_in(r, 256)) {
		*flow = (struct flow){
			.six = rng_one_in(r, 2),
			.port = (uint16_t)(1024 + rng_below(r, 60000)),
			.next = (uint32_t)rng_next(r),
		};
		build_tcp(f, r, flow, TCP_SYN, 0);
	} else if (rng_one_in(r, 16)) {
		strange.next += rng_below(r, 65536) - 32768;
		strange.rcv += rng_below(r, 65536) - 32768;
		build_tcp(f, r, &strange, TCP_ACK | TCP_PSH, payload_size(r) % 1461);
	} else if (rng_one_in(r, 64)) {
		build_tcp(f, r, &strange, rng_pick(r, rare), rng_below(r, 8));
	} else if (rng_one_in(r, 4)) {
		build_tcp(f, r, flow, TCP_ACK, 0);
	} else {
		build_tcp(f, r, flow, TCP_ACK | TCP_PSH | (rng_one_in(r, 32) ? TCP_URG : 0),
			  payload_size(r) % 1461);
	}
}

/* A segment of many kilobytes in one frame, as a sender with offloads gives it away. */
static void make_large(struct frame *f, struct rng *r, struct flow *flow)
{
	uint32_t most = rng_one_in(r, 8) ? 64000 : 8000;
	struct virtio_net_hdr_v1 *h = frame_header(f);

	if (!flow->open) {
		make_tcp(f, r, flow);
		return;
	}
	build_tcp(f, r, flow, TCP_ACK | TCP_PSH, 1461 + rng_below(r, most));
	h->gso_type = flow->six ? VIRTIO_NET_HDR_GSO_TCPV6 : VIRTIO_NET_HDR_GSO_TCPV4;
	if (rng_one_in(r, 16))
		h->gso_type |= VIRTIO_NET_HDR_GSO_ECN;
	h->gso_size = (uint16_t)(rng_one_in(r, 4) ? 8 + rng_below(r, 2000) : 1440);
	h->hdr_len = (uint16_t)(rng_one_in(r, 4) ? rng_below(r, 200) : h->csum_start + 20u);
}

static void make_fragment(struct frame *f, struct rng *r)
{
	bool six = rng_one_in(r, 2);
	struct packet p = random_packet(r, six, IPPROTO_UDP);
	uint32_t at = rng_below(r, rng_one_in(r, 8) ? 8192 : 8), more = rng_below(r, 4);

	/* The two differ in where offset and flag lie. */
	p.fragment = (uint16_t)(six ? at << 3 | !!more : at | (more ? MORE_FRAGMENTS : 0));
	build_ip(f, &p, r);
	build_noise(f, r, rng_one_in(r, 8) ? rng_below(r, 1400) : 8 * (1 + rng_below(r, 4)));
	build_ip_end(f, &p);
}

/* The start of a packet of the stack's, as an error message brings it back. */
static void quote(struct frame *f, struct rng *r, bool six, const struct flow *flow)
{
	struct packet sent = packet_to_stack(six, rng_one_in(r, 4) ? IPPROTO_UDP : IPPROTO_TCP);

	memcpy(sent.from, six ? frame_stack_ip6 : frame_stack_ip4, six ? 16 : 4);
	memcpy(sent.to, six ? frame_own_ip6 : frame_own_ip4, six ? 16 : 4);
	if (six) {
		build_be32(f, 0x60000000);
		build_be16(f, 20);
		build_be16(f, (uint16_t)(sent.protocol << 8 | 64));
	} else {
		build_be16(f, 0x4500);
		build_be16(f, 40);
		build_be32(f, 0);
		build_be16(f, (uint16_t)(64 << 8 | sent.protocol));
		build_be16(f, 0);
	}
	build_bytes(f, sent.from, six ? 16 : 4);
	build_bytes(f, sent.to, six ? 16 : 4);
	build_be16(f, FRAME_SERVICE);
	build_be16(f, flow->port);
	build_be32(f, flow->rcv);
}

static void make_icmp4(struct frame *f, struct rng *r, const struct flow *flow)
{
	static const uint8_t types[] = { 0, 3, 3, 3, 4, 5, 8, 8, 8, 11, 12, 13, 14, 17, 42, 43 };
	struct packet p = random_packet(r, false, IPPROTO_ICMP);
	uint8_t type = rng_pick(r, types);

	build_ip(f, &p, r);
	build_be16(f, (uint16_t)(type << 8 | rng_below(r, rng_one_in(r, 8) ? 256 : 6)));
	build_be16(f, 0);
	build_be32(f, type == 3 ? rng_below(r, 1600) : (uint32_t)rng_next(r)); /* 3: a path's MTU */
	if (type == 8 || type == 13)
		build_noise(f, r, payload_size(r));
	else
		quote(f, r, false, flow);
	build_ip_end(f, &p);
	build_checksum(f, &p, 2, rng_one_in(r, 16) ? CHECKSUM_WRONG : CHECKSUM_FULL);
}

/* Neighbour discovery's options: type, length in units of 8 bytes, content. */
static void neighbour_options(struct frame *f, struct rng *r)
{
	static const uint8_t types[] = { 1, 2, 3, 4, 5, 14, 24, 25, 31, 38 };
	uint32_t count = rng_below(r, 4);

	while (count--) {
		uint8_t type = rng_pick(r, types), units = (uint8_t)(type == 3 ? 4 : 1);

		if (rng_one_in(r, 8))
			units = (uint8_t)rng_below(r, 8);
		build_be16(f, (uint16_t)(type << 8 | units));
		build_noise(f, r, units ? units * 8u - 2 : 6);
	}
}

static void make_icmp6(struct frame *f, struct rng *r, const struct flow *flow)
{
	static const uint8_t types[] = { 1,   2,   3,   4,   128, 128, 129, 130, 131, 132,
					 133, 134, 134, 135, 135, 136, 136, 137, 143, 200 };
	struct packet p = random_packet(r, true, IPPROTO_ICMPV6);
	uint8_t type = rng_pick(r, types);

	if (type >= 133 && type <= 137)
		p.hops = 255;
	if (type == 134) {
		memset(p.from, 0, 16); /* routers speak from their link-local address */
		p.from[0] = 0xfe;
		p.from[1] = 0x80;
		p.from[15] = 1;
	}
	build_ip(f, &p, r);
	build_be16(f, (uint16_t)(type << 8 | (rng_one_in(r, 8) ? rng_below(r, 256) : 0)));
	build_be16(f, 0);
	build_be32(f, type == 2 ? 1200 + rng_below(r, 400) : (uint32_t)rng_next(r));
	switch (type) {
	case 1:
	case 2:
	case 3:
	case 4:
		quote(f, r, true, flow);
		break;
	case 134:
		build_be32(f, rng_below(r, 4) * 1000);
		build_be32(f, rng_below(r, 4) * 1000);
		neighbour_options(f, r);
		break;
	case 137:
		build_bytes(f, frame_own_ip6, 16);
		build_bytes(f, frame_own_ip6, 16);
		neighbour_options(f, r);
		break;
	case 135:
	case 136:
		build_bytes(f, rng_one_in(r, 4) ? frame_own_ip6 : frame_stack_ip6, 16);
		neighbour_options(f, r);
		break;
	default:
		build_noise(f, r, payload_size(r));
	}
	build_ip_end(f, &p);
	build_checksum(f, &p, 2, rng_one_in(r, 16) ? CHECKSUM_WRONG : CHECKSUM_FULL);
}

/* A chain of IPv6 extension headers before a datagram. */
static void make_extensions(struct frame *f, struct rng *r)
{
	static const uint8_t kinds[] = { IPPROTO_HOPOPTS,  IPPROTO_ROUTING, IPPROTO_DSTOPTS,
					 IPPROTO_FRAGMENT, IPPROTO_AH,      IPPROTO_ESP,
					 IPPROTO_NONE };
	uint32_t count = 1 + rng_below(r, 6);
	struct packet p = random_packet(r, true, rng_pick(r, kinds));

	build_ip(f, &p, r);
	while (count--) {
		uint8_t units = (uint8_t)(rng_one_in(r, 4) ? rng_below(r, 4) : 0);

		build_be16(f, (uint16_t)((count ? rng_pick(r, kinds) : IPPROTO_UDP) << 8 | units));
		if (rng_one_in(r, 2))
			build_be16(f, 1 << 8 | 4); /* padding */
		else
			build_noise(f, r, 2);
		build_be32(f, 0);
		build_noise(f, r, units * 8u);
	}
	build_be16(f, 40000);
	build_be16(f, FRAME_SERVICE);
	build_be16(f, 8);
	build_be16(f, 0);
	build_ip_end(f, &p);
}

/* IP that carries something else: tunnels, IPsec, SCTP, IGMP, nothing known. */
static void make_protocol(struct frame *f, struct rng *r)
{
	static const uint8_t protocols[] = { IPPROTO_IGMP, IPPROTO_IPIP, IPPROTO_IPV6,
					     IPPROTO_GRE,  IPPROTO_ESP,  IPPROTO_AH,
					     IPPROTO_SCTP, IPPROTO_DCCP, IPPROTO_UDPLITE,
					     IPPROTO_PIM,  IPPROTO_RAW,  IPPROTO_BEETPH,
					     253 };
	struct packet p = random_packet(r, rng_one_in(r, 3), rng_pick(r, protocols));

	build_ip(f, &p, r);
	if (p.protocol == IPPROTO_IPIP) {
		build_be32(f, 0x45000014);
		build_noise(f, r, 16);
	} else {
		build_noise(f, r, 8 + rng_below(r, 64));
	}
	build_ip_end(f, &p);
	if (p.protocol == IPPROTO_IGMP)
		build_checksum(f, &p, 2, CHECKSUM_FULL);
}

/* Not IP at all: lengths instead of types, unknown types, labels, tags of providers. */
static void make_other(struct frame *f, struct rng *r)
{
	static const uint16_t types[] = { 0x0026, 0x0100, 0x05dc, 0x8863, 0x8864, 0x8847, 0x88cc,
					  0x888e, 0x88a8, 0x8100, 0x8809, 0x0001, 0x86dd, 0x0800 };

	build_ether(f, rng_one_in(r, 2) ? frame_broadcast_mac : frame_stack_mac,
		    rng_one_in(r, 8) ? (uint16_t)rng_next(r) : rng_pick(r, types));
	build_noise(f, r, payload_size(r));
}

/* Puts a VLAN tag into what is there. */
static void tag(struct frame *f, struct rng *r)
{
	const uint8_t vlan[4] = { 0x81, 0, (uint8_t)rng_below(r, 256),
				  (uint8_t)(rng_one_in(r, 2) ? 0 : rng_next(r)) };
	const uint32_t at = FRAME_HDR + 12;

	if (f->len < at || f->len > FRAME_CAPACITY - 4)
		return;
	memmove(f->bytes + at + 4, f->bytes + at, f->len - at);
	memcpy(f->bytes + at, vlan, 4);
	f->len += 4;
	if (frame_header(f)->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM)
		frame_header(f)->csum_start += 4;
}

void frame_make(struct frame *f, struct rng *r, struct flow *flows)
{
	struct flow *flow = &flows[rng_below(r, FLOWS)];
	uint32_t dice = rng_below(r, 100);

	if (dice < 30)
		make_tcp(f, r, flow);
	else if (dice < 42)
		make_large(f, r, flow);
	else if (dice < 52)
		make_udp(f, r, false);
	else if (dice < 59)
		make_udp(f, r, true);
	else if (dice < 67)
		make_icmp4(f, r, flow);
	else if (dice < 78)
		make_icmp6(f, r, flow);
	else if (dice < 85)
		make_fragment(f, r);
	else if (dice < 89)
		make_arp(f, r);
	else if (dice < 93)
		make_extensions(f, r);
	else if (dice < 96)
		make_protocol(f, r);
	else
		make_other(f, r);
	if (rng_one_in(r, 32))
		tag(f, r);
}
