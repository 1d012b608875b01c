// SPDX-License-Identifier: GPL-2.0-only
/*
 * Damage. The virtio-net header gets more than its share, as it is what a link
 * must check itself; for the rest the stack behind it is known to cope.
 */
#include "frame_build.h"

#include <linux/if_ether.h>
#include <string.h>

static uint16_t odd_number(struct rng *r, const struct frame *f)
{
	static const uint16_t odd[] = { 0,    1,    2,     7,     8,     13,    14,
					15,   16,   20,    34,    54,    66,    127,
					128,  129,  255,   256,   257,   1440,  1500,
					4095, 4096, 32767, 32768, 65533, 65534, 65535 };

	switch (rng_below(r, 4)) {
	case 0:
		return (uint16_t)rng_next(r);
	case 1: /* just within or beyond the end */
		return (uint16_t)(f->len - FRAME_HDR - 20 + rng_below(r, 24));
	default:
		return rng_pick(r, odd);
	}
}

static void damage_header(struct frame *f, struct rng *r)
{
	static const uint8_t flags[] = { 0, 1, 2, 3, 4, 7, 0xff };
	static const uint8_t gso[] = { 0, 1, 3, 4, 5, 2, 6, 0x80, 0x81, 0x84, 0x7f, 0xff };
	struct virtio_net_hdr_v1 *h = frame_header(f);

	switch (rng_below(r, 8)) {
	case 0:
		h->flags = rng_pick(r, flags);
		break;
	case 1:
		h->gso_type = rng_pick(r, gso);
		break;
	case 2:
		h->hdr_len = odd_number(r, f);
		break;
	case 3:
		h->gso_size = odd_number(r, f);
		break;
	case 4:
		h->csum_start = odd_number(r, f);
		break;
	case 5:
		h->csum_offset = rng_one_in(r, 2) ? 16 : odd_number(r, f);
		break;
	case 6:
		h->num_buffers = odd_number(r, f);
		break;
	case 7: /* whatever it is, it now says that it is a large TCP segment */
		h->flags = rng_one_in(r, 2) ? VIRTIO_NET_HDR_F_NEEDS_CSUM : 0;
		h->gso_type = rng_one_in(r, 2) ? VIRTIO_NET_HDR_GSO_TCPV4
					       : VIRTIO_NET_HDR_GSO_TCPV6;
		h->gso_size = 1440;
		h->hdr_len = 54;
		h->csum_start = rng_one_in(r, 4) ? odd_number(r, f) : 34;
		h->csum_offset = 16;
		break;
	}
}

static void damage_content(struct frame *f, struct rng *r)
{
	/* Most of what is decided on lies in front. */
	uint32_t reach = rng_one_in(r, 4) || f->len < 128 ? f->len : 128, at;

	if (!reach)
		return;
	at = rng_below(r, reach);
	switch (rng_below(r, 3)) {
	case 0:
		f->bytes[at] ^= (uint8_t)(1u << rng_below(r, 8));
		break;
	case 1:
		f->bytes[at] = (uint8_t)rng_next(r);
		break;
	case 2:
		if (at + 2 <= f->len) {
			uint16_t odd = odd_number(r, f);

			f->bytes[at] = odd >> 8;
			f->bytes[at + 1] = (uint8_t)odd;
		}
		break;
	}
}

static void set_length(struct frame *f, uint32_t len)
{
	if (len > f->len)
		memset(f->bytes + f->len, 0xa5, len - f->len);
	f->len = len;
}

static void damage_length(struct frame *f, struct rng *r)
{
	/* Of the frame without its header, except for those that have not even that. */
	static const uint32_t odd[] = { 0,
					1,
					13,
					14,
					15,
					33,
					34,
					60,
					255,
					256,
					257,
					1514,
					4095,
					4096,
					4097,
					36863,
					36864,
					36865,
					65535,
					65549,
					65553,
					65554,
					69632,
					69633,
					FRAME_ROOM - FRAME_HDR,
					FRAME_ROOM - FRAME_HDR + 1,
					FRAME_CAPACITY - FRAME_HDR };
	uint32_t len, at, n;

	switch (rng_below(r, 5)) {
	case 0:
		set_length(f, rng_below(r, f->len + 1));
		break;
	case 1:
		set_length(f, rng_below(r, FRAME_HDR + ETH_HLEN + 2));
		break;
	case 2:
		/* The giants cost time: one in four of these is enough. */
		len = rng_pick(r, odd);
		if (len < 4096 || rng_one_in(r, 4))
			set_length(f, FRAME_HDR + len);
		break;
	case 3: /* a piece is missing */
		at = rng_below(r, f->len + 1);
		n = rng_below(r, f->len - at + 1);
		memmove(f->bytes + at, f->bytes + at + n, f->len - at - n);
		f->len -= n;
		break;
	case 4: /* a piece comes twice */
		at = rng_below(r, f->len + 1);
		n = rng_below(r, f->len - at + 1);
		if (n > 128)
			n = 128;
		if (f->len + n <= FRAME_CAPACITY) {
			memmove(f->bytes + at + n, f->bytes + at, f->len - at);
			f->len += n;
		}
		break;
	}
}

void frame_mutate(struct frame *f, struct rng *r)
{
	uint32_t count = 1 + rng_below(r, rng_one_in(r, 4) ? 6 : 2);

	while (count--) {
		uint32_t dice = rng_below(r, 10);

		if (dice < 5)
			damage_header(f, r);
		else if (dice < 8)
			damage_content(f, r);
		else
			damage_length(f, r);
	}
}
