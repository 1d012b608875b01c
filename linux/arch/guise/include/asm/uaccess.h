/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Access to the program's memory: an ordinary copy that is allowed to fault.
 *
 * Every access is a call of guise_copy() or guise_zero() (kernel/isa_*.S). When it
 * faults, the host side catches the signal and continues at their fix-up, which
 * returns how many bytes are missing: the caller gives EFAULT. The task of a dead
 * process has no memory to access; it gets EFAULT, too. A task that makes the calls of a
 * program in another process has a window: the memory that both share. All of the program's
 * addresses that lie in it are translated, and all others give EFAULT.
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
/* Where n bytes of the program's memory are; NULL: the calling task may not use them. */
void *guise_user(const void __user *at, unsigned long n);

static inline __must_check unsigned long raw_copy_from_user(void *to, const void __user *from,
							    unsigned long n)
{
	const void *at = guise_user(from, n);

	return likely(at) ? guise_copy(to, at, n) : n;
}

static inline __must_check unsigned long raw_copy_to_user(void __user *to, const void *from,
							  unsigned long n)
{
	void *at = guise_user(to, n);

	return likely(at) ? guise_copy(at, from, n) : n;
}

static inline __must_check unsigned long __clear_user(void __user *to, unsigned long n)
{
	void *at = guise_user(to, n);

	return likely(at) ? guise_zero(at, n) : n;
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
