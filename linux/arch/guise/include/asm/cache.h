/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Cache lines of 64 bytes, as on x86-64 and arm64. Programs can see this size:
 * Linux counts what a packet takes of a socket's buffer in whole lines, and also
 * the default and least sizes of buffers (SO_RCVBUF, TCP_WINDOW_CLAMP).
 */
#ifndef _ASM_GUISE_CACHE_H
#define _ASM_GUISE_CACHE_H

#define L1_CACHE_SHIFT 6
#define L1_CACHE_BYTES (1 << L1_CACHE_SHIFT)

#endif
