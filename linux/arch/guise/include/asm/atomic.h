/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Atomic operations with one virtual CPU.
 *
 * A thread that executes kernel code holds the virtual CPU, and the kernel is
 * interrupted only where it calls guise_take_work() (kernel/interrupt.c). So a
 * plain read-modify-write in C is atomic. Several virtual CPUs would need
 * atomic instructions here.
 */
#ifndef _ASM_GUISE_ATOMIC_H
#define _ASM_GUISE_ATOMIC_H

#include <linux/types.h>
#include <asm/cmpxchg.h>
#include <asm/barrier.h>

#ifdef CONFIG_SMP
#error "guise has one virtual CPU"
#endif

#define arch_atomic_read(v)     READ_ONCE((v)->counter)
#define arch_atomic_set(v, i)   WRITE_ONCE((v)->counter, (i))
#define arch_atomic64_read(v)   READ_ONCE((v)->counter)
#define arch_atomic64_set(v, i) WRITE_ONCE((v)->counter, (i))

#define GUISE_ATOMIC_OP(pfx, type, vtype, name, c_op)                     \
	static __always_inline void arch_##pfx##_##name(type i, vtype *v) \
	{                                                                 \
		WRITE_ONCE(v->counter, v->counter c_op i);                \
	}

#define GUISE_ATOMIC_RETURN(pfx, type, vtype, name, c_op)                          \
	static __always_inline type arch_##pfx##_##name##_return(type i, vtype *v) \
	{                                                                          \
		type new = v->counter c_op i;                                      \
                                                                                   \
		WRITE_ONCE(v->counter, new);                                       \
		return new;                                                        \
	}

#define GUISE_ATOMIC_FETCH(pfx, type, vtype, name, c_op)                        \
	static __always_inline type arch_##pfx##_fetch_##name(type i, vtype *v) \
	{                                                                       \
		type old = READ_ONCE(v->counter);                               \
                                                                                \
		WRITE_ONCE(v->counter, old c_op i);                             \
		return old;                                                     \
	}

#define GUISE_ATOMIC_ARITH(pfx, type, vtype, name, c_op)  \
	GUISE_ATOMIC_OP(pfx, type, vtype, name, c_op)     \
	GUISE_ATOMIC_RETURN(pfx, type, vtype, name, c_op) \
	GUISE_ATOMIC_FETCH(pfx, type, vtype, name, c_op)

#define GUISE_ATOMIC_LOGIC(pfx, type, vtype, name, c_op) \
	GUISE_ATOMIC_OP(pfx, type, vtype, name, c_op)    \
	GUISE_ATOMIC_FETCH(pfx, type, vtype, name, c_op)

#define GUISE_ATOMIC_ALL(pfx, type, vtype)           \
	GUISE_ATOMIC_ARITH(pfx, type, vtype, add, +) \
	GUISE_ATOMIC_ARITH(pfx, type, vtype, sub, -) \
	GUISE_ATOMIC_LOGIC(pfx, type, vtype, and, &) \
	GUISE_ATOMIC_LOGIC(pfx, type, vtype, or, |)  \
	GUISE_ATOMIC_LOGIC(pfx, type, vtype, xor, ^)

GUISE_ATOMIC_ALL(atomic, int, atomic_t)

#define ATOMIC64_INIT(i) { (i) }
#ifndef CONFIG_GENERIC_ATOMIC64
GUISE_ATOMIC_ALL(atomic64, s64, atomic64_t)
#endif

#define arch_atomic_add_return   arch_atomic_add_return
#define arch_atomic_sub_return   arch_atomic_sub_return
#define arch_atomic_fetch_add    arch_atomic_fetch_add
#define arch_atomic_fetch_sub    arch_atomic_fetch_sub
#define arch_atomic_fetch_and    arch_atomic_fetch_and
#define arch_atomic_fetch_or     arch_atomic_fetch_or
#define arch_atomic_fetch_xor    arch_atomic_fetch_xor
#define arch_atomic64_add_return arch_atomic64_add_return
#define arch_atomic64_sub_return arch_atomic64_sub_return
#define arch_atomic64_fetch_add  arch_atomic64_fetch_add
#define arch_atomic64_fetch_sub  arch_atomic64_fetch_sub
#define arch_atomic64_fetch_and  arch_atomic64_fetch_and
#define arch_atomic64_fetch_or   arch_atomic64_fetch_or
#define arch_atomic64_fetch_xor  arch_atomic64_fetch_xor

#define arch_atomic_xchg(v, new)       arch_xchg(&(v)->counter, new)
#define arch_atomic_cmpxchg(v, o, n)   arch_cmpxchg(&(v)->counter, o, n)
#define arch_atomic64_xchg(v, new)     arch_xchg(&(v)->counter, new)
#define arch_atomic64_cmpxchg(v, o, n) arch_cmpxchg(&(v)->counter, o, n)

#endif
