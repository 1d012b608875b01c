// SPDX-License-Identifier: GPL-2.0-only
/*
 * Finishing the section of a thread that was killed with the virtual CPU.
 *
 * The holder, as its tracer, has the registers with which it was stopped for
 * ever; kernel stacks and all that the kernel knows lie in the region. So the
 * holder continues where the thread was, until the kernel parks its context. What
 * was a thread's own process's and is not the holder's is avoided:
 *
 *	its memory	copies are refused meanwhile (image->refuse); one that is under
 *			way continues at its fix-up: to the kernel, a bad pointer
 *	host services	lie elsewhere in each process: the call that was under way is
 *			made anew, through the holder's table (region->vcpu->redo). A frame
 *			may so go out twice, or be lost, as on a wire
 *	its own stack	the way out leads to where slot->host_sp says, and that is
 *			read in the instruction that takes it
 *	a handler	of a signal that interrupted the section: it is forgotten. The
 *			registers behind it lie in the frame that the host's kernel
 *			made, which is searched for upwards of the stack pointer
 *
 * Where it was the registers say:
 *
 *	stack pointer	instruction
 *	in the region	in the image	inside: to be continued
 *	in the region	elsewhere	in a host service, or in a handler
 *	elsewhere	in the image	just going in or out: nothing is left to do
 *	elsewhere	elsewhere	not inside (region->vcpu->entered), or in a handler on
 *					an alternate stack
 *
 * All registers are set by the host's kernel: the holder sends itself a signal,
 * whose handler puts the others' into its frame.
 *
 * Limits: on arm64 the frame of a handler is not searched for. A thread that was
 * killed while a handler began or ended is not found where it was, and neither is
 * one whose kernel stack ran over.
 */
#include "region/finish.h"

#include "host/signal.h"
#include "host/sys.h"
#include "region/bury.h"

#include <signal.h>
#include <string.h>
#include <ucontext.h>

#define ADOPT_SIGNAL SIGUSR2
#define HANDLERS     8       /* of one thread, one above the other, at most */
#define FRAMES       32768ul /* bytes that are searched for a frame */
#define CHUNK        4096ul

/* Which of the cases above. */
enum place { INSIDE, OUTSIDE, HANDLER, UNKNOWN };

#if defined(__x86_64__)

#define USER_CODE 0x33
#define FLAGS     0xcd5ul /* arithmetic and direction */

__asm__(".text\n"
	".globl guise_adopt\n"
	".hidden guise_adopt\n"
	".type guise_adopt, @function\n"
	"guise_adopt:\n" /* as guise_leave (isa_x86_64.S) takes it back */
	"	push %rbp\n"
	"	push %rbx\n"
	"	push %r12\n"
	"	push %r13\n"
	"	push %r14\n"
	"	push %r15\n"
	"	mov %rsp, (%rdi)\n"
	"	sub $8, %rsp\n"
	"	call guise_adopt_fire\n"
	"	ud2\n"
	".size guise_adopt, . - guise_adopt\n");

static uint64_t ip(const struct guise_killed *k)
{
	return k->regs.rip;
}

static uint64_t sp(const struct guise_killed *k)
{
	return k->regs.rsp;
}

static void set_ip(struct guise_killed *k, uint64_t to)
{
	k->regs.rip = to;
}

static void set_sp(struct guise_killed *k, uint64_t to)
{
	k->regs.rsp = to;
}

/* rcx counts what is left of a copy: isa_x86_64.S. */
static void end_copy(struct guise_killed *k)
{
	(void)k;
}

static void put(ucontext_t *uc, const struct user_regs_struct *r)
{
	greg_t *g = uc->uc_mcontext.gregs;

	g[REG_R8] = (greg_t)r->r8;
	g[REG_R9] = (greg_t)r->r9;
	g[REG_R10] = (greg_t)r->r10;
	g[REG_R11] = (greg_t)r->r11;
	g[REG_R12] = (greg_t)r->r12;
	g[REG_R13] = (greg_t)r->r13;
	g[REG_R14] = (greg_t)r->r14;
	g[REG_R15] = (greg_t)r->r15;
	g[REG_RDI] = (greg_t)r->rdi;
	g[REG_RSI] = (greg_t)r->rsi;
	g[REG_RBP] = (greg_t)r->rbp;
	g[REG_RBX] = (greg_t)r->rbx;
	g[REG_RDX] = (greg_t)r->rdx;
	g[REG_RAX] = (greg_t)r->rax;
	g[REG_RCX] = (greg_t)r->rcx;
	g[REG_RSP] = (greg_t)r->rsp;
	g[REG_RIP] = (greg_t)r->rip;
	g[REG_EFL] = (greg_t)((r->eflags & FLAGS) | ((uint64_t)g[REG_EFL] & ~FLAGS));
}

static void get(struct user_regs_struct *r, const greg_t *g)
{
	r->r8 = (uint64_t)g[REG_R8];
	r->r9 = (uint64_t)g[REG_R9];
	r->r10 = (uint64_t)g[REG_R10];
	r->r11 = (uint64_t)g[REG_R11];
	r->r12 = (uint64_t)g[REG_R12];
	r->r13 = (uint64_t)g[REG_R13];
	r->r14 = (uint64_t)g[REG_R14];
	r->r15 = (uint64_t)g[REG_R15];
	r->rdi = (uint64_t)g[REG_RDI];
	r->rsi = (uint64_t)g[REG_RSI];
	r->rbp = (uint64_t)g[REG_RBP];
	r->rbx = (uint64_t)g[REG_RBX];
	r->rdx = (uint64_t)g[REG_RDX];
	r->rax = (uint64_t)g[REG_RAX];
	r->rcx = (uint64_t)g[REG_RCX];
	r->rsp = (uint64_t)g[REG_RSP];
	r->rip = (uint64_t)g[REG_RIP];
	r->eflags = (uint64_t)g[REG_EFL];
}

#elif defined(__aarch64__)

__asm__(".text\n"
	".globl guise_adopt\n"
	".hidden guise_adopt\n"
	".type guise_adopt, @function\n"
	"guise_adopt:\n" /* as guise_leave (isa_arm64.S) takes it back */
	"	stp x29, x30, [sp, #-96]!\n"
	"	stp x19, x20, [sp, #16]\n"
	"	stp x21, x22, [sp, #32]\n"
	"	stp x23, x24, [sp, #48]\n"
	"	stp x25, x26, [sp, #64]\n"
	"	stp x27, x28, [sp, #80]\n"
	"	mov x9, sp\n"
	"	str x9, [x0]\n"
	"	bl guise_adopt_fire\n"
	"	brk #0\n"
	".size guise_adopt, . - guise_adopt\n");

static uint64_t ip(const struct guise_killed *k)
{
	return k->regs.pc;
}

static uint64_t sp(const struct guise_killed *k)
{
	return k->regs.sp;
}

static void set_ip(struct guise_killed *k, uint64_t to)
{
	k->regs.pc = to;
}

static void set_sp(struct guise_killed *k, uint64_t to)
{
	k->regs.sp = to;
}

/* What is left of a copy is not tried again: BY_BYTE in isa_arm64.S. */
static void end_copy(struct guise_killed *k)
{
	k->regs.regs[5] = 2;
}

static void put(ucontext_t *uc, const struct user_regs_struct *r)
{
	memcpy(uc->uc_mcontext.regs, r->regs, sizeof(r->regs));
	uc->uc_mcontext.sp = r->sp;
	uc->uc_mcontext.pc = r->pc;
	uc->uc_mcontext.pstate = (r->pstate & 0xf0000000) |
				 (uc->uc_mcontext.pstate & ~0xf0000000ul);
}

#endif

/* Saves where it is to be continued at *host_sp, and goes on as *adopted. */
void guise_adopt(uint64_t *host_sp) __attribute__((visibility("hidden")));
void guise_adopt_fire(void) __attribute__((visibility("hidden"), used));

static __thread const struct user_regs_struct *adopted __attribute__((tls_model("initial-exec")));

void guise_adopt_fire(void)
{
	host_sys(SYS_tgkill, host_sys(SYS_getpid), host_sys(SYS_gettid), ADOPT_SIGNAL);
}

static void adopt_handler(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)info;
	if (adopted)
		put(context, adopted);
	adopted = NULL;
}

/* The signal reaches this thread at once, with a handler that knows what for. */
static bool prepare(void)
{
	struct sigaction act = { .sa_sigaction = adopt_handler, .sa_flags = SA_SIGINFO };
	sigset_t set;

	sigfillset(&act.sa_mask);
	sigemptyset(&set);
	sigaddset(&set, ADOPT_SIGNAL);
	return !sigaction(ADOPT_SIGNAL, &act, NULL) && !pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

static bool in_text(const struct guise_stack *s, uint64_t at)
{
	const uint64_t base = s->region->base;

	return at >= base + GUISE_OFF_TEXT && at < base + s->image->text_end;
}

static bool in_memory(const struct guise_stack *s, uint64_t at)
{
	const uint64_t base = s->region->base;

	return at >= base + GUISE_OFF_DATA && at < base + s->region->size;
}

/* The registers behind the handler that the thread was in; false: not found. */
#if defined(__x86_64__)

/* Whether that may be the registers of an interrupted section, from a frame at `at`. */
static bool is_section(const struct guise_stack *s, const greg_t *g, uint64_t at)
{
	const uint64_t stack = (uint64_t)g[REG_RSP];

	return ((uint64_t)g[REG_CSGSFS] & 0xffff) == USER_CODE &&
	       in_text(s, (uint64_t)g[REG_RIP]) &&
	       (in_memory(s, stack) ? !in_memory(s, at) || stack > at : stack != 0);
}

static bool leave_handler(const struct guise_stack *s, struct guise_killed *k)
{
	const size_t most = sizeof(gregset_t);
	const uint64_t from = (sp(k) + 15) & ~15ul;
	char buffer[CHUNK + sizeof(gregset_t)];

	for (uint64_t at = from; at < from + FRAMES; at += CHUNK) {
		ssize_t got = k->read(k->context, at, buffer, CHUNK + most);

		for (size_t i = 0; (ssize_t)(i + most) <= got && i < CHUNK; i += 8) {
			gregset_t g;

			memcpy(g, buffer + i, most);
			if (is_section(s, g, at + i)) {
				get(&k->regs, g);
				return true;
			}
		}
		if (got < (ssize_t)(CHUNK + most))
			break;
	}
	return false;
}

#else

static bool leave_handler(const struct guise_stack *s, struct guise_killed *k)
{
	(void)s;
	(void)k;
	return false;
}

#endif

static enum place find(const struct guise_stack *s, const struct guise_killed *k)
{
	if (!__atomic_load_n(&s->region->vcpu->entered, __ATOMIC_ACQUIRE))
		return OUTSIDE;
	if (in_text(s, ip(k)))
		return in_memory(s, sp(k)) ? INSIDE : OUTSIDE;
	/* A handler above a service, too: all that counts lies at redo. */
	return s->region->vcpu->redo ? INSIDE : HANDLER;
}

/* Where a section goes on in another process than the one it began in. */
static void redirect(const struct guise_stack *s, struct guise_killed *k)
{
	const struct guise_image *image = s->image;
	const uint64_t base = s->region->base;
	uint64_t at;

	if (!in_text(s, ip(k))) {
		set_sp(k, s->region->vcpu->redo);
		set_ip(k, base + image->redo);
		return;
	}
	at = ip(k) - base;
	if (at >= image->copy_start && at < image->copy_end) {
		end_copy(k);
		set_ip(k, base + image->copy_fixup);
	}
#if defined(__aarch64__)
	/* An address of the old process may be in a register already. */
	if (at > image->redo && at <= image->redo + 16)
		set_ip(k, base + image->redo);
	if (at == image->leave_load + 4)
		set_ip(k, base + image->leave_load);
#endif
}

bool guise_finish(struct guise_stack *s, struct guise_killed *k)
{
	enum place place = find(s, k);

	for (int i = 0; place == HANDLER && i < HANDLERS; i++)
		place = leave_handler(s, k) ? find(s, k) : UNKNOWN;
	if (place == HANDLER || place == UNKNOWN)
		return false;
	if (place == INSIDE) {
		uint32_t *refuse = (uint32_t *)(s->region->base + s->image->refuse);

		if (!prepare())
			return false;
		redirect(s, k);
		s->region->vcpu->carrier = k->slot->id;
		adopted = &k->regs;
		__atomic_store_n(refuse, 1, __ATOMIC_RELEASE);
		guise_inside_enter();
		guise_adopt(&k->slot->host_sp);
		guise_inside_leave();
		__atomic_store_n(refuse, 0, __ATOMIC_RELEASE);
	}
	s->region->vcpu->entered = 0;
	guise_take_over(s, k->slot);
	return true;
}
