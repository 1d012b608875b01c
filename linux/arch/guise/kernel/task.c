// SPDX-License-Identifier: GPL-2.0-only
/*
 * Contexts: how tasks are switched, and how a host thread enters and leaves the kernel.
 *
 * Every task has its kernel stack in the region. To switch tasks is to change the stack
 * pointer of the carrier, the host thread that has the virtual CPU. There are two kinds
 * of tasks. Kernel threads and the idle task run on any carrier. The shadow task of a
 * host thread runs only while that thread is the carrier, because it uses the memory of
 * the thread's program and returns to that program.
 *
 * So a wake-up of another thread's shadow task must not put that task on the run queue.
 * Instead the thread's slot is kicked: it is added to a list, and the carrier wakes the
 * thread when it has given up the virtual CPU. The thread then takes the virtual CPU
 * itself, and only then is its task made runnable. Patch 0001 in each folder of
 * linux/patches calls guise_defer_wakeup() in try_to_wake_up() for this.
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

	/* A program cannot call clone(2) in the stack: it is not in syscall.c's table. */
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

/* Parks the running context: the carrier returns from guise_resume(). */
void guise_park(void)
{
	guise_leave((u64 *)&current->thread.sp, &guise_carrier()->host_sp,
		    &guise_region.vcpu->entered);
}

/* The host side calls this while it holds the virtual CPU: continues the current task. */
__visible void guise_resume(struct guise_slot *slot);
__visible void guise_resume(struct guise_slot *slot)
{
	guise_enter(&slot->host_sp, guise_current->thread.sp, &guise_region.vcpu->entered);
}

/* Has the host thread of that slot woken, so that it takes the virtual CPU. */
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
	/* A slot that is kicked already is like a running task: to wake it again has no effect. */
	*success = !slot->kicked;
	guise_kick(slot);
	return true;
}

void arch_cpu_idle(void)
{
	guise_park();
	/* As on a processor that is interrupted while it idles with interrupts enabled. */
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

/* Debuggers trace the processes of the host; the tasks of the stack are not traced. */
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
 * Set while the holder finishes the section of a dead thread (lib/region/finish.c). Copies
 * to and from the program then fail, because they would use the holder's memory. The
 * assembly of the copies reads it, because the holder may continue at any instruction
 * before the copy.
 */
u32 guise_refuse;

/* The memory of a dead process cannot be used. A servant's task uses what it shares with its
 * program (asm/uaccess.h), whose addresses are checked here and nowhere else. */
void *guise_user(const void __user *at, unsigned long n)
{
	struct guise_slot *slot = current->thread.slot;
	unsigned long size, offset;

	if (unlikely(!slot))
		return (void __force *)at;
	if (unlikely(slot->orphan))
		return NULL;
	size = slot->window_size;
	if (likely(!size))
		return (void __force *)at;
	offset = (unsigned long)at - slot->window_from;
	if (offset > size || (n > size - offset && !IS_ENABLED(CONFIG_GUISE_PLANTED_BUG)))
		return NULL;
	return (void *)slot->window_at + offset;
}
