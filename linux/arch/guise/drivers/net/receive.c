// SPDX-License-Identifier: GPL-2.0-only
/*
 * The receive path of a link.
 *
 * Each frame is read straight into pages of the region that then belong to
 * its skb. The header of the frame is copied into the skb's linear part, the
 * rest stays where it is. Every frame is hostile until proven otherwise: what
 * is too short, or whose virtio-net header does not fit it, is counted in
 * rx_malformed and dropped before the stack sees it.
 */
#include <linux/etherdevice.h>
#include <linux/ip.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <linux/virtio_net.h>

#include <asm/guise.h>

#include "link.h"

#define GUISE_RX_COPY 256 /* frames up to this are copied whole */
#define GUISE_RX_HEAD 128 /* else so much of them is linear */

static bool guise_rx_refill(struct guise_link_dev *gl)
{
	unsigned int i;

	if (!gl->head)
		gl->head = alloc_page(GFP_ATOMIC | __GFP_NOWARN);
	if (!gl->head)
		return false;
	for (i = 0; i < GUISE_RX_CHUNKS; i++) {
		if (!gl->chunk[i])
			gl->chunk[i] = alloc_pages(GFP_ATOMIC | __GFP_NOWARN | __GFP_COMP,
						   GUISE_RX_CHUNK_ORDER);
		if (!gl->chunk[i])
			return false;
	}
	return true;
}

void guise_link_free_buffers(struct guise_link_dev *gl)
{
	unsigned int i;

	if (gl->head)
		put_page(gl->head);
	for (i = 0; i < GUISE_RX_CHUNKS; i++)
		if (gl->chunk[i])
			put_page(gl->chunk[i]);
}

/*
 * Gives the skb the first part bytes of a chunk. It is charged for what it holds,
 * or a sender of frames of an awkward size would fill the memory of a stack past
 * its sockets' limits; so little of a chunk is copied into a page instead.
 */
static bool guise_rx_chunk(struct guise_link_dev *gl, struct sk_buff *skb, unsigned int i,
			   unsigned int part)
{
	unsigned int frag = skb_shinfo(skb)->nr_frags;
	struct page *page;

	if (part > PAGE_SIZE) {
		skb_add_rx_frag(skb, frag, gl->chunk[i], 0, part, GUISE_RX_CHUNK);
		gl->chunk[i] = NULL;
		return true;
	}
	page = alloc_page(GFP_ATOMIC | __GFP_NOWARN);
	if (!page)
		return false;
	memcpy(page_address(page), page_address(gl->chunk[i]), part);
	skb_add_rx_frag(skb, frag, page, 0, part, PAGE_SIZE);
	return true;
}

/* The frame of len bytes that lies in the buffers, as an skb. */
static struct sk_buff *guise_rx_skb(struct guise_link_dev *gl, unsigned int len)
{
	unsigned int linear = len <= GUISE_RX_COPY ? len : GUISE_RX_HEAD;
	unsigned int in_head = min_t(unsigned int, len, PAGE_SIZE);
	unsigned int rest = len - in_head, i;
	struct sk_buff *skb;

	skb = napi_alloc_skb(&gl->napi, linear);
	if (!skb)
		return NULL;
	skb_put_data(skb, page_address(gl->head), linear);
	if (linear < in_head) {
		skb_add_rx_frag(skb, 0, gl->head, linear, in_head - linear, PAGE_SIZE);
		gl->head = NULL;
	}
	for (i = 0; rest; i++) {
		unsigned int part = min_t(unsigned int, rest, GUISE_RX_CHUNK);

		if (!guise_rx_chunk(gl, skb, i, part)) {
			kfree_skb(skb);
			return NULL;
		}
		rest -= part;
	}
	return skb;
}

static bool guise_rx_raw(const struct guise_link_dev *gl)
{
	return gl->link->features & GUISE_LINK_RAW;
}

/* What an IP packet says of itself; 0: it is none. */
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

/* Takes over what the virtio-net header says; false when it does not fit the frame. */
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
		/* Its offsets count from the Ethernet header, which therefore is still there. */
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

/* One frame from the backend to the stack; false when there was none. */
static bool guise_rx_one(struct guise_link_dev *gl)
{
	struct virtio_net_hdr_v1 hdr;
	struct guise_iov iov[2 + GUISE_RX_CHUNKS];
	struct sk_buff *skb;
	unsigned int i, len;
	s64 got;

	if (!guise_rx_refill(gl)) {
		/*
		 * No memory: leave the frames where they are. A backend that has
		 * some in a buffer would not be polled for them: come back.
		 */
		mod_timer(&gl->retry, jiffies + 1);
		return false;
	}
	iov[0].base = &hdr;
	iov[0].len = sizeof(hdr);
	iov[1].base = page_address(gl->head);
	iov[1].len = PAGE_SIZE;
	for (i = 0; i < GUISE_RX_CHUNKS; i++) {
		iov[2 + i].base = page_address(gl->chunk[i]);
		iov[2 + i].len = GUISE_RX_CHUNK;
	}
	got = guise_host_do(frame_in, gl->index, (u64)iov, 2 + GUISE_RX_CHUNKS);
	/* The host lacks memory, or was interrupted: the frame is still there. */
	if (got == -EAGAIN || got == -ENOMEM || got == -ENOBUFS || got == -EINTR)
		return false;
	if (got < 0) {
		/* Its device is gone (a tap was deleted, a peer has ended). */
		if (!gl->link->lost)
			netdev_warn(gl->dev, "link lost: error %lld\n", -got);
		gl->link->lost = 1;
		netif_carrier_off(gl->dev);
		return false;
	}
	if (got < (s64)(sizeof(hdr) + (guise_rx_raw(gl) ? sizeof(struct iphdr) : ETH_HLEN)) ||
	    got > (s64)(sizeof(hdr) + PAGE_SIZE + GUISE_RX_CHUNKS * GUISE_RX_CHUNK))
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
	/* Where frames come from, some backends also hear that there is room for others. */
	if (READ_ONCE(guise_region.vcpu->tx_pending) & bit) {
		__atomic_fetch_and(&guise_region.vcpu->tx_pending, ~bit, __ATOMIC_ACQ_REL);
		guise_link_interrupt(0, bit);
	}
	if (done < budget)
		napi_complete_done(napi, done);
	return done;
}
