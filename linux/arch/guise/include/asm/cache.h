/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Lines of 64 bytes, as x86-64 and arm64 have them. Programs see it: what a
 * packet costs of a socket's buffer is counted in whole lines, and so are the
 * buffers' defaults and least sizes (SO_RCVBUF, TCP_WINDOW_CLAMP).
 */
#ifndef _ASM_GUISE_CACHE_H
#define _ASM_GUISE_CACHE_H

#define L1_CACHE_SHIFT 6
#define L1_CACHE_BYTES (1 << L1_CACHE_SHIFT)

#endif
