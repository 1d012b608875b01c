// SPDX-License-Identifier: GPL-2.0-only
/*
 * Raw system calls: instructions of the program's own, not libc's.
 *
 * The host's kernel is told to let only those system calls through that are
 * made in libc's text (prctl PR_SET_SYSCALL_USER_DISPATCH, Linux 5.11). Any
 * other raises SIGSYS, and what the call means is decided as if it had been
 * made through libc's syscall(). guise makes its own through an instruction
 * that it borrows from libc's getppid() (host/gate.c).
 *
 * The handler does not make the call: it may stand on a small alternate stack,
 * must not be left by a call that changes the signal mask, and a second signal
 * could arrive on top of it. It lets the thread continue in guise_trap_entry,
 * on a stack that the thread has for this purpose, with the registers that the
 * instruction found. There the call is made, all registers but rax, rcx and
 * r11 get their values back (vector registers, too), and the program goes on.
 * A handler of the program that interrupts such a call and makes a raw one
 * itself continues below, on the same stack.
 *
 * Three calls must be made where they stand:
 *
 *	rt_sigreturn	finds its frame by the stack pointer: the handler lets the
 *			thread continue at libc's instruction.
 *	vfork, clone	return twice, and the memory behind the stack pointer is
 *			not the same the second time: they are made by a few
 *			instructions here that use no stack, with the selector set
 *			to let them through. The child of clone() finds where to
 *			go on at the top of its new stack.
 *	clone3		but as fork(), answers ENOSYS; programs have to know clone()
 *			anyway.
 *
 * The dispatch is a property of a thread, and neither a new one nor a new
 * program has it: so every thread that is made through libc sets it when it
 * begins, and a forked child does. It does nothing to a vfork child.
 *
 * SIGSYS must never be blocked (sigmask.c). A program that uses the dispatch for
 * itself (Wine) has it; raw calls of that thread are the program's affair.
 */
#include "preload/raw/trap.h"

#include "host/signal.h"
#include "host/sys.h"
#include "preload/preload.h"
#include "region/stack.h"

#include <stdarg.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#define PR_SYS_DISPATCH_OFF          0
#define PR_SYS_DISPATCH_ON           1
#endif

/* Raw calls of a process that cannot be seen are counted by process. */
static void not_seen(void)
{
	if (preload.stack)
		__atomic_fetch_add(&preload.stack->region->untrapped, 1, __ATOMIC_RELAXED);
}

#if defined(__x86_64__)

#include <cpuid.h>
#include <dlfcn.h>
#include <link.h>
#include <linux/audit.h>
#include <linux/sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#define STACK        262144 /* handlers of the program may run on it */
#define GUARD        4096
#define RED_ZONE     128
#define EFLAGS_RESET 0x40500L /* direction, alignment check, single step */

enum { ALLOW, BLOCK };

/* What stands behind a call that was trapped. The assembly below knows it. */
struct frame {
	gregset_t regs;
	void *vectors; /* where xsave puts them */
};
_Static_assert(sizeof(gregset_t) == 23 * 8, "struct frame is as the assembly knows it");

/* The instruction is looked at while the call is made: a byte, each thread's own. */
__thread volatile unsigned char preload_trap_selector
	__attribute__((tls_model("initial-exec"), visibility("hidden")));
/* Where a clone() or vfork() goes on. */
__thread greg_t preload_trap_resume
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

static __thread struct {
	char *stack; /* its lowest byte */
	bool registered;
	bool theirs; /* the program dispatches for itself */
} mine __attribute__((tls_model("initial-exec")));

static uintptr_t libc_text, libc_size;
static size_t vectors_size;
static bool ready;
static pthread_key_t stack_key;

void guise_trap_entry(void) __attribute__((visibility("hidden")));
void guise_trap_clone_here(void) __attribute__((visibility("hidden")));
void guise_trap_clone_there(void) __attribute__((visibility("hidden")));
void preload_trap_call(struct frame *frame) __attribute__((visibility("hidden"), used));

/* Registers by their places in gregset_t: r8 to r15 are 0 to 7, rdi 8, rsi 9,
 * rbp 10, rbx 11, rdx 12, rax 13, rsp 15, rip 16, flags 17. */
__asm__(".text\n"
	".globl guise_trap_entry, guise_trap_clone_here, guise_trap_clone_there\n"
	".hidden guise_trap_entry, guise_trap_clone_here, guise_trap_clone_there\n"
	"guise_trap_entry:\n" /* rbx: the frame */
	"	mov 184(%rbx), %r12\n"
	"	mov $-1, %eax\n"
	"	mov $-1, %edx\n"
	"	xsave64 (%r12)\n"
	"	mov %rbx, %rdi\n"
	"	call preload_trap_call\n"
	"	mov $-1, %eax\n"
	"	mov $-1, %edx\n"
	"	xrstor64 (%r12)\n"
	"	push 136(%rbx)\n"
	"	popf\n"
	"	mov 0(%rbx), %r8\n"
	"	mov 8(%rbx), %r9\n"
	"	mov 16(%rbx), %r10\n"
	"	mov 32(%rbx), %r12\n"
	"	mov 40(%rbx), %r13\n"
	"	mov 48(%rbx), %r14\n"
	"	mov 56(%rbx), %r15\n"
	"	mov 64(%rbx), %rdi\n"
	"	mov 72(%rbx), %rsi\n"
	"	mov 80(%rbx), %rbp\n"
	"	mov 96(%rbx), %rdx\n"
	"	mov 104(%rbx), %rax\n"
	"	mov 128(%rbx), %rcx\n"
	/* When rsp is the program's, the frame may be overwritten at any time. */
	"	mov 120(%rbx), %r11\n"
	"	mov 88(%rbx), %rbx\n"
	"	mov %r11, %rsp\n"
	"	jmp *%rcx\n"
	/* The same stack for both. */
	"guise_trap_clone_here:\n"
	"	syscall\n"
	"guise_trap_back:\n"
	"	mov preload_trap_selector@gottpoff(%rip), %rcx\n"
	"	movb $1, %fs:(%rcx)\n"
	"	mov preload_trap_resume@gottpoff(%rip), %rcx\n"
	"	mov %fs:(%rcx), %rcx\n"
	"	jmp *%rcx\n"
	/* A new stack for the child, and perhaps another thread pointer. */
	"guise_trap_clone_there:\n"
	"	syscall\n"
	"	test %rax, %rax\n"
	"	jnz guise_trap_back\n"
	"	ret\n");

static void give_stack(void *stack)
{
	mine.registered = false;
	mine.stack = NULL;
	host_sys(SYS_munmap, stack, STACK);
}

/* The registers of a call, as it is made. */
static struct preload_arguments arguments(const greg_t *regs)
{
	return (struct preload_arguments){ regs[REG_RDI], regs[REG_RSI], regs[REG_RDX],
					   regs[REG_R10], regs[REG_R8],  regs[REG_R9] };
}

/* On the trap's own stack, as an ordinary function of the thread. */
void preload_trap_call(struct frame *frame)
{
	struct preload_arguments x = arguments(frame->regs);
	int saved = errno;

	if (!mine.registered) {
		mine.registered = true;
		pthread_setspecific(stack_key, mine.stack);
	}
	frame->regs[REG_RAX] = preload_by_number(frame->regs[REG_RAX], &x);
	errno = saved;
}

static bool on_own_stack(uintptr_t sp)
{
	return mine.stack && sp > (uintptr_t)mine.stack && sp <= (uintptr_t)mine.stack + STACK;
}

/* Not memcpy() and memset(): in a program built with a sanitizer these are the sanitizer's, which
 * makes system calls of its own past libc. */
static inline void copy_words(greg_t *to, const greg_t *from, size_t n)
{
	__asm__ volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
}

static inline void clear_words(void *at, size_t n)
{
	__asm__ volatile("rep stosq" : "+D"(at), "+c"(n) : "a"(0) : "memory");
}

/* False: there is no memory for a stack. */
static bool call_on_own_stack(greg_t *regs)
{
	uintptr_t sp = (uintptr_t)regs[REG_RSP];
	struct frame *frame;
	char *vectors;

	if (on_own_stack(sp)) {
		sp -= RED_ZONE;
	} else {
		if (!mine.stack) {
			long stack = host_sys(SYS_mmap, 0, STACK, PROT_READ | PROT_WRITE,
					      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

			if ((unsigned long)stack > -4096UL)
				return false;
			host_sys(SYS_mprotect, stack, GUARD, PROT_NONE);
			mine.stack = (char *)stack;
		}
		sp = (uintptr_t)mine.stack + STACK;
	}
	frame = (struct frame *)((sp - sizeof(*frame)) & ~63ul);
	vectors = (char *)(((uintptr_t)frame - vectors_size) & ~63ul);
	copy_words(frame->regs, regs, sizeof(frame->regs) / sizeof(*regs));
	frame->vectors = vectors;
	clear_words(vectors + 512, 8); /* xsave's header */
	regs[REG_RBX] = (greg_t)(uintptr_t)frame;
	regs[REG_RSP] = (greg_t)(uintptr_t)vectors;
	regs[REG_RIP] = (greg_t)(uintptr_t)guise_trap_entry;
	regs[REG_EFL] &= ~EFLAGS_RESET;
	return true;
}

static void clone_in_place(greg_t *regs, greg_t *stack)
{
	preload_trap_resume = regs[REG_RIP];
	preload_trap_selector = ALLOW;
	if (stack && *stack) {
		*stack -= (greg_t)sizeof(greg_t);
		*(greg_t *)(uintptr_t)*stack = regs[REG_RIP];
		regs[REG_RIP] = (greg_t)(uintptr_t)guise_trap_clone_there;
	} else {
		regs[REG_RIP] = (greg_t)(uintptr_t)guise_trap_clone_here;
	}
}

/* SIGSYS said that a call was trapped. False: not by us. */
static bool trapped(siginfo_t *info, ucontext_t *uc)
{
	greg_t *regs = uc->uc_mcontext.gregs;
	struct preload_arguments x;

	if (mine.theirs)
		return false;
	if (info->si_arch != AUDIT_ARCH_X86_64) {
		regs[REG_RAX] = -ENOSYS;
		return true;
	}
	switch (regs[REG_RAX]) {
	case SYS_rt_sigreturn:
		regs[REG_RIP] = (greg_t)(uintptr_t)host_sys_gate;
		return true;
	case SYS_vfork:
		clone_in_place(regs, NULL);
		return true;
	case SYS_clone:
		/* As fork(), which is called as a function. */
		if (!(regs[REG_RDI] & CLONE_VM) && !regs[REG_RSI])
			break;
		clone_in_place(regs, &regs[REG_RSI]);
		return true;
	case SYS_clone3:
		if (preload_clone3_forks(regs[REG_RDI], regs[REG_RSI]))
			break;
		regs[REG_RAX] = -ENOSYS;
		return true;
	}
	/* The vDSO, where the clock cannot be read without a system call. */
	if (guise_signals.inside) {
		x = arguments(regs);
		regs[REG_RAX] = host_sys(regs[REG_RAX], x.a, x.b, x.c, x.d, x.e, x.f);
	} else if (!call_on_own_stack(regs)) {
		regs[REG_RAX] = -ENOMEM;
	}
	return true;
}

static int find_libc(struct dl_phdr_info *object, size_t size, void *address)
{
	uintptr_t inside = (uintptr_t)address;

	(void)size;
	for (int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &object->dlpi_phdr[i];
		uintptr_t start = object->dlpi_addr + p->p_vaddr;

		if (p->p_type == PT_LOAD && p->p_flags & PF_X && inside >= start &&
		    inside < start + p->p_memsz) {
			libc_text = start;
			libc_size = p->p_memsz;
			return 1;
		}
	}
	return 0;
}

/* libc's getppid() is a number, a system call and a return. */
static unsigned char *find_gate(void)
{
	static const unsigned char gate[] = { 0x0f, 0x05, 0xc3 };
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
	unsigned char *at = libc ? dlsym(libc, "getppid") : NULL;

	return at ? memmem(at, 24, gate, sizeof(gate)) : NULL;
}

static bool find_all(void)
{
	unsigned int a, b, c, d;
	unsigned char *gate = find_gate();

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE) ||
	    !__get_cpuid_count(13, 0, &a, &b, &c, &d))
		return false;
	vectors_size = b;
	if (!gate || !dl_iterate_phdr(find_libc, gate) ||
	    pthread_key_create(&stack_key, give_stack))
		return false;
	host_sys_gate = gate;
	return true;
}

bool preload_trapping(void)
{
	return ready;
}

void preload_trap_thread(void)
{
	/* A filter that was made without guise in mind may end who makes such a call. */
	if (!ready || mine.theirs || preload.sandboxed)
		return;
	preload_trap_selector = BLOCK;
	if (host_sys(SYS_prctl, PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, libc_text,
		     libc_size, &preload_trap_selector))
		not_seen();
}

void preload_trap_begin(void)
{
	/* Whether the host's kernel has it: switching off what is off. */
	if (host_sys(SYS_prctl, PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_OFF, 0, 0, 0) ||
	    !find_all() || guise_signal_trap(trapped)) {
		not_seen();
		return;
	}
	ready = true;
	preload_trap_thread();
}

/* The program sets the dispatch of its thread itself, and has done so. */
static void dispatch_changed(long mode)
{
	mine.theirs = mode != PR_SYS_DISPATCH_OFF;
	if (ready && mine.theirs)
		not_seen();
	preload_trap_thread();
}

#else /* the host's kernel has no such dispatch */

void preload_trap_begin(void)
{
	not_seen();
}

bool preload_trapping(void)
{
	return false;
}

void preload_trap_thread(void)
{
}

static void dispatch_changed(long mode)
{
	(void)mode;
}

#endif

HOOK int prctl(int option, ...)
{
	long b, c, d, e;
	va_list ap;
	int ret;

	va_start(ap, option);
	b = va_arg(ap, long);
	c = va_arg(ap, long);
	d = va_arg(ap, long);
	e = va_arg(ap, long);
	va_end(ap);
	/* Without a filter it is a question: whether the host has them. */
	if (unlikely(option == PR_SET_SECCOMP) && (b != SECCOMP_MODE_FILTER || c))
		preload_sandbox();
	if (unlikely(option == PR_SET_PTRACER) && b)
		preload_let_go();
	ret = HOST(prctl)(option, b, c, d, e);
	if (unlikely(option == PR_SET_SYSCALL_USER_DISPATCH) && !ret && preload.stack)
		dispatch_changed(b);
	return ret;
}
