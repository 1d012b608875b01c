/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The port is written for the newest series of Linux that it supports. This file has what older
 * series call by another name, or with other parameters. Only this file and the folder of each
 * series in linux/patches know of them.
 */
#ifndef _ASM_GUISE_SERIES_H
#define _ASM_GUISE_SERIES_H

#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0)

#include <linux/sched/signal.h>

#define dequeue_signal(mask, info, type) dequeue_signal(current, mask, info, type)

#endif

/* Older series tell routes of a carrier when their own worker comes to it, within a second. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 8, 0)
#define linkwatch_sync_dev(dev) netdev_state_change(dev)
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
#define guise_capabilities(bits) \
	((kernel_cap_t){ { (u32)(bits), (u32)((bits) >> 32) & CAP_LAST_U32_VALID_MASK } })
#else
#define guise_capabilities(bits) ((kernel_cap_t){ (bits) & CAP_VALID_MASK })
#endif
#endif
