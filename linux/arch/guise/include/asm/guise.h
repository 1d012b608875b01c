/* SPDX-License-Identifier: GPL-2.0-only */
/* What several files of the port use. */
#ifndef _ASM_GUISE_GUISE_H
#define _ASM_GUISE_GUISE_H

#include <guise/layout.h>
#include <linux/compiler.h>
#include <linux/stddef.h>
#include <linux/types.h>

struct task_struct;
struct pt_regs;

/* kernel/vmlinux.lds.S places them at the offsets of guise/layout.h. */
extern struct guise_host_ops guise_host;
extern struct guise_region guise_region;
extern struct guise_slot guise_slots[];

static inline struct guise_slot *guise_carrier(void)
{
	return &guise_slots[READ_ONCE(guise_region.vcpu->carrier)];
}

/* isa_*.S: calls a host service; see there. */
u64 guise_host_call(struct guise_host_ops *ops, u64 a, u64 b, u64 c, u64 at, u64 *redo);
#define guise_host_do(service, a, b, c)                                                 \
	guise_host_call(&guise_host, a, b, c, offsetof(struct guise_host_ops, service), \
			&guise_region.vcpu->redo)

/* isa_*.S: from a host thread into a kernel context, and back. */
void guise_enter(u64 *save, u64 load, u32 *entered);
void guise_leave(u64 *save, u64 *load, u32 *entered);
/* isa_*.S: saves the running context's stack pointer in *save, continues the one at load. */
void guise_switch(u64 *save, u64 load);
/* Writes the first frame of a new context at the top of a stack: the context begins with
 * entry(). Returns its stack pointer. */
unsigned long guise_first_frame(unsigned long top, void (*entry)(void));

/* task.c */
void guise_park(void);
void guise_wake_slot(struct guise_slot *slot);
void guise_kick(struct guise_slot *slot);

/* interrupt.c: does the pending work, and makes the carrier's shadow task runnable. */
void guise_take_work(void);

/* shadow.c */
struct guise_leader;
struct guise_leader *guise_leader_new(void);
int guise_leader_start(unsigned int index, struct guise_leader *leader, struct guise_slot *slot,
		       u64 flags);
void guise_leader_keeps(struct guise_leader *leader, unsigned long *keep, unsigned int bits);
bool guise_place_taken(unsigned int index);
void guise_attach_request(struct guise_slot *slot);
void guise_reap_request(void);
void __noreturn guise_init_loop(void);

/* identity.c */
void guise_identify_process(unsigned int index);
int guise_identify(const u64 *arg);
void guise_identify_again(struct guise_slot *slot);

/* syscall.c */
long guise_syscall(u64 nr, const u64 arg[6]);

/* time.c */
void guise_timer_interrupt(void);

/* kernel/heir.c */
long guise_fork(u64 index, u64 marks, u64 n, u64 fd, u64 first);
void guise_heir_close(unsigned long *keep, unsigned int bits);
void guise_free_fdmap(struct guise_proc *proc);
void guise_free_marks(struct guise_proc *proc);

/* kernel/handover.c */
long guise_give(u64 fd, u64 mark);
long guise_take(u64 mark, u64 keep);
long guise_set_inode(u64 fd, u64 number);
long guise_ring(u64 fd, u64 number, u64 piece);
long guise_ring_mapped(u64 fd, u64 change);
bool guise_ring_is_mapped(u64 fd);

/* drivers/net/link.c */
void guise_link_interrupt(u32 rx, u32 tx);
long guise_link_add(unsigned int index);
long guise_link_del(unsigned int index);
long guise_link_carrier(unsigned int index, bool on);

#endif
