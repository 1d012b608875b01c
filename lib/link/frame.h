/* SPDX-License-Identifier: GPL-2.0-only */
/* What every link carries: a virtio-net header and an Ethernet frame, or an IP packet. */
#ifndef GUISE_LINK_FRAME_H
#define GUISE_LINK_FRAME_H

#include <linux/virtio_net.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GUISE_FRAME_HDR sizeof(struct virtio_net_hdr_v1)
/* Header, Ethernet header with one VLAN tag, and the largest packet. */
#define GUISE_FRAME_MAX (GUISE_FRAME_HDR + 18 + 65535)

/* The header that a frame has at least: Ethernet's, or, on a raw link, IPv4's. */
#define GUISE_FRAME_ETHER 14
#define GUISE_FRAME_IP    20

/*
 * Whether a received frame is valid. total is its length with its virtio-net header, which
 * is at hdr; header is one of the two above. This checks only the virtio-net header and the
 * length. The port checks what depends on the packet (is it TCP, where does its header end).
 */
bool guise_frame_ok(const void *hdr, int64_t total, size_t header);

#endif
