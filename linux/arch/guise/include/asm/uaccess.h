/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Access to the program's memory: an ordinary copy that is allowed to fault.
 *
 * Every access goes through guise_copy() or guise_zero() (kernel/isa_*.S). The
 * host side catches the signal of a fault inside them and continues at their
 * fix-up, which returns how many bytes are missing: the caller gives EFAULT.
 * The task of a dead process has no memory to access; it gets EFAULT too.
 */
#ifndef _ASM_GUISE_UACCESS_H
#define _ASM_GUISE_UACCESS_H

#include <linux/string.h>

unsigned long guise_copy(void *to, const void *from, unsigned long n);
unsigned long guise_zero(void *to, unsigned long n);
bool guise_user_gone(void);

static inline __must_check unsigned long
raw_copy_from_user(void *to, const void __user *from, unsigned long n)
{
	if (unlikely(guise_user_gone()))
		return n;
	return guise_copy(to, (const void __force *)from, n);
}

static inline __must_check unsigned long
raw_copy_to_user(void __user *to, const void *from, unsigned long n)
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

#define __get_kernel_nofault(dst, src, type, label)			\
do {									\
	if (guise_copy((dst), (src), sizeof(type)))			\
		goto label;						\
} while (0)

#define __put_kernel_nofault(dst, src, type, label)			\
do {									\
	if (guise_copy((dst), (src), sizeof(type)))			\
		goto label;						\
} while (0)

#include <asm-generic/uaccess.h>

#endif
