// SPDX-License-Identifier: GPL-2.0-only
/* Which virtio-net headers are accepted: correct ones, and those at each limit. */
#include "link/frame.h"

#include "test/tap.h"

static bool ok(struct virtio_net_hdr_v1 h, int64_t len)
{
	return guise_frame_ok(&h, len + (int64_t)sizeof(h), GUISE_FRAME_ETHER);
}

static bool raw_ok(struct virtio_net_hdr_v1 h, int64_t len)
{
	return guise_frame_ok(&h, len + (int64_t)sizeof(h), GUISE_FRAME_IP);
}

int main(void)
{
	struct virtio_net_hdr_v1 plain = { 0 };
	struct virtio_net_hdr_v1 sum = { .flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
					 .csum_start = 34,
					 .csum_offset = 16 };
	struct virtio_net_hdr_v1 tso = { .flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
					 .gso_type = VIRTIO_NET_HDR_GSO_TCPV4,
					 .hdr_len = 54,
					 .gso_size = 1448,
					 .csum_start = 34,
					 .csum_offset = 16 };
	struct virtio_net_hdr_v1 h;

	tap(ok(plain, 14) && ok(plain, 65535 + 18), "14 bytes to the largest frame are a frame");
	tap(!ok(plain, 13) && !ok(plain, 65535 + 19), "less or more is not");
	tap(!guise_frame_ok(&plain, 0, 14) && !guise_frame_ok(&plain, 11, 14) &&
		    !guise_frame_ok(&plain, -11, 14),
	    "nor is less than a header");
	tap(raw_ok(plain, 20) && !raw_ok(plain, 19), "a packet without Ethernet has 20 bytes");

	tap(ok(sum, 52) && !ok(sum, 51), "the checksum must lie within the frame");
	h = sum;
	h.csum_start = 13;
	tap(!ok(h, 100), "and not before the Ethernet header's end");
	h.csum_start = 20;
	tap(raw_ok(h, 38) && !raw_ok(h, 37), "nor beyond a packet");
	h.csum_start = 19;
	tap(!raw_ok(h, 100), "and not before the IP header's end");
	h.csum_start = 65535;
	h.csum_offset = 65535;
	tap(!ok(h, 65535), "a sum of its two fields that would wrap is beyond the frame");
	h = sum;
	h.flags = VIRTIO_NET_HDR_F_DATA_VALID;
	h.csum_start = 65535;
	tap(ok(h, 14), "the fields mean nothing without their flag");

	tap(ok(tso, 60000), "a large TCP segment is let in");
	h = tso;
	h.gso_type |= VIRTIO_NET_HDR_GSO_ECN;
	tap(ok(h, 60000), "with ECN, too");
	h = tso;
	h.gso_size = 0;
	tap(!ok(h, 60000), "not without a segment size");
	tap(!ok(tso, 53), "nor with headers longer than the frame");
	for (int type = 0; type < 256; type++) {
		bool tcp = (type & 0x7f) == VIRTIO_NET_HDR_GSO_TCPV4 ||
			   (type & 0x7f) == VIRTIO_NET_HDR_GSO_TCPV6;

		h = tso;
		h.gso_type = (uint8_t)type;
		if (ok(h, 60000) != (tcp || type == VIRTIO_NET_HDR_GSO_NONE))
			tap(false, "type %#x", (unsigned int)type);
	}
	tap(true, "all 256 types are judged");
	return tap_end();
}
