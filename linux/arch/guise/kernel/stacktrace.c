// SPDX-License-Identifier: GPL-2.0-only
/*
 * Stack traces, for the kernel's own checks (linux/configs/debug.config).
 *
 * Every context has its frames on its task's kernel stack, and its code is compiled
 * with frame pointers. x86-64 and arm64 store them in the same way: the caller's frame
 * pointer, and above it the return address. The chain ends where it leaves the stack.
 */
#include <linux/kallsyms.h>
#include <linux/panic.h>
#include <linux/printk.h>
#include <linux/sched.h>
#include <linux/sched/debug.h>
#include <linux/sched/task_stack.h>
#include <linux/stacktrace.h>
#include <linux/string.h>

#ifndef CONFIG_FRAME_POINTER
#error "stack traces need CONFIG_FRAME_POINTER"
#endif

struct guise_frame {
	struct guise_frame *caller;
	unsigned long address;
};

/* Where guise_switch() saved the frame pointer of a parked context (isa_*.S). */
static struct guise_frame *guise_parked_frame(struct task_struct *task)
{
	unsigned long sp = task->thread.sp;

	return (struct guise_frame *)(IS_ENABLED(CONFIG_GUISE_X86_64) ? sp + 40 : sp);
}

void arch_stack_walk(stack_trace_consume_fn consume, void *cookie, struct task_struct *task,
		     struct pt_regs *regs)
{
	unsigned long low = (unsigned long)task_stack_page(task), high = low + THREAD_SIZE;
	struct guise_frame *frame, *caller;

	frame = task == current ? __builtin_frame_address(0) : guise_parked_frame(task);
	while ((unsigned long)frame >= low && (unsigned long)frame <= high - sizeof(*frame)) {
		if (!frame->address || !consume(cookie, frame->address))
			break;
		caller = frame->caller;
		if (caller <= frame)
			break;
		frame = caller;
	}
}

/* Whether the trace only reports that an allocation failed, which is no bug. (The compiler
 * may move code that rarely runs into a function of its own: warn_alloc.cold.) */
static bool guise_no_memory(const unsigned long *trace, unsigned int n)
{
	char name[KSYM_SYMBOL_LEN];
	unsigned int i;

	for (i = 0; i < n; i++) {
		sprint_symbol_no_offset(name, trace[i]);
		if (str_has_prefix(name, "warn_alloc"))
			return true;
	}
	return false;
}

/*
 * All of the kernel's checks (lockdep, SLUB's, lists, reference counts, any WARN) print a
 * trace of the running task with what they found. After that some go on, and others are
 * switched off. GUISE_STRICT ends the stack, so that the bug is not overlooked.
 */
void show_stack(struct task_struct *task, unsigned long *sp, const char *loglvl)
{
	unsigned long trace[32];
	unsigned int n, i;

	n = stack_trace_save_tsk(task ?: current, trace, ARRAY_SIZE(trace), 0);
	for (i = 0; i < n; i++)
		printk("%s %pS\n", loglvl, (void *)trace[i]);
	if (IS_ENABLED(CONFIG_GUISE_STRICT) && !task && !guise_no_memory(trace, n) &&
	    atomic_read(&panic_cpu) == PANIC_CPU_INVALID)
		panic("guise: a check of the kernel found a bug; its report is above");
}
