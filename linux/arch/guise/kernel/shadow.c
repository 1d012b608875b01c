// SPDX-License-Identifier: GPL-2.0-only
/*
 * Shadow tasks: the kernel tasks that stand for the members' processes and threads.
 *
 * Each member is one kernel process. Its leader task makes no calls: it makes a thread,
 * the shadow task, for each host thread that requests one. These threads share the
 * leader's file table. To make a call, a host thread writes a request into its slot and
 * continues its own shadow task, which does the request and parks. The task stays
 * current while its thread is in its program, until another thread needs the virtual
 * CPU. So the next call costs only two switches of the stack.
 *
 * Pid 1 makes the leaders, except those of heirs (heir.c). The reaper, a kernel thread,
 * ends the processes that the holder has marked as dead. Pid 1 could not do this,
 * because it has to wait for their tasks, and processes that join would wait as well.
 * The tasks of a dead process are orphans, which any carrier may run. They get SIGKILL,
 * and close their files as any killed process does.
 */
#include <linux/completion.h>
#include <linux/file.h>
#include <linux/gfp.h>
#include <linux/kernel.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/resume_user_mode.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/signal.h>
#include <linux/slab.h>
#include <linux/task_work.h>
#include <linux/wait.h>

#include <asm/guise.h>
#include <asm/series.h>
#include <asm/unistd.h>

/* Requests to pid 1: slots that need a task. */
static DECLARE_WAIT_QUEUE_HEAD(init_wait);
static u32 attach_head; /* a list, by slot->attach_next */
static DECLARE_WAIT_QUEUE_HEAD(reap_wait);
static bool reap_wanted;

struct guise_leader {
	struct task_struct *task;
	wait_queue_head_t wait;
	unsigned int index;
	u32 attach_head;
	unsigned long *keep; /* the descriptors to keep, a bit each; NULL: all */
	unsigned int keep_bits;
	struct guise_first *first;
};

/* The first thread of a leader, for guise_leader_start(), which waits until it is made. */
struct guise_first {
	struct guise_slot *slot;
	struct completion made;
	int err;
};

static struct guise_leader *leaders[GUISE_MAX_PROCS];

void guise_attach_request(struct guise_slot *slot)
{
	slot->run = 0;
	slot->attach_next = attach_head;
	attach_head = slot->id;
	wake_up(&init_wait);
}

void guise_reap_request(void)
{
	reap_wanted = true;
	wake_up(&reap_wait);
}

/* A signal that Linux sends to this task becomes a signal of the host's kernel for its
 * thread: the thread raises it when it leaves the stack. */
static void guise_exit_signals(struct guise_slot *slot)
{
	kernel_siginfo_t info;
	enum pid_type type;
	sigset_t none;
	int sig;

	if (test_thread_flag(TIF_NOTIFY_SIGNAL))
		clear_notify_signal();
	if (task_work_pending(current))
		task_work_run();
	sigemptyset(&none);
	spin_lock_irq(&current->sighand->siglock);
	while ((sig = dequeue_signal(&none, &info, &type)) > 0) {
		if (sig == SIGKILL || slot->orphan) {
			spin_unlock_irq(&current->sighand->siglock);
			do_group_exit(sig);
		}
		slot->signals |= 1ULL << (sig - 1);
	}
	recalc_sigpending();
	spin_unlock_irq(&current->sighand->siglock);
}

static void guise_exit_work(struct guise_slot *slot)
{
	unsigned long flags;

	while ((flags = READ_ONCE(current_thread_info()->flags)) & _TIF_EXIT_WORK) {
		if (flags & _TIF_NEED_RESCHED)
			schedule();
		if (flags & (_TIF_SIGPENDING | _TIF_NOTIFY_SIGNAL))
			guise_exit_signals(slot);
		if (flags & _TIF_NOTIFY_RESUME)
			resume_user_mode_work(NULL);
	}
}

static void guise_execute(struct guise_slot *slot)
{
	long ret;

	if (unlikely(slot->op == GUISE_OP_EXIT)) {
		/* From here on the task runs on any carrier: its thread does not come back. */
		slot->task = 0;
		current->thread.slot = NULL;
		slot->done = 1;
		do_exit(0);
	}
	if (unlikely(slot->renew))
		guise_identify_again(slot);
	slot->restart = 0;
	ret = guise_syscall(slot->nr, slot->arg);
	if (unlikely(READ_ONCE(current_thread_info()->flags) & _TIF_EXIT_WORK))
		guise_exit_work(slot);
	switch (ret) {
	case -ERESTARTSYS:
	case -ERESTARTNOINTR:
		slot->restart = 1;
		ret = -EINTR;
		break;
	case -ERESTARTNOHAND:
	case -ERESTART_RESTARTBLOCK:
		ret = -EINTR;
		break;
	}
	restore_saved_sigmask();
	lockdep_sys_exit();
	slot->ret = ret;
	slot->done = 1;
}

/* Ends the wait of guise_leader_start(). False: it does not wait for this slot. */
static bool guise_first_done(struct guise_leader *leader, const struct guise_slot *slot, int err)
{
	struct guise_first *first = leader->first;

	if (!first || first->slot != slot)
		return false;
	leader->first = NULL;
	first->err = err;
	complete(&first->made);
	return true;
}

static void __noreturn guise_refuse_thread(struct guise_slot *slot, int err)
{
	current->thread.slot = NULL;
	if (!guise_first_done(leaders[slot->proc], slot, err)) {
		slot->ret = err;
		slot->done = 1;
		guise_kick(slot);
	}
	do_exit(0);
}

static int guise_shadow(void *arg)
{
	struct guise_slot *slot = arg;
	sigset_t none;
	int err;

	/* The leader blocks all signals; a shadow task blocks none. */
	sigemptyset(&none);
	set_current_blocked(&none);
	current->thread.slot = slot;
	err = guise_identify(slot->arg);
	if (err)
		guise_refuse_thread(slot, err);
	/* The host adds the slack of its own timers. */
	current->timer_slack_ns = 1;
	slot->task = (u64)current;
	slot->run = 0;
	slot->done = 1;
	/* Its host thread may be asleep. It has none yet if it is the first of an heir. */
	if (!guise_first_done(leaders[slot->proc], slot, 0) && slot != guise_carrier())
		guise_kick(slot);
	for (;;) {
		if (unlikely(slot->orphan))
			do_group_exit(SIGKILL);
		if (slot == guise_carrier()) {
			if (slot->run) {
				slot->run = 0;
				slot->kicked = 0;
				guise_execute(slot);
			} else if (need_resched()) {
				schedule();
			} else {
				guise_park();
			}
			continue;
		}
		/*
		 * Another carrier continued this task, because it was current. Its own
		 * thread is in its program: do the pending work and switch to the
		 * carrier's task.
		 */
		guise_take_work();
		set_current_state(TASK_IDLE);
		if (!slot->orphan)
			schedule();
		__set_current_state(TASK_RUNNING);
	}
}

static int guise_leader(void *arg)
{
	struct guise_leader *leader = arg;
	sigset_t all;
	int sig;

	/*
	 * The host decides what a signal does. If the action of a signal were the
	 * default one, and that is to kill, Linux would send SIGKILL to all threads at
	 * once (complete_signal()), before one of them could pass the signal to the
	 * host. The leader blocks all signals, because it has no host thread.
	 */
	for (sig = 1; sig <= _NSIG; sig++)
		if (sig != SIGKILL && sig != SIGSTOP)
			allow_signal(sig);
	sigfillset(&all);
	set_current_blocked(&all);
	if (leader->keep)
		guise_heir_close(leader->keep, leader->keep_bits);
	else
		guise_identify_process(leader->index);
	while (!fatal_signal_pending(current)) {
		wait_event_interruptible(leader->wait, leader->attach_head);
		while (leader->attach_head) {
			struct guise_slot *slot = &guise_slots[leader->attach_head];
			struct kernel_clone_args args = {
				.flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
					 CLONE_THREAD,
				.fn = guise_shadow,
				.fn_arg = slot,
			};
			pid_t pid;

			leader->attach_head = slot->attach_next;
			pid = kernel_clone(&args);
			if (pid < 0 && !guise_first_done(leader, slot, pid)) {
				slot->ret = pid;
				slot->done = 1;
				guise_kick(slot);
			}
		}
	}
	if (leader->first)
		guise_first_done(leader, leader->first->slot, -EINTR);
	do_group_exit(SIGKILL);
	return 0;
}

struct guise_leader *guise_leader_new(void)
{
	struct guise_leader *leader = kzalloc(sizeof(*leader), GFP_KERNEL);

	if (leader)
		init_waitqueue_head(&leader->wait);
	return leader;
}

void guise_leader_keeps(struct guise_leader *leader, unsigned long *keep, unsigned int bits)
{
	leader->keep = keep;
	leader->keep_bits = bits;
}

bool guise_place_taken(unsigned int index)
{
	return leaders[index];
}

/*
 * Makes the leader's task; its files are a copy of the caller's. If slot is not NULL, this
 * also makes the leader's first thread, for that slot, and waits for it. On failure the
 * leader is freed if its task was not made; if only the thread was not made, it stays.
 */
int guise_leader_start(unsigned int index, struct guise_leader *leader, struct guise_slot *slot,
		       u64 flags)
{
	struct guise_first first = { .slot = slot };
	struct kernel_clone_args args = {
		.flags = CLONE_VM | CLONE_UNTRACED | flags,
		.exit_signal = SIGCHLD,
		.fn = guise_leader,
		.fn_arg = leader,
	};
	pid_t pid;

	leader->index = index;
	pid = kernel_clone(&args);
	if (pid < 0) {
		bitmap_free(leader->keep);
		kfree(leader);
		return pid;
	}
	rcu_read_lock();
	leader->task = find_task_by_pid_ns(pid, &init_pid_ns);
	get_task_struct(leader->task);
	rcu_read_unlock();
	guise_region.procs[index].leader = (u64)leader->task;
	leaders[index] = leader;
	if (!slot)
		return 0;
	init_completion(&first.made);
	leader->first = &first;
	leader->attach_head = slot->id;
	wait_for_completion(&first.made);
	return first.err;
}

static void guise_make_leader(struct guise_slot *slot)
{
	struct guise_leader *leader = leaders[slot->proc];
	int err = -ENOMEM;

	if (!leader) {
		leader = guise_leader_new();
		if (leader)
			err = guise_leader_start(slot->proc, leader, NULL, 0);
		if (err) {
			slot->ret = err;
			slot->done = 1;
			guise_kick(slot);
			return;
		}
		leader->task->signal->rlim[RLIMIT_NOFILE] = init_task.signal->rlim[RLIMIT_NOFILE];
	}
	slot->attach_next = leader->attach_head;
	leader->attach_head = slot->id;
	wake_up(&leader->wait);
}

static u32 guise_slots_end(void)
{
	return __atomic_load_n(&guise_region.slots_end, __ATOMIC_ACQUIRE);
}

/* The holder has marked a process as dead: ends its tasks, and frees its slots and its place. */
static void guise_bury(unsigned int index)
{
	struct guise_proc *proc = &guise_region.procs[index];
	struct guise_leader *leader = leaders[index];
	struct task_struct *task;
	unsigned int i;

	for (i = 1; i < guise_slots_end(); i++) {
		struct guise_slot *slot = &guise_slots[i];

		if (__atomic_load_n(&slot->used, __ATOMIC_ACQUIRE) != index + 1)
			continue;
		slot->orphan = 1;
		task = (struct task_struct *)slot->task;
		if (task) {
			send_sig(SIGKILL, task, 1);
			wake_up_process(task);
		}
	}
	if (leader) {
		leaders[index] = NULL;
		send_sig(SIGKILL, leader->task, 1);
		wake_up_process(leader->task);
		/* The slots may be used again only when all threads have ended. */
		while (!thread_group_empty(leader->task) ||
		       READ_ONCE(leader->task->exit_state) == 0)
			schedule_timeout_uninterruptible(1);
		put_task_struct(leader->task);
		bitmap_free(leader->keep);
		kfree(leader);
	}
	for (i = 1; i < guise_slots_end(); i++) {
		struct guise_slot *slot = &guise_slots[i];

		if (__atomic_load_n(&slot->used, __ATOMIC_ACQUIRE) == index + 1) {
			const size_t from = offsetofend(struct guise_slot, id);

			/* Last, used: from then on a process may take the slot without the
			 * virtual CPU. */
			memset((char *)slot + from, 0, sizeof(*slot) - from);
			slot->word = 0;
			__atomic_store_n(&slot->used, 0, __ATOMIC_RELEASE);
		}
	}
	guise_free_fdmap(proc);
	guise_free_marks(proc);
	/* The same here: from then on the holder may give the place to another process. */
	memset((char *)proc + sizeof(proc->used), 0, sizeof(*proc) - sizeof(proc->used));
	__atomic_store_n(&proc->used, 0, __ATOMIC_RELEASE);
}

static int guise_reaper(void *unused)
{
	unsigned int i;

	for (;;) {
		wait_event(reap_wait, reap_wanted);
		reap_wanted = false;
		for (i = 1; i < GUISE_MAX_PROCS; i++)
			if (guise_region.procs[i].used && guise_region.procs[i].dead)
				guise_bury(i);
	}
	return 0;
}

void __noreturn guise_init_loop(void)
{
	if (IS_ERR(kthread_run(guise_reaper, NULL, "guise_reaper")))
		panic("guise: no memory for the reaper");
	guise_region.running = 1;
	for (;;) {
		wait_event_interruptible(init_wait, attach_head);
		flush_signals(current);
		while (attach_head) {
			struct guise_slot *slot = &guise_slots[attach_head];

			attach_head = slot->attach_next;
			guise_make_leader(slot);
		}
	}
}
