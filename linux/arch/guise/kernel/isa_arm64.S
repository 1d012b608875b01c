/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What depends on arm64: switching between contexts, the copies that may fault,
 * and the string functions. Pointer authentication and branch target
 * identification are not used: a context may be continued by another process,
 * whose keys and page tables are different.
 */
#include <linux/linkage.h>

	.text

#define FRAME 96

	.macro	push_registers
	stp	x29, x30, [sp, #-FRAME]!
	stp	x19, x20, [sp, #16]
	stp	x21, x22, [sp, #32]
	stp	x23, x24, [sp, #48]
	stp	x25, x26, [sp, #64]
	stp	x27, x28, [sp, #80]
	.endm

	.macro	pop_registers
	ldp	x19, x20, [sp, #16]
	ldp	x21, x22, [sp, #32]
	ldp	x23, x24, [sp, #48]
	ldp	x25, x26, [sp, #64]
	ldp	x27, x28, [sp, #80]
	ldp	x29, x30, [sp], #FRAME
	.endm

/*
 * void guise_switch(u64 *save, u64 load)
 *
 * A context is the twelve general registers that a function must preserve, and
 * the stack on which they are saved. A function must preserve d8 to d15, too;
 * they need not be saved, because the image is compiled without floating point
 * and vector registers, and a host service restores them before it returns. No
 * switch happens within a host service. x18, the platform register, is never
 * used.
 */
SYM_FUNC_START(guise_switch)
	push_registers
	mov	x9, sp
	str	x9, [x0]
	mov	sp, x1
	pop_registers
	ret
SYM_FUNC_END(guise_switch)

/*
 * void guise_enter(u64 *save, u64 load, u32 *entered)
 * void guise_leave(u64 *save, u64 *load, u32 *entered)
 *
 * The same between a host thread and a context. When a thread is killed in here,
 * lib/region/finish.c decides by its stack pointer whether it was inside: the
 * instruction that sets the stack pointer is the moment of change. In guise_leave
 * the new stack pointer belongs to the process that was killed. It is in a register
 * only between the load and that instruction; finish.c continues a thread that was
 * killed there at the load.
 */
SYM_FUNC_START(guise_enter)
	push_registers
	mov	x9, sp
	str	x9, [x0]
	mov	w9, #1
	str	w9, [x2]
	mov	sp, x1
	pop_registers
	ret
SYM_FUNC_END(guise_enter)

SYM_FUNC_START(guise_leave)
	.globl	guise_leave_load, guise_leave_load_end
	push_registers
	mov	x9, sp
	str	x9, [x0]
guise_leave_load:
	ldr	x9, [x1]
guise_leave_load_end:
	mov	sp, x9
	str	wzr, [x2]
	pop_registers
	ret
SYM_FUNC_END(guise_leave)

/*
 * void guise_adopt(u64 *save, void (*go)(void))
 *
 * For a section that another thread began (lib/region/finish.c). Saves the caller's
 * registers and stack pointer and calls go(), which continues the section. When the
 * section ends, guise_leave returns from here to the caller.
 */
SYM_FUNC_START(guise_adopt)
	push_registers
	mov	x9, sp
	str	x9, [x0]
	blr	x1
	brk	#0
SYM_FUNC_END(guise_adopt)

/*
 * u64 guise_host_call(struct guise_host_ops *ops, u64 a, u64 b, u64 c, u64 at, u64 *redo)
 *
 * Calls the function whose address is at ops + at. If the thread is killed in that
 * function, the holder makes the call again, with its own table: it continues at
 * guise_host_redo, with the stack pointer from *redo. The arguments are on the stack
 * there. *redo is 0 when no call is under way.
 */
SYM_FUNC_START(guise_host_call)
	.globl	guise_host_redo, guise_host_redo_end
	push_registers
	stp	x4, x5, [sp, #-48]!
	stp	x0, x1, [sp, #16]
	stp	x2, x3, [sp, #32]
	mov	x9, sp
	str	x9, [x5]
guise_host_redo:
	ldp	x4, x5, [sp]
	ldp	x0, x1, [sp, #16]
	ldp	x2, x3, [sp, #32]
	ldr	x9, [x0, x4]
guise_host_redo_end:
	blr	x9
	ldp	x4, x5, [sp], #48
	str	xzr, [x5]
	pop_registers
	ret
SYM_FUNC_END(guise_host_call)

/*
 * unsigned long guise_first_frame(unsigned long top, void (*entry)(void))
 *
 * entry() begins with a stack that is aligned to 16 bytes, and with a frame pointer
 * of 0, which ends the chain of frames.
 */
SYM_FUNC_START(guise_first_frame)
	and	x0, x0, #~15
	sub	x0, x0, #FRAME
	stp	xzr, x1, [x0]
	stp	xzr, xzr, [x0, #16]
	stp	xzr, xzr, [x0, #32]
	stp	xzr, xzr, [x0, #48]
	stp	xzr, xzr, [x0, #64]
	stp	xzr, xzr, [x0, #80]
	ret
SYM_FUNC_END(guise_first_frame)

/*
 * unsigned long guise_copy(void *to, const void *from, unsigned long n)
 * unsigned long guise_zero(void *to, unsigned long n)
 *
 * Return the number of bytes that were not written, which is all of them while
 * guise_refuse (task.c) is set. An access between guise_copy_start and guise_copy_end
 * that faults continues at guise_copy_fixup. There x0, x1 and x2 are those of the
 * piece that faulted. x5 says how that piece is tried again, byte by byte, so that
 * the number is exact. If another process continues a copy in here
 * (lib/region/finish.c), it does so at the fix-up with BY_BYTE. If it continues
 * before guise_copy_start, the copy itself finds guise_refuse set.
 */
#define BY_COPY	0
#define BY_ZERO	1
#define BY_BYTE	2	/* it was the loop of bytes that faulted: x2 are missing */

SYM_FUNC_START(guise_zero)
	mov	x2, x1
	mov	x5, #BY_ZERO
	b	.Lzero
SYM_FUNC_END(guise_zero)

SYM_FUNC_START(guise_copy)
	mov	x5, #BY_COPY
	.globl	guise_copy_start, guise_copy_end, guise_copy_fixup
guise_copy_start:
	adrp	x9, guise_refuse
	ldr	w9, [x9, #:lo12:guise_refuse]
	cbnz	w9, 8f
	cmp	x2, #64
	b.lo	2f
1:	ldp	x6, x7, [x1]
	ldp	x8, x9, [x1, #16]
	ldp	x10, x11, [x1, #32]
	ldp	x12, x13, [x1, #48]
	stp	x6, x7, [x0]
	stp	x8, x9, [x0, #16]
	stp	x10, x11, [x0, #32]
	stp	x12, x13, [x0, #48]
	add	x1, x1, #64
	add	x0, x0, #64
	sub	x2, x2, #64
	cmp	x2, #64
	b.hs	1b
2:	cmp	x2, #8
	b.lo	4f
3:	ldr	x6, [x1]
	str	x6, [x0]
	add	x1, x1, #8
	add	x0, x0, #8
	sub	x2, x2, #8
	cmp	x2, #8
	b.hs	3b
4:	cmp	x2, #4
	b.lo	.Lcopy_bytes
	ldr	w6, [x1]
	str	w6, [x0]
	add	x1, x1, #4
	add	x0, x0, #4
	sub	x2, x2, #4
.Lcopy_bytes:
	mov	x5, #BY_BYTE
5:	cbz	x2, 6f
	ldrb	w6, [x1]
	strb	w6, [x0]
	add	x1, x1, #1
	add	x0, x0, #1
	sub	x2, x2, #1
	b	5b
6:	mov	x0, #0
	ret

.Lzero:	adrp	x9, guise_refuse
	ldr	w9, [x9, #:lo12:guise_refuse]
	cbnz	w9, 8f
9:	cmp	x2, #16
	b.lo	.Lzero_bytes
	stp	xzr, xzr, [x0]
	add	x0, x0, #16
	sub	x2, x2, #16
	b	9b
.Lzero_bytes:
	mov	x5, #BY_BYTE
7:	cbz	x2, 6b
	strb	wzr, [x0]
	add	x0, x0, #1
	sub	x2, x2, #1
	b	7b
guise_copy_end:
guise_copy_fixup:
	cbz	x5, .Lcopy_bytes
	cmp	x5, #BY_ZERO
	b.eq	.Lzero_bytes
8:	mov	x0, x2
	ret
SYM_FUNC_END(guise_copy)

/* memcpy and memmove load up to 64 bytes before they store any, so that source and
 * destination may overlap. x0 is the result and stays as it is; x3 points into the
 * destination. */
SYM_FUNC_START(memcpy)
.Lcopy:	mov	x3, x0
	cmp	x2, #64
	b.hi	.Lforwards
.Lrest:	add	x4, x1, x2
	add	x5, x3, x2
	cmp	x2, #16
	b.lo	2f
	ldp	x6, x7, [x1]
	ldp	x8, x9, [x4, #-16]
	cmp	x2, #32
	b.ls	1f
	ldp	x10, x11, [x1, #16]
	ldp	x12, x13, [x4, #-32]
	stp	x10, x11, [x3, #16]
	stp	x12, x13, [x5, #-32]
1:	stp	x6, x7, [x3]
	stp	x8, x9, [x5, #-16]
	ret
2:	tbz	x2, #3, 3f
	ldr	x6, [x1]
	ldr	x7, [x4, #-8]
	str	x6, [x3]
	str	x7, [x5, #-8]
	ret
3:	tbz	x2, #2, 4f
	ldr	w6, [x1]
	ldr	w7, [x4, #-4]
	str	w6, [x3]
	str	w7, [x5, #-4]
	ret
4:	cbz	x2, 6f
	ldrb	w6, [x1]
	tbz	x2, #1, 5f
	ldrh	w7, [x4, #-2]
	strh	w7, [x5, #-2]
5:	strb	w6, [x3]
6:	ret
.Lforwards:
	ldp	x6, x7, [x1]
	ldp	x8, x9, [x1, #16]
	ldp	x10, x11, [x1, #32]
	ldp	x12, x13, [x1, #48]
	stp	x6, x7, [x3]
	stp	x8, x9, [x3, #16]
	stp	x10, x11, [x3, #32]
	stp	x12, x13, [x3, #48]
	add	x1, x1, #64
	add	x3, x3, #64
	sub	x2, x2, #64
	cmp	x2, #64
	b.hi	.Lforwards
	b	.Lrest
SYM_FUNC_END(memcpy)

SYM_FUNC_START(memmove)
	sub	x4, x0, x1
	cmp	x2, #64
	ccmp	x4, x2, #2, hi		/* to - from, unsigned: overlap behind? */
	b.hs	.Lcopy
	add	x4, x1, x2
	add	x5, x0, x2
1:	ldp	x6, x7, [x4, #-16]
	ldp	x8, x9, [x4, #-32]
	ldp	x10, x11, [x4, #-48]
	ldp	x12, x13, [x4, #-64]
	stp	x6, x7, [x5, #-16]
	stp	x8, x9, [x5, #-32]
	stp	x10, x11, [x5, #-48]
	stp	x12, x13, [x5, #-64]
	sub	x4, x4, #64
	sub	x5, x5, #64
	sub	x2, x2, #64
	cmp	x2, #64
	b.hi	1b
	mov	x3, x0
	b	.Lrest
SYM_FUNC_END(memmove)

SYM_FUNC_START(memset)
	and	x4, x1, #0xff
	mov	x3, x0
	orr	x4, x4, x4, lsl #8
	orr	x4, x4, x4, lsl #16
	orr	x4, x4, x4, lsl #32
	add	x5, x0, x2
	cmp	x2, #16
	b.lo	2f
1:	stp	x4, x4, [x3], #16
	sub	x2, x2, #16
	cmp	x2, #16
	b.hs	1b
	stp	x4, x4, [x5, #-16]
	ret
2:	cbz	x2, 3f
	strb	w4, [x3], #1
	sub	x2, x2, #1
	b	2b
3:	ret
SYM_FUNC_END(memset)

	.section .note.GNU-stack,"",@progbits
