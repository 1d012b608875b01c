// SPDX-License-Identifier: GPL-2.0-only
/*
 * A process that gives up rights gives up the stack's memory with them, before the call that it
 * does so by returns (served/change.c). It goes on served, and so do its children. A served one
 * that takes the rights of the stack's user, as the workers of a server do, becomes a member.
 *
 * A process that maps the region has the rights of the stack's user (region/rights.h). So its own
 * are noted before it first changes something, and compared after each change. One that may take
 * each user and group has given up nothing by taking one. What is only ever given up (no_new_privs,
 * a capability of the bounding set, the user namespace, system calls) is not compared: the call
 * says it.
 *
 * Limits: a child of vfork gives up nothing, because the memory is its parent's; its next program
 * is judged when it joins. Seen are libc's calls, and system calls by number where those are seen
 * (raw/trap.c); a process that gives up rights in another way keeps the region until its next
 * program.
 */
#include "preload/preload.h"

#include "host/locks.h"
#include "host/memory.h"
#include "host/sys.h"
#include "preload/locks.h"
#include "region/stack.h"
#include "served/client.h"

#include <linux/capability.h>
#include <string.h>
#include <sys/single_threaded.h>

struct rights {
	uint32_t user[3], group[3];
	uint64_t permitted, inheritable;
	uint64_t groups;             /* of their numbers */
	uint32_t takes_users, known; /* booleans; no padding, as it is compared as a whole */
};

static struct rights noted;
static bool is_noted;

/* Of all supplementary groups; the host gives them in order. */
static uint64_t sum_of_groups(void)
{
	long n = host_sys(SYS_getgroups, 0, NULL), got = 0;
	uint64_t sum = 14695981039346656037ull; /* FNV-1a */
	uint32_t *group = n > 0 ? guise_pages((size_t)n * sizeof(*group)) : NULL;

	if (group)
		got = host_sys(SYS_getgroups, n, group);
	for (long i = 0; i < got; i++)
		sum = (sum ^ group[i]) * 1099511628211ull;
	if (group)
		guise_pages_free(group, (size_t)n * sizeof(*group));
	return sum ^ (uint64_t)n;
}

static void read_rights(struct rights *r)
{
	const uint64_t takes = 1ull << CAP_SETUID | 1ull << CAP_SETGID;
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };

	memset(r, 0, sizeof(*r));
	r->known = !host_sys(SYS_capget, &header, data);
	r->permitted = (uint64_t)data[1].permitted << 32 | data[0].permitted;
	r->inheritable = (uint64_t)data[1].inheritable << 32 | data[0].inheritable;
	r->takes_users = (r->permitted & takes) == takes;
	if (r->takes_users)
		return;
	host_sys(SYS_getresuid, &r->user[0], &r->user[1], &r->user[2]);
	host_sys(SYS_getresgid, &r->group[0], &r->group[1], &r->group[2]);
	r->groups = sum_of_groups();
}

static bool maps_region(void)
{
	return preload.stack && !preload.stack->served;
}

void preload_rights_note(void)
{
	if (is_noted || !maps_region() || preload_borrowed())
		return;
	guise_own_lock(PRELOAD_LOCK_BEGIN);
	if (!is_noted)
		read_rights(&noted);
	__atomic_store_n(&is_noted, true, __ATOMIC_RELEASE);
	guise_own_unlock(PRELOAD_LOCK_BEGIN);
}

void preload_rights_compare(void)
{
	struct rights now;

	if (!maps_region() || preload_borrowed())
		return;
	read_rights(&now);
	if (!is_noted || !now.known || memcmp(&now, &noted, sizeof(now)))
		preload_give_up();
}

/*
 * Only a process with one thread, as that of a child: no other one may use what goes; and without
 * rings of packet sockets, which its servant fills. One without
 * sockets need not: its next program is judged when it joins.
 */
void preload_rise(void)
{
	struct guise_stack *old = preload.stack, *new;

	if (!__libc_single_threaded || preload.sandboxed || preload_has_rings() ||
	    guise_fdmap_next(preload.map, 0) < 0)
		return;
	new = guise_served_rise(old, preload.ticket);
	if (!new)
		return;
	preload.stack = new;
	preload.prepared = false;
	if (preload_prepare()) /* what it needs is there since it joined */
		preload_say("no memory for the table of its sockets");
	guise_stack_free(old);
	preload_own_fds_changed();
}

void preload_give_up(void)
{
	struct guise_stack *s = preload.stack;
	int saved = errno, err;

	if (preload_borrowed())
		return;
	if (maps_region()) {
		preload_prepare(); /* what a process without sockets has no place for yet */
		preload_rings_stay();
		err = guise_give_up(s, preload.ticket, preload.prepared ? preload.stack_nudge : -1);
		if (!guise_own_place(s)->fdmap)
			preload.map = &preload_nothing;
		preload_own_fds_changed();
		if (err)
			preload_say("it has given up rights, and with them its network stack, "
				    "which has no servant for it: %s",
				    guise_error());
	}
	errno = saved;
}
