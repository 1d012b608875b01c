// SPDX-License-Identifier: GPL-2.0-only
/*
 * A process that comes from another one: by fork, or as the next program of the
 * same process, by exec.
 *
 * Before the host makes it, its parent asks the port for a leader in a place
 * that the holder gave (lib/region/heir.h). The leader is a copy of the calling
 * task, as fork(2) makes one: files, namespaces, credentials, limits. Of the
 * files it keeps what the new process can know:
 *
 *	after fork	what stands in the table of descriptors, which is copied
 *			in the same moment: a socket that another thread of the
 *			parent is just making or closing is in none of the two
 *	after exec	what is marked: the sockets that are not close-on-exec
 *
 * The rest is closed by the leader itself, before it makes its first thread.
 */
#include <linux/bitmap.h>
#include <linux/fdtable.h>
#include <linux/file.h>
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/task_work.h>

#include <asm/guise.h>

/* The table of a process's descriptors, which its programs had from GUISE_NR_ALLOC:
 * a page pair of pointers to chunks (lib/region/fdmap.h). */
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

/* An empty table with room for the numbers that are marked: the program may find no memory. */
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

/* In the leader: closes the others. */
void guise_heir_close(unsigned long *keep, unsigned int bits)
{
	unsigned int fd;

	for_each_clear_bit(fd, keep, bits)
		close_fd(fd);
	/* The parent's table may have grown after its size was taken. */
	for (fd = bits; fd < table_size(); fd++)
		close_fd(fd);
	/* It never returns to a program, which is where files are closed in the end. */
	task_work_run();
}

/*
 * A leader in place `index` with what the caller has: after fork fd is one more
 * descriptor that it keeps, after exec n marks (from GUISE_NR_ALLOC, whose owner is
 * then the place). Its first thread is made with it, so that a place once given is one
 * that works: where there is no room for either, the caller hears of it.
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
	/* As brothers: the parent hears of its children from the host alone. */
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
