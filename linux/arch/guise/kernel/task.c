// SPDX-License-Identifier: GPL-2.0-only
/*
 * Contexts: how tasks are switched, and how the virtual CPU goes between the
 * kernel's scheduler and the host's threads.
 *
 * Every task has its kernel stack in the region; switching is a change of
 * stack pointer on whichever host thread carries the virtual CPU. Two kinds of
 * tasks exist. Kernel threads (and the idle task) run on any carrier. The
 * shadow task of a host thread runs only while that very thread carries: it
 * may touch the program's memory and will return to the program.
 *
 * So a wake-up of somebody else's shadow task must not put it on the run
 * queue. It is deferred: the slot is marked and chained, and whoever carries
 * wakes that host thread when it gives up the virtual CPU. That thread takes
 * the virtual CPU itself, and only then is its task made runnable. The patch
 * 0001 in each folder of linux/patches asks for this in try_to_wake_up().
 */
#include <linux/cpu.h>
#include <linux/kernel.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/sched/debug.h>
#include <linux/sched/task.h>
#include <linux/sched/task_stack.h>

#include <asm/guise.h>
#include <asm/net_processor.h>
#include <asm/switch_to.h>

struct task_struct *guise_current = &init_task;

/* The task that the running context was switched from. */
static struct task_struct *guise_previous;

struct task_struct *__switch_to(struct task_struct *prev, struct task_struct *next)
{
	guise_previous = prev;
	guise_current = next;
	guise_switch((u64 *)&prev->thread.sp, next->thread.sp);
	return guise_previous;
}

static void __noreturn guise_thread_start(void)
{
	schedule_tail(guise_previous);
	do_exit(current->thread.fn(current->thread.arg));
}

int copy_thread(struct task_struct *p, const struct kernel_clone_args *args)
{
	unsigned long top = (unsigned long)task_stack_page(p) + THREAD_SIZE;

	/* clone(2) by a program is not served: see the table of calls. */
	if (!args->fn)
		return -EINVAL;
	p->thread.fn = args->fn;
	p->thread.arg = args->fn_arg;
	p->thread.slot = NULL;
	p->thread.sp = guise_first_frame(top, guise_thread_start);
	return 0;
}

void flush_thread(void)
{
}

/* Leaves the carrier's hands: continues its host context. */
void guise_park(void)
{
	guise_leave((u64 *)&current->thread.sp, &guise_carrier()->host_sp,
		    &guise_region.vcpu->entered);
}

/* Called by the host side, holding the virtual CPU: continues what is parked. */
__visible void guise_resume(struct guise_slot *slot);
__visible void guise_resume(struct guise_slot *slot)
{
	guise_enter(&slot->host_sp, guise_current->thread.sp, &guise_region.vcpu->entered);
}

/* Tells the host thread of that slot to come and take the virtual CPU. */
void guise_kick(struct guise_slot *slot)
{
	if (slot->kicked)
		return;
	slot->kicked = 1;
	slot->kick_next = guise_region.vcpu->kick_head;
	guise_region.vcpu->kick_head = slot->id;
}

bool guise_defer_wakeup(struct task_struct *p, int *success)
{
	struct guise_slot *slot = p->thread.slot;

	if (!slot || slot == guise_carrier() || slot->orphan)
		return false;
	/* As a second wake-up of a running task: not a new one. */
	*success = !slot->kicked;
	guise_kick(slot);
	return true;
}

void arch_cpu_idle(void)
{
	guise_park();
	/* What comes in now interrupts a processor that idled with interrupts on. */
	raw_local_irq_enable();
	guise_take_work();
	raw_local_irq_disable();
}

unsigned long __get_wchan(struct task_struct *p)
{
	return 0;
}

unsigned int guise_processor(void)
{
	return guise_host_do(processor, 0, 0, 0);
}

/* Host debuggers trace host processes; nobody traces a shadow task. */
void ptrace_disable(struct task_struct *child)
{
}

long arch_ptrace(struct task_struct *child, long request, unsigned long addr, unsigned long data)
{
	return -EIO;
}

#ifndef CONFIG_STACKTRACE
void show_stack(struct task_struct *task, unsigned long *sp, const char *loglvl)
{
	printk("%s(no stack trace: use a debugger on the unstripped image)\n", loglvl);
}
#endif

void show_regs(struct pt_regs *regs)
{
}

/*
 * Set while the holder finishes the section of a dead thread (lib/region/finish.c):
 * copies to and from programs are refused, as the memory is the holder's. The
 * copies look at it themselves, for the holder may begin at any instruction.
 */
u32 guise_refuse;

/* The shadow task's memory is reachable only from its own process. */
bool guise_user_gone(void)
{
	struct guise_slot *slot = current->thread.slot;

	return slot && slot->orphan;
}
