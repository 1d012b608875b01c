/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _GUISE_DRIVERS_NET_LINK_H
#define _GUISE_DRIVERS_NET_LINK_H

#include <linux/netdevice.h>
#include <linux/timer.h>
#include <linux/types.h>

/*
 * The buffers that a frame is received into, one after the other. Most are larger than the
 * one before. So few are needed, and a frame of any size nearly fills those that it takes.
 * The others stay here for the next frame.
 */
#define GUISE_RX_ORDERS  { 0, 0, 1, 2, 3, 0 } /* 68 KiB: the largest frame and its header */
#define GUISE_RX_BUFFERS 6

struct guise_link_dev {
	struct net_device *dev;
	struct napi_struct napi;
	struct timer_list retry; /* receives again, after there was no memory */
	struct guise_link *link; /* in the region's header */
	u32 index;
	struct page *buffer[GUISE_RX_BUFFERS];
};

int guise_link_poll(struct napi_struct *napi, int budget);
void guise_link_retry(struct timer_list *timer);
void guise_link_free_buffers(struct guise_link_dev *gl);

#endif
