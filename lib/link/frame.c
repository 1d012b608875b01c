// SPDX-License-Identifier: GPL-2.0-only
/*
 * Validation of frames that come in over a link. The outside is not trusted: a
 * header may have any values. Each rule keeps the port from using bytes that do
 * not exist, or from dividing by a segment size of zero.
 */
#include "link/frame.h"

#include <string.h>

bool guise_frame_ok(const void *hdr, int64_t total, size_t header)
{
	struct virtio_net_hdr_v1 h;
	uint64_t len;
	uint8_t type;

	if (total < (int64_t)(GUISE_FRAME_HDR + header) || total > (int64_t)GUISE_FRAME_MAX)
		return false;
	len = (uint64_t)total - GUISE_FRAME_HDR;
	memcpy(&h, hdr, sizeof(h));

	/* In 32 bits: the sum of the two fields must not wrap. */
	if ((h.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) &&
	    (h.csum_start < header ||
	     (uint32_t)h.csum_start + h.csum_offset + sizeof(uint16_t) > len))
		return false;

	if (h.gso_type == VIRTIO_NET_HDR_GSO_NONE)
		return true;
	/* A link only takes TCP segments unsegmented. */
	type = h.gso_type & (uint8_t)~VIRTIO_NET_HDR_GSO_ECN;
	if (type != VIRTIO_NET_HDR_GSO_TCPV4 && type != VIRTIO_NET_HDR_GSO_TCPV6)
		return false;
	return h.gso_size && h.hdr_len <= len;
}
