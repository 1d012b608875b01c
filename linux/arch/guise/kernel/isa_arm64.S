/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * All that is arm64's own: switching between contexts, the copies that may
 * fault, and the string functions. No pointer authentication, no landing pads:
 * a context may be continued by a process whose keys are others.
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
 * A context is the twelve general registers that a function must preserve,
 * and the stack they lie on. d8 to d15 must be preserved, too, and are: the
 * image is compiled without floating point and vector registers, and a host
 * service that uses them gives them back before it returns, never in another
 * context than it was called in. x18, the platform's, is never used.
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
 * The same between a host thread and a context. Whoever is killed on the way is
 * judged by its stack pointer (lib/region/finish.c): the instruction that sets
 * it is the step. On the way back nothing of the old process is left in a
 * register but between the load and that instruction, where finish.c loads anew.
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
 * Saves the way back for a section that another thread began: go() continues it,
 * and guise_leave ends it here.
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
 * Calls the function whose address lies at ops + at. Another process may have to
 * make the call anew, from guise_host_redo on, with its own table and with the
 * stack pointer that lies in *redo meanwhile: all that is needed lies above it.
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
 * The entry finds its stack on 16 bytes, and no frame above its own.
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
 * Return the number of bytes not done, which is all of them while guise_refuse
 * (task.c) is set. An access that faults between
 * guise_copy_start and guise_copy_end continues at guise_copy_fixup. There x0,
 * x1 and x2 say where the piece began that could not be done in one; x5 says
 * by which loop it is tried again byte by byte, so that the count is exact. A
 * copy in there that another process has to go on with continues at the fix-up
 * with BY_BYTE; before it, guise_refuse has not been looked at yet.
 */
#define BY_COPY	0
#define BY_ZERO	1
#define BY_BYTE	2	/* that was the byte loop: x2 are missing */

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

/* Both load up to 64 bytes before they store any: then overlap does no harm.
 * x0 stays as it is, for the caller; x3 goes along the destination. */
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
