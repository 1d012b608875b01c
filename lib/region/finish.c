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
 * What is the processor's own is isa/isa.h's, and how a context is saved and left only
 * the image knows (kernel/isa_*.S): it says where.
 *
 * Limits: a thread that was killed while a handler began or ended is not found where it
 * was, and neither is one whose kernel stack ran over.
 */
#include "region/finish.h"

#include "host/signal.h"
#include "host/sys.h"
#include "isa/isa.h"
#include "region/bury.h"

#include <signal.h>
#include <ucontext.h>

#define ADOPT_SIGNAL SIGUSR2
#define HANDLERS     8       /* of one thread, one above the other, at most */
#define FRAMES       32768ul /* bytes that are searched for a frame */
#define CHUNK        4096ul
#define FRAME_MAX    512ul /* of any processor */

/* Which of the cases above. */
enum place { INSIDE, OUTSIDE, HANDLER, UNKNOWN };

static __thread const struct user_regs_struct *adopted __attribute__((tls_model("initial-exec")));

/* Goes on as *adopted. */
static void fire(void)
{
	host_sys(SYS_tgkill, host_sys(SYS_getpid), host_sys(SYS_gettid), ADOPT_SIGNAL);
}

static void adopt_handler(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)info;
	if (adopted)
		guise_isa_continue(context, adopted);
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

/* Whether that may be the registers of an interrupted section, from a frame at `at`. */
static bool is_section(const struct guise_stack *s, const struct user_regs_struct *r, uint64_t at)
{
	const uint64_t stack = guise_isa_sp(r);

	return in_text(s, guise_isa_ip(r)) &&
	       (in_memory(s, stack) ? !in_memory(s, at) || stack > at : stack != 0);
}

/* The registers behind the handler that the thread was in; false: not found. */
static bool leave_handler(const struct guise_stack *s, struct guise_killed *k)
{
	const size_t most = guise_isa_frame_size;
	const uint64_t from = (guise_isa_sp(&k->regs) + 15) & ~15ul;
	char buffer[CHUNK + FRAME_MAX];

	if (most > FRAME_MAX)
		return false;
	for (uint64_t at = from; at < from + FRAMES; at += CHUNK) {
		ssize_t got = k->read(k->context, at, buffer, CHUNK + most);

		for (size_t i = 0; (ssize_t)(i + most) <= got && i < CHUNK; i += 8) {
			struct user_regs_struct r = k->regs;

			if (guise_isa_frame(&r, buffer + i) && is_section(s, &r, at + i)) {
				k->regs = r;
				return true;
			}
		}
		if (got < (ssize_t)(CHUNK + most))
			break;
	}
	return false;
}

static enum place find(const struct guise_stack *s, const struct guise_killed *k)
{
	if (!__atomic_load_n(&s->region->vcpu->entered, __ATOMIC_ACQUIRE))
		return OUTSIDE;
	if (in_text(s, guise_isa_ip(&k->regs)))
		return in_memory(s, guise_isa_sp(&k->regs)) ? INSIDE : OUTSIDE;
	/* A handler above a service, too: all that counts lies at redo. */
	return s->region->vcpu->redo ? INSIDE : HANDLER;
}

/* Where a section goes on in another process than the one it began in. */
static void redirect(const struct guise_stack *s, struct guise_killed *k)
{
	const struct guise_image *image = s->image;
	const uint64_t base = s->region->base;
	uint64_t at;

	if (!in_text(s, guise_isa_ip(&k->regs))) {
		guise_isa_set_sp(&k->regs, s->region->vcpu->redo);
		guise_isa_set_ip(&k->regs, base + image->redo);
		return;
	}
	at = guise_isa_ip(&k->regs) - base;
	if (at >= image->copy_start && at < image->copy_end) {
		guise_isa_end_copy(&k->regs);
		guise_isa_set_ip(&k->regs, base + image->copy_fixup);
	}
	/* An address of the old process may be in a register already. */
	if (at > image->redo && at <= image->redo_end)
		guise_isa_set_ip(&k->regs, base + image->redo);
	if (at > image->leave_load && at <= image->leave_load_end)
		guise_isa_set_ip(&k->regs, base + image->leave_load);
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
		void (*adopt)(uint64_t *host_sp, void (*go)(void)) =
			(void (*)(uint64_t *, void (*)(void)))(s->region->base + s->image->adopt);

		if (!prepare())
			return false;
		redirect(s, k);
		s->region->vcpu->carrier = k->slot->id;
		adopted = &k->regs;
		__atomic_store_n(refuse, 1, __ATOMIC_RELEASE);
		guise_inside_enter();
		adopt(&k->slot->host_sp, fire);
		guise_inside_leave();
		__atomic_store_n(refuse, 0, __ATOMIC_RELEASE);
	}
	s->region->vcpu->entered = 0;
	guise_take_over(s, k->slot);
	return true;
}
