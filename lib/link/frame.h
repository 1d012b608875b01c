/* SPDX-License-Identifier: GPL-2.0-only */
/* What every link carries: a virtio-net header and an Ethernet frame. */
#ifndef GUISE_LINK_FRAME_H
#define GUISE_LINK_FRAME_H

#include <linux/virtio_net.h>
#include <stdbool.h>
#include <stdint.h>

#define GUISE_FRAME_HDR sizeof(struct virtio_net_hdr_v1)
/* Header, Ethernet header with one VLAN tag, and the largest packet. */
#define GUISE_FRAME_MAX (GUISE_FRAME_HDR + 18 + 65535)

/*
 * Whether a received frame makes sense: total bytes with its header, which
 * lies at hdr. Only what the header and the length can tell; what depends on
 * the packet (is it TCP, where does its header end) the port looks at itself.
 */
bool guise_frame_ok(const void *hdr, int64_t total);

#endif
