/* SPDX-License-Identifier: GPL-2.0-only */
/* Writing a frame from its outside in; between frame_build.c and the corpus (frame_make.c). */
#ifndef GUISE_FUZZ_FRAME_BUILD_H
#define GUISE_FUZZ_FRAME_BUILD_H

#include "frame.h"

/* What an IP packet says of itself. */
struct packet {
	bool six;
	uint8_t protocol;
	uint8_t hops;
	uint8_t from[16], to[16]; /* IPv4: the first four bytes */
	uint16_t id, fragment;    /* IPv4: as in its header; IPv6: a fragment header if not 0 */
	uint8_t options;          /* bytes of random IPv4 options, a multiple of 4 */
	/* Where things lie, once written: offsets into the frame's bytes. */
	uint32_t l3, l4;
};

/* How the checksum of what lies in a packet is given. */
enum checksum {
	CHECKSUM_FULL,
	CHECKSUM_PARTIAL, /* left to the receiver, by the virtio-net header */
	CHECKSUM_VOUCHED, /* wrong, but the virtio-net header says that it was checked */
	CHECKSUM_WRONG,
};

extern const uint8_t frame_stack_mac[6], frame_own_mac[6], frame_broadcast_mac[6];
extern const uint8_t frame_stack_ip4[4], frame_own_ip4[4];
extern const uint8_t frame_stack_ip6[16], frame_own_ip6[16];

static inline struct virtio_net_hdr_v1 *frame_header(struct frame *f)
{
	return (struct virtio_net_hdr_v1 *)f->bytes;
}

/* Each appends; what does not fit is left out. */
void build_bytes(struct frame *f, const void *bytes, uint32_t n);
void build_be16(struct frame *f, uint16_t value);
void build_be32(struct frame *f, uint32_t value);
void build_noise(struct frame *f, struct rng *r, uint32_t n);

/* Empties the frame and writes the virtio-net and the Ethernet header. */
void build_ether(struct frame *f, const uint8_t to[6], uint16_t protocol);

/* From us to the stack; an IPv6 packet to a multicast address is sent as one. */
struct packet packet_to_stack(bool six, uint8_t protocol);
/* The Ethernet and the IP header; r, for options, may be NULL if there are none. */
void build_ip(struct frame *f, struct packet *p, struct rng *r);
/* The packet is complete: sets its lengths and the checksum of an IPv4 header. */
void build_ip_end(struct frame *f, const struct packet *p);
/* As the last: sets the checksum that lies `at` bytes into what the packet carries. */
void build_checksum(struct frame *f, const struct packet *p, uint16_t at, enum checksum how);

#endif
