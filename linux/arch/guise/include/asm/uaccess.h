/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Access to the program's memory: an ordinary copy that is allowed to fault.
 *
 * Every access is a call of guise_copy() or guise_zero() (kernel/isa_*.S). When it
 * faults, the host side catches the signal and continues at their fix-up, which
 * returns how many bytes are missing: the caller gives EFAULT. The task of a dead
 * process has no memory to access; it gets EFAULT, too.
 *
 * Programs have the lower half of the address space. A pointer beyond it is
 * refused before the call changes anything, as on a host: a datagram that cannot
 * be stored there stays in its queue.
 */
#ifndef _ASM_GUISE_UACCESS_H
#define _ASM_GUISE_UACCESS_H

#include <linux/string.h>

#ifdef CONFIG_GUISE_X86_64
#define GUISE_USER_END ((1UL << 47) - 4096)
#else
#define GUISE_USER_END (1UL << 52) /* the most that a kernel of arm64 can be built with */
#endif

static inline int __access_ok(const void __user *ptr, unsigned long size)
{
	unsigned long addr = (unsigned long)ptr;

	return size <= GUISE_USER_END && addr <= GUISE_USER_END - size;
}
#define __access_ok __access_ok

unsigned long guise_copy(void *to, const void *from, unsigned long n);
unsigned long guise_zero(void *to, unsigned long n);
bool guise_user_gone(void);

static inline __must_check unsigned long raw_copy_from_user(void *to, const void __user *from,
							    unsigned long n)
{
	if (unlikely(guise_user_gone()))
		return n;
	return guise_copy(to, (const void __force *)from, n);
}

static inline __must_check unsigned long raw_copy_to_user(void __user *to, const void *from,
							  unsigned long n)
{
	if (unlikely(guise_user_gone()))
		return n;
	return guise_copy((void __force *)to, from, n);
}

static inline __must_check unsigned long __clear_user(void __user *to, unsigned long n)
{
	if (unlikely(guise_user_gone()))
		return n;
	return guise_zero((void __force *)to, n);
}
#define __clear_user __clear_user

#define __get_kernel_nofault(dst, src, type, label)         \
	do {                                                \
		if (guise_copy((dst), (src), sizeof(type))) \
			goto label;                         \
	} while (0)

#define __put_kernel_nofault(dst, src, type, label)         \
	do {                                                \
		if (guise_copy((dst), (src), sizeof(type))) \
			goto label;                         \
	} while (0)

#include <asm-generic/uaccess.h>

#endif
