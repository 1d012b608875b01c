// SPDX-License-Identifier: GPL-2.0-only
/*
 * What must become of a frame. The rules are necessary conditions on both
 * sides: what breaks one of the first group must be dropped on every link,
 * what keeps all of the second must get through. In between a link may be as
 * strict as it likes.
 */
#include "frame.h"

#include <linux/if_ether.h>
#include <stddef.h>
#include <string.h>

#define TCP_CHECK 16 /* where a TCP header has its checksum */
#define TCP_HDR   20
#define VLAN_HDR  4
#define IPV4_HDR  20
#define IPV6_HDR  40
/* Checksums that lie far into a frame need more memory in one piece than there may be. */
#define NEAR 2048
/* As a segment size, the kernel's mark for something else. */
#define GSO_BY_FRAGS 0xffff
#define GSO_SMALLEST 8
#ifndef VIRTIO_NET_HDR_GSO_UDP_L4
#define VIRTIO_NET_HDR_GSO_UDP_L4 5 /* younger than Debian 12's headers */
#endif

static bool broken(const struct virtio_net_hdr_v1 *h, uint64_t len, uint16_t protocol)
{
	uint8_t type = h->gso_type & (uint8_t)~VIRTIO_NET_HDR_GSO_ECN;
	bool tcp = type == VIRTIO_NET_HDR_GSO_TCPV4 || type == VIRTIO_NET_HDR_GSO_TCPV6;
	bool partial = h->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM;

	if (partial && (uint32_t)h->csum_start + h->csum_offset + sizeof(uint16_t) > len)
		return true;
	if (h->gso_type == VIRTIO_NET_HDR_GSO_NONE)
		return false;
	if (!tcp && type != VIRTIO_NET_HDR_GSO_UDP && type != VIRTIO_NET_HDR_GSO_UDP_L4)
		return true;
	if (!h->gso_size || h->gso_size == GSO_BY_FRAGS)
		return true;
	if (tcp && partial && h->csum_offset != TCP_CHECK)
		return true;
	/* A tag may hide what it is. */
	if (protocol == ETH_P_8021Q || protocol == ETH_P_8021AD)
		return false;
	if (type == VIRTIO_NET_HDR_GSO_TCPV4)
		return protocol != ETH_P_IP;
	if (type == VIRTIO_NET_HDR_GSO_TCPV6)
		return protocol != ETH_P_IPV6;
	return false;
}

static bool sound(const struct virtio_net_hdr_v1 *h, uint64_t len, uint16_t protocol)
{
	uint8_t type = h->gso_type & (uint8_t)~VIRTIO_NET_HDR_GSO_ECN;
	uint32_t start = h->csum_start, end = start + h->csum_offset + sizeof(uint16_t);

	if (len > ETH_HLEN + VLAN_HDR + 65535)
		return false;
	if (h->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) {
		if (start < ETH_HLEN + IPV4_HDR || end > len || end > NEAR)
			return false;
	} else if (h->gso_type != VIRTIO_NET_HDR_GSO_NONE) {
		return false;
	}
	if (h->gso_type == VIRTIO_NET_HDR_GSO_NONE)
		return true;
	if (h->gso_size < GSO_SMALLEST || h->gso_size == GSO_BY_FRAGS || h->hdr_len > len ||
	    h->csum_offset != TCP_CHECK || start + TCP_HDR > len)
		return false;
	if (type == VIRTIO_NET_HDR_GSO_TCPV4)
		return protocol == ETH_P_IP;
	return type == VIRTIO_NET_HDR_GSO_TCPV6 && protocol == ETH_P_IPV6 &&
	       start >= ETH_HLEN + IPV6_HDR;
}

enum verdict frame_verdict(const uint8_t *bytes, uint64_t len)
{
	struct virtio_net_hdr_v1 h;
	uint16_t protocol;

	if (len < FRAME_HDR + ETH_HLEN || len > FRAME_ROOM)
		return VERDICT_BAD;
	memcpy(&h, bytes, sizeof(h));
	bytes += FRAME_HDR + offsetof(struct ethhdr, h_proto);
	protocol = (uint16_t)(bytes[0] << 8 | bytes[1]);
	len -= FRAME_HDR;
	if (broken(&h, len, protocol))
		return VERDICT_BAD;
	return sound(&h, len, protocol) ? VERDICT_GOOD : VERDICT_EITHER;
}
