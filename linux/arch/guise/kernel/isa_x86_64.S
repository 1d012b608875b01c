/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What depends on x86-64: switching between contexts, the copies that may fault,
 * and the string functions.
 */
#include <linux/linkage.h>

	.text

	.macro	push_registers
	pushq	%rbp
	pushq	%rbx
	pushq	%r12
	pushq	%r13
	pushq	%r14
	pushq	%r15
	.endm

	.macro	pop_registers
	popq	%r15
	popq	%r14
	popq	%r13
	popq	%r12
	popq	%rbx
	popq	%rbp
	.endm

/*
 * void guise_switch(u64 *save, u64 load)
 *
 * A context is the six registers that a function must preserve, and the stack on
 * which they are saved. Vector and floating point registers belong to the
 * program: the image does not use them.
 */
SYM_FUNC_START(guise_switch)
	push_registers
	movq	%rsp, (%rdi)
	movq	%rsi, %rsp
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
 * this instruction reads the new stack pointer from memory. So a process that
 * finishes the section in place of the dead thread can store its own there before.
 */
SYM_FUNC_START(guise_enter)
	push_registers
	movq	%rsp, (%rdi)
	movl	$1, (%rdx)
	movq	%rsi, %rsp
	pop_registers
	ret
SYM_FUNC_END(guise_enter)

SYM_FUNC_START(guise_leave)
	.globl	guise_leave_load, guise_leave_load_end
	push_registers
	movq	%rsp, (%rdi)
guise_leave_load:
guise_leave_load_end:			/* one instruction reads and sets it */
	movq	(%rsi), %rsp
	movl	$0, (%rdx)
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
	movq	%rsp, (%rdi)
	subq	$8, %rsp
	call	*%rsi
	ud2
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
	pushq	%r9
	pushq	%r8
	pushq	%rcx
	pushq	%rdx
	pushq	%rsi
	pushq	%rdi
	subq	$8, %rsp
	movq	%rsp, (%r9)
guise_host_redo:
	movq	8(%rsp), %rdi
	movq	16(%rsp), %rsi
	movq	24(%rsp), %rdx
	movq	32(%rsp), %rcx
	movq	40(%rsp), %r8
guise_host_redo_end:
	call	*(%rdi,%r8)
	movq	48(%rsp), %r9
	movq	$0, (%r9)
	addq	$56, %rsp
	pop_registers
	ret
SYM_FUNC_END(guise_host_call)

/*
 * unsigned long guise_first_frame(unsigned long top, void (*entry)(void))
 *
 * entry() begins with the stack that it would have if it had been called
 * (rsp % 16 == 8), and with a frame pointer of 0, which ends the chain of frames.
 */
SYM_FUNC_START(guise_first_frame)
	movq	%rdi, %rax
	andq	$-16, %rax
	movq	$0, -8(%rax)
	movq	%rsi, -16(%rax)
	movq	$0, -24(%rax)
	movq	$0, -32(%rax)
	movq	$0, -40(%rax)
	movq	$0, -48(%rax)
	movq	$0, -56(%rax)
	movq	$0, -64(%rax)
	subq	$64, %rax
	ret
SYM_FUNC_END(guise_first_frame)

/*
 * unsigned long guise_copy(void *to, const void *from, unsigned long n)
 * unsigned long guise_zero(void *to, unsigned long n)
 *
 * Return the number of bytes that were not written, which is all of them while
 * guise_refuse (task.c) is set. An access between guise_copy_start and guise_copy_end
 * that faults continues at guise_copy_fixup, where rcx is the number of bytes that
 * are left. If another process continues a copy in here (lib/region/finish.c), it
 * does so at the fix-up as well. If it continues before guise_copy_start, the copy
 * itself finds guise_refuse set.
 */
SYM_FUNC_START(guise_copy)
	movq	%rdx, %rcx
	jmp	.Lcopy
SYM_FUNC_END(guise_copy)

SYM_FUNC_START(guise_zero)
	movq	%rsi, %rcx
	jmp	.Lzero
SYM_FUNC_END(guise_zero)

SYM_CODE_START_LOCAL(guise_copy_body)
	.globl	guise_copy_start, guise_copy_end, guise_copy_fixup
guise_copy_start:
.Lcopy:
	cmpl	$0, guise_refuse(%rip)
	jne	guise_copy_fixup
	xorl	%eax, %eax
	cmpq	$32, %rdx
	jbe	1f
	rep movsb
	ret
	/* A short copy loads everything before it stores, so rcx is n when it faults. */
1:	cmpq	$8, %rdx
	jb	2f
	cmpq	$16, %rdx
	jbe	3f
	movq	8(%rsi), %r8
	movq	-16(%rsi,%rdx), %r9
	movq	(%rsi), %r10
	movq	-8(%rsi,%rdx), %r11
	movq	%r8, 8(%rdi)
	movq	%r9, -16(%rdi,%rdx)
	movq	%r10, (%rdi)
	movq	%r11, -8(%rdi,%rdx)
	ret
3:	movq	(%rsi), %r10
	movq	-8(%rsi,%rdx), %r11
	movq	%r10, (%rdi)
	movq	%r11, -8(%rdi,%rdx)
	ret
2:	cmpq	$4, %rdx
	jb	4f
	movl	(%rsi), %r10d
	movl	-4(%rsi,%rdx), %r11d
	movl	%r10d, (%rdi)
	movl	%r11d, -4(%rdi,%rdx)
	ret
4:	rep movsb
	ret
.Lzero:
	cmpl	$0, guise_refuse(%rip)
	jne	guise_copy_fixup
	xorl	%eax, %eax
	rep stosb
	ret
guise_copy_end:
guise_copy_fixup:
	movq	%rcx, %rax
	ret
SYM_CODE_END(guise_copy_body)

/* rep movsb is slow to start. Up to 64 bytes are copied by overlapping moves. */
SYM_FUNC_START(memcpy)
	movq	%rdi, %rax
	cmpq	$16, %rdx
	jb	1f
	cmpq	$64, %rdx
	ja	2f
	movq	(%rsi), %r8
	movq	8(%rsi), %r9
	movq	-16(%rsi,%rdx), %r10
	movq	-8(%rsi,%rdx), %r11
	cmpq	$32, %rdx
	jbe	3f
	pushq	%rbx
	movq	16(%rsi), %rcx
	movq	24(%rsi), %rbx
	movq	-32(%rsi,%rdx), %rdi
	movq	-24(%rsi,%rdx), %rsi
	movq	%rcx, 16(%rax)
	movq	%rbx, 24(%rax)
	movq	%rdi, -32(%rax,%rdx)
	movq	%rsi, -24(%rax,%rdx)
	popq	%rbx
3:	movq	%r8, (%rax)
	movq	%r9, 8(%rax)
	movq	%r10, -16(%rax,%rdx)
	movq	%r11, -8(%rax,%rdx)
	ret
2:	movq	%rdx, %rcx
	rep movsb
	ret
1:	cmpq	$8, %rdx
	jb	4f
	movq	(%rsi), %r8
	movq	-8(%rsi,%rdx), %r9
	movq	%r8, (%rdi)
	movq	%r9, -8(%rdi,%rdx)
	ret
4:	cmpq	$4, %rdx
	jb	5f
	movl	(%rsi), %r8d
	movl	-4(%rsi,%rdx), %r9d
	movl	%r8d, (%rdi)
	movl	%r9d, -4(%rdi,%rdx)
	ret
5:	testq	%rdx, %rdx
	jz	6f
	movzbl	(%rsi), %r8d
	cmpq	$1, %rdx
	je	7f
	movzwl	-2(%rsi,%rdx), %r9d
	movw	%r9w, -2(%rdi,%rdx)
7:	movb	%r8b, (%rdi)
6:	ret
SYM_FUNC_END(memcpy)

SYM_FUNC_START(memmove)
	movq	%rdi, %rax
	cmpq	$64, %rdx
	jbe	memcpy			/* which loads all before it stores any */
	movq	%rdi, %rcx
	subq	%rsi, %rcx
	cmpq	%rdx, %rcx		/* to - from, unsigned: overlap behind? */
	jae	2b
	leaq	-8(%rsi,%rdx), %rsi
	leaq	-8(%rdi,%rdx), %rdi
	movq	%rdx, %rcx
	shrq	$3, %rcx
	std
	rep movsq
	cld
	andq	$7, %rdx
	jz	1f
	addq	$7, %rsi
	addq	$7, %rdi
	movq	%rdx, %rcx
	std
	rep movsb
	cld
1:	ret
SYM_FUNC_END(memmove)

SYM_FUNC_START(memset)
	movq	%rdi, %r8
	movzbl	%sil, %eax
	cmpq	$64, %rdx
	ja	2f
	movabsq	$0x0101010101010101, %rcx
	imulq	%rcx, %rax
	cmpq	$8, %rdx
	jb	1f
	movq	%rdx, %rcx
3:	subq	$8, %rcx
	movq	%rax, (%rdi,%rcx)
	cmpq	$8, %rcx
	jae	3b
	movq	%rax, (%rdi)
	movq	%r8, %rax
	ret
1:	testq	%rdx, %rdx
	jz	4f
	movb	%al, -1(%rdi,%rdx)
	decq	%rdx
	jmp	1b
2:	movq	%rdx, %rcx
	rep stosb
4:	movq	%r8, %rax
	ret
SYM_FUNC_END(memset)

	.section .note.GNU-stack,"",@progbits
