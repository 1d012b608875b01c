/* SPDX-License-Identifier: GPL-2.0-only */
/* Exchange with one virtual CPU. asm/atomic.h says why plain C is atomic. */
#ifndef _ASM_GUISE_CMPXCHG_H
#define _ASM_GUISE_CMPXCHG_H

#include <linux/compiler.h>
#include <linux/types.h>

#define arch_xchg(ptr, x)                                               \
	({                                                              \
		__typeof__(ptr) __xchg_ptr = (ptr);                     \
		__typeof__(*(ptr)) __xchg_old = READ_ONCE(*__xchg_ptr); \
		WRITE_ONCE(*__xchg_ptr, (__typeof__(*(ptr)))(x));       \
		__xchg_old;                                             \
	})

#define arch_cmpxchg(ptr, o, n)                                         \
	({                                                              \
		__typeof__(ptr) __cmp_ptr = (ptr);                      \
		__typeof__(*(ptr)) __cmp_old = READ_ONCE(*__cmp_ptr);   \
		__typeof__(*(ptr)) __cmp_new = (__typeof__(*(ptr)))(n); \
		if (__cmp_old == (__typeof__(*(ptr)))(o))               \
			WRITE_ONCE(*__cmp_ptr, __cmp_new);              \
		__cmp_old;                                              \
	})

#define arch_cmpxchg_local   arch_cmpxchg
#define arch_cmpxchg64       arch_cmpxchg
#define arch_cmpxchg64_local arch_cmpxchg

#endif
