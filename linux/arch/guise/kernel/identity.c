// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whose a task is, and what it may do.
 *
 * The ids of users and groups are the host's, as the holder sees them. A process begins
 * with those that the host's kernel told the holder when it joined (guise_proc). Each of
 * its threads says its own when it comes, and when they change; one that does not know
 * them as the holder does (it is in another user namespace) says nothing, and keeps what it
 * was made with. They stand in its sockets: who may share a port, ss -e, rules and filters
 * by user.
 *
 * What a task may do is another question. It has all capabilities over the stack, whoever
 * it is, or, where the stack is so configured, those that its thread has on the host. The
 * first process, the holder, sets the stack up and always has all.
 *
 * libc changes all threads of a process at once. So the others have to follow; each does
 * so before its next call, as nobody else may change a task's credentials.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/highuid.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/uidgid.h>

#include <asm/guise.h>
#include <asm/series.h>

#define HOLDER 1 /* its place in region->procs */

/* What was said last for all threads of a process. */
static u64 identities[GUISE_MAX_PROCS][6];

static kuid_t user(u32 id)
{
	return id == (u32)-1 ? KUIDT_INIT(overflowuid) : KUIDT_INIT(id);
}

static kgid_t group(u32 id)
{
	return id == (u32)-1 ? KGIDT_INIT(overflowgid) : KGIDT_INIT(id);
}

static bool has_all(unsigned int index)
{
	return guise_region.privileges != GUISE_PRIVILEGES_HOST || index == HOLDER;
}

/* Gives the calling task the ids, and capabilities, of a thread of that process. */
static int take(unsigned int index, const u64 *id)
{
	const struct cred *old = current_cred();
	struct cred *new = prepare_creds();

	if (!new)
		return -ENOMEM;
	if (id[5] & GUISE_IDENTITY_IDS) {
		new->uid = user(id[0]);
		new->euid = user(id[0] >> 32);
		new->suid = user(id[1]);
		new->fsuid = user(id[1] >> 32);
		new->gid = group(id[2]);
		new->egid = group(id[2] >> 32);
		new->sgid = group(id[3]);
		new->fsgid = group(id[3] >> 32);
	}
	if (has_all(index))
		new->cap_effective = CAP_FULL_SET;
	else if (id[5] & GUISE_IDENTITY_CAPABILITIES)
		new->cap_effective = guise_capabilities(id[4]);
	new->cap_permitted = new->cap_effective;
	/* A thread is mostly what its process is. */
	if (!memcmp(&new->uid, &old->uid,
		    offsetof(struct cred, cap_bset) - offsetof(struct cred, uid)))
		abort_creds(new);
	else
		commit_creds(new);
	return 0;
}

/* In a leader that comes from no other process. */
void guise_identify_process(unsigned int index)
{
	const struct guise_proc *proc = &guise_region.procs[index];
	u64 uid = (u64)proc->uid << 32 | proc->uid, gid = (u64)proc->gid << 32 | proc->gid;
	const u64 id[] = {
		uid, uid, gid, gid, 0, GUISE_IDENTITY_IDS | GUISE_IDENTITY_CAPABILITIES
	};

	/* Should there be no memory, its threads say it again. */
	take(index, id);
}

/* In the task of a thread. */
int guise_identify(const u64 *arg)
{
	struct guise_slot *self = current->thread.slot;
	unsigned int i, end;

	if (!self || !arg[5])
		return 0;
	if (arg[5] & GUISE_IDENTITY_ALL) {
		memcpy(identities[self->proc], arg, sizeof(identities[0]));
		end = __atomic_load_n(&guise_region.slots_end, __ATOMIC_ACQUIRE);
		for (i = 1; i < end; i++)
			if (guise_slots[i].used == self->used && guise_slots[i].task)
				guise_slots[i].renew = 1;
		self->renew = 0;
	}
	return take(self->proc, arg);
}

/* What another thread has said for this one. Without memory it is tried again. */
void guise_identify_again(struct guise_slot *slot)
{
	slot->renew = take(slot->proc, identities[slot->proc]) != 0;
}
