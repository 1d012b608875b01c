/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _GUISE_DRIVERS_NET_LINK_H
#define _GUISE_DRIVERS_NET_LINK_H

#include <linux/netdevice.h>
#include <linux/timer.h>
#include <linux/types.h>

/*
 * The buffers a frame is received into: one page for the head of a frame and
 * small frames whole, then big chunks. What a frame did not use stays here for
 * the next one.
 */
#define GUISE_RX_CHUNK_ORDER 3
#define GUISE_RX_CHUNK       (PAGE_SIZE << GUISE_RX_CHUNK_ORDER)
#define GUISE_RX_CHUNKS      3 /* 4 KiB + 96 KiB > 64 KiB + headers */

struct guise_link_dev {
	struct net_device *dev;
	struct napi_struct napi;
	struct timer_list retry; /* of a receive that found no memory */
	struct guise_link *link; /* in the region's header */
	u32 index;
	struct page *head;
	struct page *chunk[GUISE_RX_CHUNKS];
};

int guise_link_poll(struct napi_struct *napi, int budget);
void guise_link_retry(struct timer_list *timer);
void guise_link_free_buffers(struct guise_link_dev *gl);

#endif
