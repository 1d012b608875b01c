// SPDX-License-Identifier: GPL-2.0-only
/* Frames from their outside in, and the well-formed ones that the far end answers with. */
#include "frame_build.h"

#include <linux/if_ether.h>
#include <netinet/in.h>
#include <linux/virtio_net.h>
#include <string.h>

#define ICMP_ECHO             128 /* of ICMPv6 */
#define ICMP_NEIGHBOUR_ANSWER 136
#define NEIGHBOUR_SOLICITED   0x60000000 /* solicited, and overriding what was known */

const uint8_t frame_stack_mac[6] = { 2, 0, 0, 0, 0, 2 };
const uint8_t frame_own_mac[6] = { 2, 0, 0, 0, 0, 1 };
const uint8_t frame_broadcast_mac[6] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
const uint8_t frame_stack_ip4[4] = { 192, 0, 2, 2 };
const uint8_t frame_own_ip4[4] = { 192, 0, 2, 1 };
const uint8_t frame_stack_ip6[16] = { 0x20, 0x01, 0x0d, 0xb8, [15] = 2 };
const uint8_t frame_own_ip6[16] = { 0x20, 0x01, 0x0d, 0xb8, [15] = 1 };

void build_bytes(struct frame *f, const void *bytes, uint32_t n)
{
	if (n > FRAME_CAPACITY - f->len)
		n = FRAME_CAPACITY - f->len;
	memcpy(f->bytes + f->len, bytes, n);
	f->len += n;
}

void build_be16(struct frame *f, uint16_t value)
{
	const uint8_t bytes[2] = { value >> 8, (uint8_t)value };

	build_bytes(f, bytes, sizeof(bytes));
}

void build_be32(struct frame *f, uint32_t value)
{
	build_be16(f, value >> 16);
	build_be16(f, (uint16_t)value);
}

void build_noise(struct frame *f, struct rng *r, uint32_t n)
{
	while (n) {
		uint64_t word = rng_next(r);
		uint32_t part = n < sizeof(word) ? n : sizeof(word);

		build_bytes(f, &word, part);
		n -= part;
	}
}

static void set_be16(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

void build_ether(struct frame *f, const uint8_t to[6], uint16_t protocol)
{
	f->len = FRAME_HDR;
	memset(f->bytes, 0, FRAME_HDR);
	frame_header(f)->num_buffers = 1;
	build_bytes(f, to, ETH_ALEN);
	build_bytes(f, frame_own_mac, ETH_ALEN);
	build_be16(f, protocol);
}

struct packet packet_to_stack(bool six, uint8_t protocol)
{
	struct packet p = { .six = six, .protocol = protocol, .hops = 64, .id = 1 };

	memcpy(p.from, six ? frame_own_ip6 : frame_own_ip4, six ? 16 : 4);
	memcpy(p.to, six ? frame_stack_ip6 : frame_stack_ip4, six ? 16 : 4);
	return p;
}

static void build_ip4(struct frame *f, struct packet *p, struct rng *r)
{
	const uint8_t version = (uint8_t)(0x45 + p->options / 4), tos = 0;

	p->l3 = f->len;
	build_bytes(f, &version, 1);
	build_bytes(f, &tos, 1);
	build_be16(f, 0); /* length */
	build_be16(f, p->id);
	build_be16(f, p->fragment);
	build_bytes(f, &p->hops, 1);
	build_bytes(f, &p->protocol, 1);
	build_be16(f, 0); /* checksum */
	build_bytes(f, p->from, 4);
	build_bytes(f, p->to, 4);
	if (p->options)
		build_noise(f, r, p->options);
}

static void build_ip6(struct frame *f, struct packet *p)
{
	const uint8_t next = p->fragment ? IPPROTO_FRAGMENT : p->protocol, zero = 0;

	p->l3 = f->len;
	build_be32(f, 0x60000000);
	build_be16(f, 0); /* length */
	build_bytes(f, &next, 1);
	build_bytes(f, &p->hops, 1);
	build_bytes(f, p->from, 16);
	build_bytes(f, p->to, 16);
	if (p->fragment) {
		build_bytes(f, &p->protocol, 1);
		build_bytes(f, &zero, 1);
		build_be16(f, p->fragment);
		build_be32(f, p->id);
	}
}

void build_ip(struct frame *f, struct packet *p, struct rng *r)
{
	const uint8_t group6[6] = { 0x33, 0x33, p->to[12], p->to[13], p->to[14], p->to[15] };

	build_ether(f, p->six && p->to[0] == 0xff ? group6 : frame_stack_mac,
		    p->six ? ETH_P_IPV6 : ETH_P_IP);
	if (p->six)
		build_ip6(f, p);
	else
		build_ip4(f, p, r);
	p->l4 = f->len;
}

uint64_t frame_sum(const uint8_t *p, uint32_t n, uint64_t acc)
{
	for (; n > 1; n -= 2, p += 2)
		acc += (uint32_t)(p[0] << 8 | p[1]);
	return n ? acc + (uint32_t)(p[0] << 8) : acc;
}

static uint16_t fold(uint64_t acc)
{
	while (acc >> 16)
		acc = (acc & 0xffff) + (acc >> 16);
	return (uint16_t)acc;
}

void build_ip_end(struct frame *f, const struct packet *p)
{
	uint8_t *ip = f->bytes + p->l3;

	if (p->six) {
		set_be16(ip + 4, f->len - p->l3 - 40);
		return;
	}
	set_be16(ip + 2, f->len - p->l3);
	set_be16(ip + 10, 0);
	set_be16(ip + 10, (uint16_t)~fold(frame_sum(ip, 20u + p->options, 0)));
}

void build_checksum(struct frame *f, const struct packet *p, uint16_t at, enum checksum how)
{
	struct virtio_net_hdr_v1 *h = frame_header(f);
	uint32_t len = f->len - p->l4, width = p->six ? 16 : 4;
	uint64_t pseudo = p->protocol + len;

	/* ICMP for IPv4 is summed without addresses. */
	if (p->protocol == IPPROTO_ICMP || p->protocol == IPPROTO_IGMP)
		pseudo = 0;
	else
		pseudo = frame_sum(p->from, width, frame_sum(p->to, width, pseudo));
	set_be16(f->bytes + p->l4 + at, 0);
	switch (how) {
	case CHECKSUM_FULL:
		set_be16(f->bytes + p->l4 + at,
			 (uint16_t)~fold(frame_sum(f->bytes + p->l4, len, pseudo)));
		break;
	case CHECKSUM_PARTIAL:
		set_be16(f->bytes + p->l4 + at, fold(pseudo));
		h->flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
		h->csum_start = (uint16_t)(p->l4 - FRAME_HDR);
		h->csum_offset = at;
		break;
	case CHECKSUM_VOUCHED:
		h->flags = VIRTIO_NET_HDR_F_DATA_VALID;
		break;
	case CHECKSUM_WRONG:
		break;
	}
}

void frame_arp_answer(struct frame *f, const uint8_t asked[4])
{
	build_ether(f, frame_stack_mac, ETH_P_ARP);
	build_be16(f, 1); /* Ethernet */
	build_be16(f, ETH_P_IP);
	build_be16(f, 6 << 8 | 4); /* lengths of addresses */
	build_be16(f, 2);          /* an answer */
	build_bytes(f, frame_own_mac, 6);
	build_bytes(f, asked, 4);
	build_bytes(f, frame_stack_mac, 6);
	build_bytes(f, frame_stack_ip4, 4);
}

void frame_neighbour_answer(struct frame *f, const uint8_t asked[16])
{
	struct packet p = packet_to_stack(true, IPPROTO_ICMPV6);

	p.hops = 255;
	memcpy(p.from, asked, 16);
	build_ip(f, &p, NULL);
	build_be16(f, ICMP_NEIGHBOUR_ANSWER << 8);
	build_be16(f, 0);
	build_be32(f, NEIGHBOUR_SOLICITED);
	build_bytes(f, asked, 16);
	build_be16(f, 2 << 8 | 1); /* option: this is the address, 8 bytes */
	build_bytes(f, frame_own_mac, 6);
	build_ip_end(f, &p);
	build_checksum(f, &p, 2, CHECKSUM_FULL);
}

void frame_echo(struct frame *f, bool six, uint16_t id, uint16_t number)
{
	struct packet p = packet_to_stack(six, six ? IPPROTO_ICMPV6 : IPPROTO_ICMP);

	build_ip(f, &p, NULL);
	build_be16(f, six ? ICMP_ECHO << 8 : 8 << 8);
	build_be16(f, 0);
	build_be16(f, id);
	build_be16(f, number);
	build_bytes(f, "are you still there?", 20);
	build_ip_end(f, &p);
	build_checksum(f, &p, 2, CHECKSUM_FULL);
}

void frame_datagram(struct frame *f, uint32_t payload, bool partial_checksum)
{
	struct packet p = packet_to_stack(false, IPPROTO_UDP);
	struct rng r = { payload };

	build_ip(f, &p, NULL);
	build_be16(f, 40000);
	build_be16(f, FRAME_SERVICE);
	build_be16(f, (uint16_t)(8 + payload));
	build_be16(f, 0);
	build_noise(f, &r, payload);
	build_ip_end(f, &p);
	build_checksum(f, &p, 6, partial_checksum ? CHECKSUM_PARTIAL : CHECKSUM_FULL);
}
