// SPDX-License-Identifier: GPL-2.0-only
/*
 * How a link receives frames.
 *
 * A frame is read into pages of the region, which then belong to its skb. Only the first
 * header is copied into the linear part of the skb; Linux copies further headers there
 * when it reads them. Data in the linear part would prevent TCP from merging two skbs. A
 * small frame is copied there as a whole.
 *
 * No frame is trusted before it has been checked. A frame that is too short, or whose
 * virtio-net header does not fit it, is counted in rx_malformed and dropped before Linux
 * sees it.
 *
 * The truesize of an skb counts all the memory that no other skb can use because of it.
 * If it counted less, a sender could choose frame sizes that fill a stack's memory beyond
 * the limits of its sockets. And that memory is little more than the data, because TCP
 * opens its window by the ratio of the two. So no two frames share a page, and a frame
 * does not get a buffer of which it fills less than half: that part of the frame is copied
 * into a smaller one.
 */
#include <linux/etherdevice.h>
#include <linux/ip.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <linux/virtio_net.h>

#include <asm/guise.h>

#include "link.h"

/* Frames up to this size are copied as a whole: they fit into 2 KiB of memory, beside what
 * the kernel adds. The drivers of a host charge as much for them. */
#define GUISE_RX_COPY (SKB_WITH_OVERHEAD(2048) - NET_SKB_PAD - NET_IP_ALIGN)
#define GUISE_RX_HEAD 128 /* room for the headers of larger frames */

static const u8 guise_rx_order[GUISE_RX_BUFFERS] = GUISE_RX_ORDERS;

static unsigned int guise_rx_size(unsigned int i)
{
	return PAGE_SIZE << guise_rx_order[i];
}

static struct page *guise_rx_pages(unsigned int order)
{
	return alloc_pages(GFP_ATOMIC | __GFP_NOWARN | __GFP_COMP, order);
}

static bool guise_rx_raw(const struct guise_link_dev *gl)
{
	return gl->link->features & GUISE_LINK_RAW;
}

/* The least size of a frame, which is the size of its first header. */
static unsigned int guise_rx_least(const struct guise_link_dev *gl)
{
	return guise_rx_raw(gl) ? sizeof(struct iphdr) : ETH_HLEN;
}

static bool guise_rx_refill(struct guise_link_dev *gl)
{
	unsigned int i;

	for (i = 0; i < GUISE_RX_BUFFERS; i++) {
		if (!gl->buffer[i])
			gl->buffer[i] = guise_rx_pages(guise_rx_order[i]);
		if (!gl->buffer[i])
			return false;
	}
	return true;
}

void guise_link_free_buffers(struct guise_link_dev *gl)
{
	unsigned int i;

	for (i = 0; i < GUISE_RX_BUFFERS; i++)
		if (gl->buffer[i])
			put_page(gl->buffer[i]);
}

/* Adds the bytes of buffer i from offset to end to the skb. */
static void guise_rx_add(struct guise_link_dev *gl, struct sk_buff *skb, unsigned int i,
			 unsigned int offset, unsigned int end)
{
	unsigned int order = get_order(end);
	struct page *page = NULL;

	if (order < guise_rx_order[i])
		page = guise_rx_pages(order);
	if (page) {
		memcpy(page_address(page), page_address(gl->buffer[i]), end);
	} else {
		page = gl->buffer[i];
		order = guise_rx_order[i];
		gl->buffer[i] = NULL;
	}
	skb_add_rx_frag(skb, skb_shinfo(skb)->nr_frags, page, offset, end - offset,
			PAGE_SIZE << order);
}

/* Makes an skb of the frame of len bytes that is in the buffers. */
static struct sk_buff *guise_rx_skb(struct guise_link_dev *gl, unsigned int len)
{
	bool whole = len <= GUISE_RX_COPY;
	unsigned int linear = whole ? len : guise_rx_least(gl);
	unsigned int offset = linear, rest = len - linear, i;
	struct sk_buff *skb;

	/* Not by napi_alloc_skb(): that takes fragments of 32 KiB, which are only freed when
	 * none of them is in use any more. In a slab each object is free by itself. */
	skb = __alloc_skb(NET_SKB_PAD + NET_IP_ALIGN + (whole ? len : GUISE_RX_HEAD),
			  GFP_ATOMIC | __GFP_NOWARN, SKB_ALLOC_RX | SKB_ALLOC_NAPI, NUMA_NO_NODE);
	if (!skb)
		return NULL;
	skb_reserve(skb, NET_SKB_PAD + NET_IP_ALIGN);
	skb->dev = gl->dev;
	skb_put_data(skb, page_address(gl->buffer[0]), linear);
	for (i = 0; rest; i++) {
		unsigned int part = min(rest, guise_rx_size(i) - offset);

		guise_rx_add(gl, skb, i, offset, offset + part);
		rest -= part;
		offset = 0;
	}
	return skb;
}

/* The protocol of an IP packet, by the version in its header; 0: it is no IP packet. */
static __be16 guise_ip_version(const struct sk_buff *skb)
{
	switch (skb->data[0] >> 4) {
	case 4:
		return htons(ETH_P_IP);
	case 6:
		return htons(ETH_P_IPV6);
	default:
		return 0;
	}
}

/* Sets the skb's fields from the virtio-net header. False when that does not fit the frame. */
static bool guise_rx_header(const struct guise_link_dev *gl, struct sk_buff *skb,
			    const struct virtio_net_hdr *hdr)
{
	__be16 protocol;

	skb_reset_mac_header(skb);
	if (guise_rx_raw(gl)) {
		skb_reset_network_header(skb);
		protocol = guise_ip_version(skb);
		if (!protocol)
			return false;
		skb->protocol = protocol;
	} else {
		/* The offsets in hdr count from the Ethernet header: it must not be pulled yet. */
		skb_set_network_header(skb, ETH_HLEN);
		protocol = __vlan_get_protocol(skb, eth_hdr(skb)->h_proto, NULL);
	}
	if (hdr->gso_type != VIRTIO_NET_HDR_GSO_NONE &&
	    !virtio_net_hdr_match_proto(protocol, hdr->gso_type))
		return false;
	if (hdr->flags & VIRTIO_NET_HDR_F_DATA_VALID)
		skb->ip_summed = CHECKSUM_UNNECESSARY;
	return !virtio_net_hdr_to_skb(skb, hdr, true);
}

/* Receives one frame from the backend; false when there was none. */
static bool guise_rx_one(struct guise_link_dev *gl)
{
	struct virtio_net_hdr_v1 hdr;
	struct guise_iov iov[1 + GUISE_RX_BUFFERS];
	struct sk_buff *skb;
	unsigned int i, len, room = sizeof(hdr);
	s64 got;

	if (!guise_rx_refill(gl)) {
		/*
		 * No memory: the frames stay where they are. The retry is needed
		 * because a backend may have frames in a buffer of its own, and no
		 * descriptor becomes readable for those.
		 */
		mod_timer(&gl->retry, jiffies + 1);
		return false;
	}
	iov[0].base = &hdr;
	iov[0].len = sizeof(hdr);
	for (i = 0; i < GUISE_RX_BUFFERS; i++) {
		iov[1 + i].base = page_address(gl->buffer[i]);
		iov[1 + i].len = guise_rx_size(i);
		room += guise_rx_size(i);
	}
	got = guise_host_do(frame_in, gl->index, (u64)iov, ARRAY_SIZE(iov));
	/* The host lacks memory or was interrupted, or there is no frame. None is lost. */
	if (got == -EAGAIN || got == -ENOMEM || got == -ENOBUFS || got == -EINTR)
		return false;
	if (got < 0) {
		/* The backend has failed for ever (a tap was deleted, a peer has ended). */
		if (!gl->link->lost)
			netdev_warn(gl->dev, "link lost: error %lld\n", -got);
		gl->link->lost = 1;
		netif_carrier_off(gl->dev);
		return false;
	}
	if (got < (s64)(sizeof(hdr) + guise_rx_least(gl)) || got > room)
		goto malformed;
	len = got - sizeof(hdr);
	skb = guise_rx_skb(gl, len);
	if (!skb) {
		dev_core_stats_rx_dropped_inc(gl->dev);
		return true;
	}
	if (!guise_rx_header(gl, skb, (struct virtio_net_hdr *)&hdr) &&
	    !IS_ENABLED(CONFIG_GUISE_PLANTED_BUG)) {
		kfree_skb(skb);
		goto malformed;
	}
	if (guise_rx_raw(gl))
		skb->dev = gl->dev;
	else
		skb->protocol = eth_type_trans(skb, gl->dev);
	gl->link->rx_frames++;
	gl->link->rx_bytes += len;
	dev_sw_netstats_rx_add(gl->dev, len);
	napi_gro_receive(&gl->napi, skb);
	return true;

malformed:
	gl->link->rx_malformed++;
	gl->dev->stats.rx_frame_errors++;
	return true;
}

void guise_link_retry(struct timer_list *timer)
{
	struct guise_link_dev *gl = from_timer(gl, timer, retry);

	napi_schedule(&gl->napi);
}

int guise_link_poll(struct napi_struct *napi, int budget)
{
	struct guise_link_dev *gl = container_of(napi, struct guise_link_dev, napi);
	u32 bit = 1U << gl->index;
	int done = 0;

	while (done < budget && guise_rx_one(gl))
		done++;
	/* By receiving frames some backends learn that there is room for frames to send. */
	if (READ_ONCE(guise_region.vcpu->tx_pending) & bit) {
		__atomic_fetch_and(&guise_region.vcpu->tx_pending, ~bit, __ATOMIC_ACQ_REL);
		guise_link_interrupt(0, bit);
	}
	if (done < budget)
		napi_complete_done(napi, done);
	return done;
}
