// SPDX-License-Identifier: GPL-2.0-only
/*
 * Interrupts: work that the host side has for the kernel.
 *
 * Bits in region->vcpu->irq_pending say that the time of the next event has come, that
 * links have frames or room for frames, or that a process died. The kernel does this
 * work in guise_take_work(), which the idle task calls when it is continued, and a
 * shadow task that is continued by a carrier other than its own thread. A running
 * context is never interrupted.
 */
#include <linux/hardirq.h>
#include <linux/interrupt.h>
#include <linux/irq.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>

#include <asm/guise.h>
#include <asm/irq_regs.h>

void __init init_IRQ(void)
{
}

static void guise_interrupt(u32 pending)
{
	struct pt_regs *old = set_irq_regs(&guise_no_regs);
	u32 rx = 0, tx = 0;

	if (pending & GUISE_IRQ_RX)
		rx = __atomic_exchange_n(&guise_region.vcpu->rx_pending, 0, __ATOMIC_ACQ_REL);
	if (pending & GUISE_IRQ_TX)
		tx = __atomic_exchange_n(&guise_region.vcpu->tx_pending, 0, __ATOMIC_ACQ_REL);
	irq_enter();
	if (pending & GUISE_IRQ_TIMER)
		guise_timer_interrupt();
	if (rx | tx)
		guise_link_interrupt(rx, tx);
	if (pending & GUISE_IRQ_REAP)
		guise_reap_request();
	irq_exit();
	set_irq_regs(old);
}

void guise_take_work(void)
{
	struct guise_slot *slot = guise_carrier();
	struct task_struct *task = (struct task_struct *)slot->task;
	unsigned long flags;

	if (READ_ONCE(guise_region.vcpu->irq_pending)) {
		local_irq_save(flags);
		guise_interrupt(
			__atomic_exchange_n(&guise_region.vcpu->irq_pending, 0, __ATOMIC_ACQ_REL));
		local_irq_restore(flags);
	}
	if (!task) {
		if (slot->run)
			guise_attach_request(slot);
		return;
	}
	if (slot->interrupt) {
		/* A signal of the host, or a ready descriptor of the host, ends its call. */
		slot->interrupt = 0;
		set_tsk_thread_flag(task, TIF_NOTIFY_SIGNAL);
		wake_up_state(task, TASK_INTERRUPTIBLE);
	}
	if (slot->kicked || slot->run) {
		slot->kicked = 0;
		wake_up_process(task);
	}
}
