// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which private sockets pass to the next program, and how it finds them. It gets those whose
 * placeholders it gets. When there are any, a place with copies of them is made before the host's
 * exec (region/heir.h); the right to it is a descriptor that GUISE_PLACE names, with its inode.
 * This program's own place is buried when its channel hangs up, as at any end. When exec fails
 * the new place is dropped, and nothing else has changed.
 *
 * Sockets that pass are marked by the placeholder's inode, not by number: the new program
 * looks through its descriptors and finds them even where numbers were changed unseen. That
 * happens in the child of a vfork, whose hooks must not change the table that it shares
 * with its parent; in the file actions of posix_spawn, which libc carries out inside; and
 * in a program without guise that was executed between the two.
 *
 * Which sockets pass is known before exec, except for posix_spawn: there every socket is
 * marked that is not close-on-exec, or that a file action has named (GUISE_FD_SPAWN). The
 * new program closes the marked ones that it does not find; if guise is not part of the
 * program, they stay open until it ends.
 *
 * An epoll has no inode of its own. It is found by its number, if that has not been
 * given to another descriptor.
 */
#include "preload/process/exec.h"

#include "host/sys.h"
#include "region/stack.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>

static bool passes(int fd)
{
	long flags = host_sys(SYS_fcntl, fd, F_GETFD);

	return flags >= 0 && !(flags & FD_CLOEXEC);
}

/* Where /proc is not there, by trying. */
static void each_descriptor(void (*one)(int fd, void *data), void *data)
{
	struct rlimit most = { 1024, 1024 };

	if (preload_each_descriptor(one, data))
		return;
	host_sys(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, &most);
	for (int fd = 0; fd < (int)most.rlim_cur && fd < GUISE_FDMAP_MAX; fd++)
		if (!preload_own_fd(fd))
			one(fd, data);
}

/* Marks that are being gathered. While mark is NULL they are only counted. */
struct marks {
	struct guise_mark *mark;
	unsigned int n, room;
	bool spawn, borrowed;
};

/* Each descriptor of the stack once: in a vfork child several numbers may lead to it. */
static void mark(struct marks *m, uint32_t inode, int number, uint32_t entry)
{
	for (unsigned int i = 0; m->borrowed && m->mark && i < m->n; i++)
		if ((m->mark[i].entry & GUISE_FD_STACK) == (entry & GUISE_FD_STACK))
			return;
	if (m->mark && m->n < m->room)
		m->mark[m->n] = (struct guise_mark){ inode, (uint32_t)number, entry, 0 };
	m->n++;
}

static void mark_own(struct marks *m)
{
	int fd = -1;

	while ((fd = guise_fdmap_next(preload.map, fd + 1)) >= 0) {
		uint32_t entry = guise_fdmap_get(preload.map, fd);

		if (!(entry & (GUISE_FD_PRIVATE | GUISE_FD_HALF)) ||
		    !(passes(fd) || (m->spawn && entry & GUISE_FD_SPAWN)))
			continue;
		preload_mark_shared(fd);
		mark(m, entry & GUISE_FD_PRIVATE ? guise_fdmap_inode(preload.map, fd) : 0, fd,
		     entry);
	}
}

/* In the child of a vfork the numbers are its own, and the table its parent's. */
static void mark_borrowed(int number, void *data)
{
	struct marks *m = data;
	uint32_t inode = passes(number) ? preload_inode(number) : 0;
	int fd = -1;

	if (!inode)
		return;
	while ((fd = guise_fdmap_next(preload.map, fd + 1)) >= 0)
		if (guise_fdmap_inode(preload.map, fd) == inode &&
		    guise_fdmap_get(preload.map, fd) & GUISE_FD_PRIVATE) {
			preload_mark_shared(fd);
			mark(m, inode, number, guise_fdmap_get(preload.map, fd));
			return;
		}
}

static unsigned int gather(struct marks *m)
{
	m->n = 0;
	if (guise_fdmap_next(preload.map, 0) < 0)
		return 0;
	m->borrowed = preload_borrowed();
	if (m->borrowed)
		each_descriptor(mark_borrowed, m);
	else
		mark_own(m);
	return m->n;
}

/* Memory of the stack for marks. Waits a while for memory that dead members still hold. */
static long memory_for(unsigned int n)
{
	const struct timespec moment = { .tv_nsec = 2000000 };
	long memory;

	for (int times = 0; times < 1500; times++) {
		memory = guise_call(preload.stack, GUISE_NR_ALLOC,
				    (long)(n * sizeof(struct guise_mark)), 0, 0, 0, 0, 0);
		if (memory != -ENOMEM)
			break;
		host_sys(SYS_nanosleep, &moment, NULL);
	}
	return memory;
}

int exec_prepare(struct guise_heir *heir, char *const *env, bool spawn)
{
	struct marks m = { .spawn = spawn };
	unsigned int n;
	long memory;
	int err;

	heir->end = -1;
	n = preload.stack && !exec_switched_off(env) ? gather(&m) : 0;
	if (!n)
		return 0;
	memory = memory_for(n);
	if ((unsigned long)memory > -4096UL) {
		err = guise_fail((int)-memory, "the stack is full");
	} else {
		m.mark = (void *)memory;
		m.room = n;
		/* Fewer may be left this time; a mark that is all zero means nothing. */
		gather(&m);
		err = guise_heir_prepare(preload.stack, preload.ticket, heir, m.mark, n, -1);
		if (err)
			guise_call(preload.stack, GUISE_NR_FREE, memory,
				   (long)(n * sizeof(*m.mark)), 0, 0, 0, 0);
	}
	if (guise_heir_error(err))
		return guise_heir_error(err);
	if (err)
		preload_say("a program that it starts goes without this one's sockets: %s",
			    guise_error());
	return 0;
}

/* ---- the new program ---------------------------------------------------------- */

static void find_socket(int fd, void *data)
{
	struct marks *m = data;
	uint32_t inode = preload_inode(fd);
	struct guise_mark *first = NULL;
	long sfd;

	if (!inode)
		return;
	for (unsigned int i = 0; i < m->n; i++)
		if (m->mark[i].inode == inode && (!first || !m->mark[i].found)) {
			first = &m->mark[i];
			if (!first->found)
				break;
		}
	if (!first)
		return;
	sfd = first->entry & GUISE_FD_STACK;
	if (first->found) /* one more number for it */
		sfd = guise_call(preload.stack, GUISE_NR_dup, sfd, 0, 0, 0, 0, 0);
	first->found = 1;
	if (sfd >= 0)
		preload_install(fd, (int)sfd,
				GUISE_FD_PRIVATE | GUISE_FD_SHARED |
					(first->entry & GUISE_FD_FILE));
}

static void find_epoll(struct guise_mark *mark)
{
	int fd = (int)mark->number;
	const uint32_t flags = GUISE_FD_EPOLL | GUISE_FD_HALF | GUISE_FD_HOSTED | GUISE_FD_NESTED |
			       GUISE_FD_STACK;

	if (host_sys(SYS_epoll_ctl, fd, EPOLL_CTL_DEL, preload.placeholder, 0) != -ENOENT)
		return;
	mark->found = !preload_map_set(fd, mark->entry & flags, 0);
}

void preload_inherit(void)
{
	struct guise_stack *s = preload.stack;
	struct guise_proc *proc = guise_own_place(s);
	struct marks m = { .mark = (void *)(uintptr_t)proc->marks, .n = proc->marks_n };

	if (!m.mark || preload_prepare())
		return;
	each_descriptor(find_socket, &m);
	for (unsigned int i = 0; i < m.n; i++) {
		if (!m.mark[i].inode && m.mark[i].entry)
			find_epoll(&m.mark[i]);
		if (!m.mark[i].found && m.mark[i].entry)
			guise_call(s, GUISE_NR_close, m.mark[i].entry & GUISE_FD_STACK, 0, 0, 0, 0,
				   0);
	}
	proc->marks = 0;
	guise_call(s, GUISE_NR_FREE, (long)m.mark, (long)(m.n * sizeof(*m.mark)), 0, 0, 0, 0);
}
