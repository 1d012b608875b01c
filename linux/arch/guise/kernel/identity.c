// SPDX-License-Identifier: GPL-2.0-only
/*
 * The users, groups and capabilities of shadow tasks.
 *
 * The ids of users and groups are the host's, as the holder sees them. A process begins
 * with those that the host's kernel told the holder when it joined (guise_proc). Each of
 * its threads reports its own when it gets its task, and when they change. A thread in
 * another user namespace than the holder does not know the numbers that the holder sees: it
 * reports none, and keeps those that it was made with. The ids are stored in its sockets,
 * where they decide which sockets may share a port, what ss -e shows, and what rules and
 * filters by user match.
 *
 * Capabilities do not depend on the ids. A task has all of them over the stack, or, where
 * the stack is configured so, those that its thread has on the host. The first process, the
 * holder, sets the stack up and always has all.
 *
 * libc changes the ids of all threads of a process at once, and one thread reports it. Each
 * of the others adopts the change before its next call, because only a task itself may
 * change its credentials.
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

/* What was reported last for all threads of a process. */
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

/* Gives the calling task these ids and capabilities. Its process is the one at index. */
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
	/* Mostly nothing changes: then there is no need for new credentials. */
	if (!memcmp(&new->uid, &old->uid,
		    offsetof(struct cred, cap_bset) - offsetof(struct cred, uid)))
		abort_creds(new);
	else
		commit_creds(new);
	return 0;
}

/* In a leader that is no copy of another process's task. */
void guise_identify_process(unsigned int index)
{
	const struct guise_proc *proc = &guise_region.procs[index];
	u64 uid = (u64)proc->uid << 32 | proc->uid, gid = (u64)proc->gid << 32 | proc->gid;
	const u64 id[] = {
		uid, uid, gid, gid, 0, GUISE_IDENTITY_IDS | GUISE_IDENTITY_CAPABILITIES
	};

	/* It does not matter if there is no memory: its threads report it again. */
	take(index, id);
}

/* GUISE_NR_IDENTIFY, in a shadow task. */
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

/* Adopts what another thread of the process has reported. Tries again at the next call if there
 * is no memory. */
void guise_identify_again(struct guise_slot *slot)
{
	slot->renew = take(slot->proc, identities[slot->proc]) != 0;
}
