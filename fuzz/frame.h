/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The frames that fuzzers feed: how they are made, what is done to them, and
 * what must become of them.
 *
 * A frame is a struct virtio_net_hdr_v1 and the Ethernet frame, in one piece,
 * as it crosses a link. The stack under test is 192.0.2.2 and 2001:db8::2 with
 * the address FRAME_STACK_MAC; who feeds is 192.0.2.1 and 2001:db8::1.
 */
#ifndef GUISE_FUZZ_FRAME_H
#define GUISE_FUZZ_FRAME_H

#include "random.h"

#include <linux/virtio_net.h>

#define FRAME_HDR sizeof(struct virtio_net_hdr_v1)
/* What the port has room for: see GUISE_RX_CHUNKS in linux/arch/guise/drivers/net/link.h. */
#define FRAME_ROOM (FRAME_HDR + 4096 + 3 * 32768)
/* A little more, so that there are frames that do not fit. */
#define FRAME_CAPACITY (FRAME_ROOM + 52)

#define FRAME_STACK_MAC "02:00:00:00:00:02"
#define FRAME_SERVICE   7 /* port of what serves in the stack */

struct frame {
	uint32_t len;
	uint8_t bytes[FRAME_CAPACITY];
};

/* A TCP connection from here to the stack, as far as its segments show it. */
struct flow {
	bool open, six;
	uint16_t port; /* ours */
	uint32_t snd;  /* what the stack expects next */
	uint32_t next; /* what we send next; runs ahead of snd within a batch */
	uint32_t rcv;  /* what we expect next */
};

#define FLOWS 4

/* A frame as an orderly network would carry it, of any kind there is. */
void frame_make(struct frame *f, struct rng *r, struct flow *flows);

/* Damages it, in one to six places: header, content or length. */
void frame_mutate(struct frame *f, struct rng *r);

/* Particular frames, all well-formed. */
void frame_arp_answer(struct frame *f, const uint8_t asked[4]);
void frame_neighbour_answer(struct frame *f, const uint8_t asked[16]);
void frame_echo(struct frame *f, bool six, uint16_t id, uint16_t number);
void frame_datagram(struct frame *f, uint32_t payload, bool partial_checksum);

/* The ones' complement sum of n bytes, added to acc; not folded. */
uint64_t frame_sum(const uint8_t *p, uint32_t n, uint64_t acc);

enum verdict {
	VERDICT_EITHER, /* the rules leave it open */
	VERDICT_GOOD,   /* must reach the stack */
	VERDICT_BAD,    /* must be counted as malformed, and dropped */
};

/*
 * What must become of a frame of len bytes, whatever link it comes over; only
 * the first FRAME_VERDICT of them are looked at. Written from the virtio
 * specification (1.2, 5.1.6), not from the code under test.
 */
#define FRAME_VERDICT 64
enum verdict frame_verdict(const uint8_t *bytes, uint64_t len);

#endif
