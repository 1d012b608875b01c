// SPDX-License-Identifier: GPL-2.0-only
/*
 * Heirs: the child of a fork, or the next program of a process, after exec.
 *
 * Before the host makes it, the process that forks or executes requests a leader from
 * the port, in a place that the holder gave (lib/region/heir.h). The leader is a copy of
 * the calling task, as fork(2) makes one: files, namespaces, credentials, limits. Of the
 * files it keeps those that the heir can know:
 *
 *	after fork	those in the table of descriptors, which is copied at the same
 *			time. So a socket that another thread of the parent is just
 *			making or closing is neither in that copy nor kept
 *	after exec	those that are marked: the sockets that are not close-on-exec
 *
 * The leader closes the others itself, before it makes its first thread.
 */
#include <linux/bitmap.h>
#include <linux/fdtable.h>
#include <linux/file.h>
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/task_work.h>

#include <asm/guise.h>

/* Frees a process's table of descriptors, for which its programs took memory by
 * GUISE_NR_ALLOC: two pages of pointers to chunks (lib/region/fdmap.h). */
void guise_free_fdmap(struct guise_proc *proc)
{
	u64 *chunk = (u64 *)proc->fdmap;
	unsigned int i;

	if (!chunk || !virt_addr_valid(chunk))
		return;
	for (i = 0; i < GUISE_FDMAP_CHUNK; i++)
		if (chunk[i] && virt_addr_valid(chunk[i]))
			free_pages_exact((void *)chunk[i], sizeof(struct guise_fdmap_chunk));
	free_pages_exact(chunk, sizeof(struct guise_fdmap));
	proc->fdmap = 0;
}

void guise_free_marks(struct guise_proc *proc)
{
	if (proc->marks && virt_addr_valid(proc->marks))
		free_pages_exact((void *)proc->marks, proc->marks_n * sizeof(struct guise_mark));
	proc->marks = 0;
}

static void keep_entry(unsigned long *keep, unsigned int bits, u32 entry)
{
	if (entry & (GUISE_FD_PRIVATE | GUISE_FD_HALF) && (entry & GUISE_FD_STACK) < bits)
		__set_bit(entry & GUISE_FD_STACK, keep);
}

static int copy_fdmap(struct guise_proc *to, const struct guise_proc *from, unsigned long *keep,
		      unsigned int bits)
{
	u64 *old = (u64 *)from->fdmap, *new;
	unsigned int i, k;

	if (!old || !virt_addr_valid(old))
		return -EINVAL;
	new = alloc_pages_exact(sizeof(struct guise_fdmap), GFP_KERNEL | __GFP_ZERO | __GFP_NOWARN);
	if (!new)
		return -ENOMEM;
	to->fdmap = (u64)new;
	for (i = 0; i < GUISE_FDMAP_CHUNK; i++) {
		struct guise_fdmap_chunk *chunk;

		if (!old[i] || !virt_addr_valid(old[i]))
			continue;
		chunk = alloc_pages_exact(sizeof(*chunk), GFP_KERNEL | __GFP_NOWARN);
		if (!chunk) {
			guise_free_fdmap(to);
			return -ENOMEM;
		}
		memcpy(chunk, (void *)old[i], sizeof(*chunk));
		new[i] = (u64)chunk;
		for (k = 0; k < GUISE_FDMAP_CHUNK; k++)
			keep_entry(keep, bits, chunk->entry[k]);
	}
	return 0;
}

/* An empty table with room for the numbers that are marked. It is made here, so that no lack of
 * memory can keep the next program from its sockets. */
static int make_fdmap(struct guise_proc *to, const struct guise_mark *mark, u64 n)
{
	u64 *new = alloc_pages_exact(sizeof(struct guise_fdmap),
				     GFP_KERNEL | __GFP_ZERO | __GFP_NOWARN);

	if (!new)
		return -ENOMEM;
	to->fdmap = (u64)new;
	for (; n--; mark++) {
		u32 i = mark->number / GUISE_FDMAP_CHUNK;

		if (i >= GUISE_FDMAP_CHUNK || new[i])
			continue;
		new[i] = (u64)alloc_pages_exact(sizeof(struct guise_fdmap_chunk),
						GFP_KERNEL | __GFP_ZERO | __GFP_NOWARN);
		if (!new[i]) {
			guise_free_fdmap(to);
			return -ENOMEM;
		}
	}
	return 0;
}

static void keep_marked(unsigned long *keep, unsigned int bits, const struct guise_mark *mark,
			u64 n)
{
	while (n--)
		keep_entry(keep, bits, mark++->entry);
}

/* How many descriptors the task's table has room for. */
static unsigned int table_size(void)
{
	unsigned int n;

	rcu_read_lock();
	n = files_fdtable(current->files)->max_fds;
	rcu_read_unlock();
	return n;
}

/* In the leader: closes all descriptors that are not in keep. */
void guise_heir_close(unsigned long *keep, unsigned int bits)
{
	unsigned int fd;

	for_each_clear_bit(fd, keep, bits)
		close_fd(fd);
	/* The parent's table may have grown after its size was taken. */
	for (fd = bits; fd < table_size(); fd++)
		close_fd(fd);
	/* The last part of closing a file is done when a task returns to its program. The leader
	 * never does. */
	task_work_run();
}

/*
 * Makes a leader in place `index`, as a copy of the caller. For a fork (n is 0) it keeps fd,
 * one more descriptor; for an exec there are n marks. Their memory is of GUISE_NR_ALLOC, and
 * belongs to the place from then on. `first` is the slot of its first thread, whose task is
 * made as well. So the caller gets an error if there is no room for either, and an heir that
 * has a place does not fail for lack of room.
 */
long guise_fork(u64 index, u64 marks, u64 n, u64 fd, u64 first)
{
	struct guise_slot *slot = current->thread.slot;
	struct guise_leader *leader;
	struct guise_proc *to;
	unsigned long *keep;
	unsigned int bits;
	int err = 0;

	if (!slot || index >= GUISE_MAX_PROCS || !guise_region.procs[index].used ||
	    guise_place_taken(index) || (n && !virt_addr_valid(marks)) || !first ||
	    first >= GUISE_MAX_SLOTS || guise_slots[first].used != index + 1)
		return -EINVAL;
	to = &guise_region.procs[index];
	bits = table_size();
	keep = bitmap_zalloc(bits, GFP_KERNEL);
	leader = guise_leader_new();
	if (!keep || !leader) {
		bitmap_free(keep);
		kfree(leader);
		return -ENOMEM;
	}
	guise_leader_keeps(leader, keep, bits);
	if (fd < bits)
		__set_bit(fd, keep);
	if (n)
		err = make_fdmap(to, (struct guise_mark *)marks, n);
	else
		err = copy_fdmap(to, &guise_region.procs[slot->proc], keep, bits);
	if (err) {
		bitmap_free(keep);
		kfree(leader);
		return err;
	}
	if (n)
		keep_marked(keep, bits, (struct guise_mark *)marks, n);
	/* A sibling of the caller, not a child: the host alone tells a parent of its children. */
	err = guise_leader_start(index, leader, &guise_slots[first], CLONE_PARENT);
	if (err) {
		guise_free_fdmap(to);
		return err;
	}
	to->first_slot = first;
	if (n) {
		to->marks = marks;
		to->marks_n = n;
	}
	return 0;
}
