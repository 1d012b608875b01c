// SPDX-License-Identifier: GPL-2.0-only
/*
 * Raw system calls: instructions of the program's own, not libc's.
 *
 * The host's kernel is told to let only those system calls through that are
 * made in libc's text (prctl PR_SET_SYSCALL_USER_DISPATCH, Linux 5.11). Any
 * other raises SIGSYS, and what the call means is decided as if it had been
 * made through libc's syscall(). guise makes its own through an instruction
 * that it borrows from libc's getppid() (isa/x86_64.c).
 *
 * The handler of SIGSYS does not make the call itself: it may run on a small alternate
 * stack, a call that changes the signal mask would be undone when it returns, and a second
 * signal could interrupt it. Instead it lets the thread continue in guise_trap_entry, on a
 * stack that the thread has for this purpose, with the registers that the instruction had.
 * There the call is made, all registers except rax, rcx and r11 get their values back
 * (vector registers, too), and the program goes on.
 *
 * A handler of the program may interrupt such a call and make a raw one, which continues
 * below it on the same stack. If the handler runs on an alternate stack (sigaltstack) with
 * enough room, its raw calls are made there, as libc's would be; if that is small, in the
 * lower half of the thread's stack, because the interrupted call may use the upper half.
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
 *	clone3		answers ENOSYS, except for what is a fork or a vfork; programs
 *			have to know clone() anyway.
 *
 * The dispatch is a property of a thread. Neither a new thread nor a new program
 * inherits it: so each thread that is made through libc sets it when it begins, and so
 * does a forked child. The child of a raw vfork (Go's os/exec makes all programs this way)
 * sets it before it returns to the program, while it runs on its parent's stack, below the
 * part that the parent may use. Then its calls go to the hooks like those in a child of
 * libc's vfork, and its exec is prepared (process/exec.c). It uses the thread-local storage
 * of its parent's thread, which waits meanwhile, and must leave that as it was. If it makes a
 * child by a vfork or a clone in the same memory itself, that call goes to the host, and so
 * do its own calls from then on.
 *
 * SIGSYS must never be blocked (sigmask.c). A thread on which the program itself uses the
 * dispatch (Wine) is left to the program, with its raw calls.
 */
#if defined(__x86_64__)

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

#include <cpuid.h>
#include <dlfcn.h>
#include <link.h>
#include <linux/audit.h>
#include <linux/sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <ucontext.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

#define STACK         262144 /* handlers of the program may run on it */
#define ROOM          16384  /* that a call may need of an alternate stack */
#define GUARD         4096
#define RED_ZONE      128
#define SYSCALL_BYTES 2
#define EFLAGS_RESET  0x40500L /* direction, alignment check, single step */

enum { ALLOW, BLOCK };

/* What stands behind a call that was trapped. The assembly below knows it. */
struct frame {
	gregset_t regs;
	void *vectors; /* where xsave puts them */
};
_Static_assert(sizeof(gregset_t) == 23 * 8, "struct frame is as the assembly knows it");

/* The selector of the dispatch, which the host's kernel reads at each system call; one for each
 * thread. */
__thread volatile unsigned char preload_trap_selector
	__attribute__((tls_model("initial-exec"), visibility("hidden")));
/* Where a clone() or vfork() goes on. */
__thread greg_t preload_trap_resume
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

/* A vfork child runs with this thread's storage. */
__thread volatile unsigned char preload_trap_lent
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

static __thread struct {
	char *stack; /* its lowest byte */
	bool registered;
	bool theirs; /* the program dispatches for itself */
} mine __attribute__((tls_model("initial-exec")));

/* libc's text. */
uintptr_t preload_trap_text __attribute__((visibility("hidden")));
uintptr_t preload_trap_text_size __attribute__((visibility("hidden")));

static size_t vectors_size;
static bool ready;
static pthread_key_t stack_key;

void guise_trap_entry(void) __attribute__((visibility("hidden")));
void guise_trap_clone_here(void) __attribute__((visibility("hidden")));
void guise_trap_vfork_here(void) __attribute__((visibility("hidden")));
void guise_trap_clone_there(void) __attribute__((visibility("hidden")));
void preload_trap_call(struct frame *frame) __attribute__((visibility("hidden"), used));

/* Registers by their places in gregset_t: r8 to r15 are 0 to 7, rdi 8, rsi 9,
 * rbp 10, rbx 11, rdx 12, rax 13, rsp 15, rip 16, flags 17. */
__asm__(".text\n"
	".globl guise_trap_entry, guise_trap_clone_here, guise_trap_clone_there\n"
	".globl guise_trap_vfork_here\n"
	".hidden guise_trap_entry, guise_trap_clone_here, guise_trap_clone_there\n"
	".hidden guise_trap_vfork_here\n"
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
	/* The same stack and the same thread; the parent comes back when the child is gone. */
	"guise_trap_vfork_here:\n"
	"	syscall\n"
	"	mov preload_trap_lent@gottpoff(%rip), %rcx\n"
	"	test %rax, %rax\n"
	"	jz 1f\n"
	"	movb $0, %fs:(%rcx)\n"
	"	jmp guise_trap_back\n"
	"1:	movb $1, %fs:(%rcx)\n"
	"	lea -128(%rsp), %rsp\n" /* the red zone */
	"	push %rdi\n"
	"	push %rsi\n"
	"	push %rdx\n"
	"	push %r10\n"
	"	push %r8\n"
	"	mov $157, %eax\n" /* prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, */
	"	mov $59, %edi\n"
	"	mov $1, %esi\n"
	"	mov preload_trap_text(%rip), %rdx\n"
	"	mov preload_trap_text_size(%rip), %r10\n"
	"	mov preload_trap_selector@gottpoff(%rip), %r8\n"
	"	add %fs:0, %r8\n"
	"	syscall\n"
	"	pop %r8\n"
	"	pop %r10\n"
	"	pop %rdx\n"
	"	pop %rsi\n"
	"	pop %rdi\n"
	"	lea 128(%rsp), %rsp\n"
	"	xor %eax, %eax\n"
	"	jmp guise_trap_back\n"
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

static bool make_stack(void)
{
	long stack;

	if (mine.stack)
		return true;
	stack = host_sys(SYS_mmap, 0, STACK, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if ((unsigned long)stack > -4096UL)
		return false;
	host_sys(SYS_mprotect, stack, GUARD, PROT_NONE);
	mine.stack = (char *)stack;
	return true;
}

/* The stack for a raw call of a program whose stack pointer is sp. 0: there is no memory. */
static uintptr_t place_for_call(uintptr_t sp, const stack_t *alternate)
{
	uintptr_t left = sp - (uintptr_t)alternate->ss_sp;
	bool on_alternate = left <= alternate->ss_size;

	if (on_own_stack(sp) || (on_alternate && left > ROOM + vectors_size))
		return sp - RED_ZONE;
	if (!make_stack())
		return 0;
	return (uintptr_t)mine.stack + (on_alternate ? STACK / 2 : STACK);
}

/* The child of a vfork executes its program from a function on this stack, which never comes back:
 * what AddressSanitizer noted of its variables would be taken for the next function's. */
static void forget_functions(char *low, const char *end)
{
#ifdef __SANITIZE_ADDRESS__
	__asan_unpoison_memory_region(low, (size_t)(end - low));
#else
	(void)low;
	(void)end;
#endif
}

static bool call_on_a_stack(ucontext_t *uc)
{
	greg_t *regs = uc->uc_mcontext.gregs;
	uintptr_t sp = place_for_call((uintptr_t)regs[REG_RSP], &uc->uc_stack);
	struct frame *frame;
	char *vectors;

	if (!sp)
		return false;
	frame = (struct frame *)((sp - sizeof(*frame)) & ~63ul);
	vectors = (char *)(((uintptr_t)frame - vectors_size) & ~63ul);
	forget_functions(on_own_stack(sp) ? mine.stack : uc->uc_stack.ss_sp, vectors);
	copy_words(frame->regs, regs, sizeof(frame->regs) / sizeof(*regs));
	frame->vectors = vectors;
	clear_words(vectors + 512, 8); /* xsave's header */
	regs[REG_RBX] = (greg_t)(uintptr_t)frame;
	regs[REG_RSP] = (greg_t)(uintptr_t)vectors;
	regs[REG_RIP] = (greg_t)(uintptr_t)guise_trap_entry;
	regs[REG_EFL] &= ~EFLAGS_RESET;
	return true;
}

enum kind { NOT_IN_PLACE, VFORK, CLONE };

/* How a call that makes a process or a thread is made in place. Not clone3 with a new stack, which
 * would have to be found in its structure. */
static enum kind kind_of(const greg_t *regs)
{
	bool shares = regs[REG_RDI] & CLONE_VM;

	switch (regs[REG_RAX]) {
	case SYS_vfork:
		return VFORK;
	case SYS_clone:
		if (!shares && !regs[REG_RSI])
			return NOT_IN_PLACE; /* as fork(), which is called as a function */
		return shares && regs[REG_RDI] & CLONE_VFORK && !regs[REG_RSI] ? VFORK : CLONE;
	case SYS_clone3:
		return preload_clone3_vforks(regs[REG_RDI], regs[REG_RSI]) ? VFORK : NOT_IN_PLACE;
	default:
		return NOT_IN_PLACE;
	}
}

static void make_in_place(greg_t *regs, enum kind kind)
{
	preload_trap_selector = ALLOW;
	if (preload_trap_lent) {
		regs[REG_RIP] -= SYSCALL_BYTES; /* once more: the parent waits to come back here */
		return;
	}
	preload_trap_resume = regs[REG_RIP];
	if (kind == VFORK && !preload.sandboxed) {
		regs[REG_RIP] = (greg_t)(uintptr_t)guise_trap_vfork_here;
	} else if (kind == CLONE && regs[REG_RSI]) {
		regs[REG_RSI] -= (greg_t)sizeof(greg_t);
		*(greg_t *)(uintptr_t)regs[REG_RSI] = regs[REG_RIP];
		regs[REG_RIP] = (greg_t)(uintptr_t)guise_trap_clone_there;
	} else {
		regs[REG_RIP] = (greg_t)(uintptr_t)guise_trap_clone_here;
	}
}

static bool in_vdso(uintptr_t address)
{
	const ElfW(Ehdr) *vdso = (const void *)getauxval(AT_SYSINFO_EHDR);
	const ElfW(Phdr) * p;

	if (!vdso || address < (uintptr_t)vdso)
		return false;
	/* All of it is one segment, which is loaded from its beginning. */
	p = (const void *)((const char *)vdso + vdso->e_phoff);
	return p->p_type == PT_LOAD && address - (uintptr_t)vdso < p->p_memsz;
}

/* SIGSYS reported a trapped call. False: it was not trapped by us. */
static bool trapped(siginfo_t *info, ucontext_t *uc)
{
	greg_t *regs = uc->uc_mcontext.gregs;
	struct preload_arguments x;
	enum kind kind;

	if (mine.theirs)
		return false;
	if (info->si_arch != AUDIT_ARCH_X86_64) {
		regs[REG_RAX] = -ENOSYS;
		return true;
	}
	if (regs[REG_RAX] == SYS_rt_sigreturn) {
		regs[REG_RIP] = (greg_t)(uintptr_t)host_sys_gate;
		return true;
	}
	kind = kind_of(regs);
	if (kind != NOT_IN_PLACE) {
		make_in_place(regs, kind);
		return true;
	}
	if (regs[REG_RAX] == SYS_clone3 && !preload_clone3_forks(regs[REG_RDI], regs[REG_RSI])) {
		regs[REG_RAX] = -ENOSYS;
		return true;
	}
	if (regs[REG_RAX] == SYS_clock_gettime && in_vdso((uintptr_t)regs[REG_RIP]))
		preload_clock_trapped(regs[REG_RDI]);
	/* The vDSO, where the clock cannot be read without a system call. */
	if (guise_signals.inside) {
		x = arguments(regs);
		regs[REG_RAX] = host_sys(regs[REG_RAX], x.a, x.b, x.c, x.d, x.e, x.f);
	} else if (!call_on_a_stack(uc)) {
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
			preload_trap_text = start;
			preload_trap_text_size = p->p_memsz;
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
	/* A filter that was made without guise in mind may end a program that makes such a call. */
	if (!ready || mine.theirs || preload.sandboxed)
		return;
	preload_trap_selector = BLOCK;
	if (host_sys(SYS_prctl, PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, preload_trap_text,
		     preload_trap_text_size, &preload_trap_selector))
		preload_trap_not_seen();
}

void preload_trap_begin(void)
{
	/* To switch it off while it is off shows whether the host's kernel has it. */
	if (host_sys(SYS_prctl, PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_OFF, 0, 0, 0) ||
	    !find_all() || guise_signal_trap(trapped)) {
		preload_trap_not_seen();
		return;
	}
	ready = true;
	preload_trap_thread();
}

/* The program has set the dispatch of this thread itself. */
void preload_trap_dispatch_changed(long mode)
{
	mine.theirs = mode != PR_SYS_DISPATCH_OFF;
	if (ready && mine.theirs)
		preload_trap_not_seen();
	preload_trap_thread();
}

#endif
