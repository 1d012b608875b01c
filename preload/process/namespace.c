// SPDX-License-Identifier: GPL-2.0-only
/*
 * Network namespaces of the host. A program that enters one does so on the host, as `ip netns add`
 * and `ip netns exec` do, and stays on its stack with each socket: neither is what its user
 * expects, so it is said, once by each program. The host's /dev/net/tun and netlink are not
 * reached from a stack, so this is what is left of the calls that change the host's network.
 * Of user namespaces the stack hears (identity.c). A child that is cloned into new ones enters them
 * as its first act.
 */
#include "preload/preload.h"

#include "host/sys.h"
#include "region/additions.h"
#include "region/stack.h"

#include <linux/nsfs.h>
#include <sched.h>

static bool said;

static void entered(void)
{
	if (preload.ticket < 0 || preload.sandboxed ||
	    __atomic_exchange_n(&said, true, __ATOMIC_RELAXED))
		return;
	preload_say("it is in another network namespace of the host now, but its sockets are still "
		    "those of its stack; what it makes of namespaces (ip netns) changes the host");
}

void preload_entered_namespaces(uint64_t kinds)
{
	if (kinds & CLONE_NEWUSER) {
		preload_give_up();
		preload_identity_changed(true);
	}
	if (kinds & CLONE_NEWNET)
		entered();
}

HOOK int unshare(int flags)
{
	int ret;

	if (flags & CLONE_FILES && preload.stack && !preload_borrowed())
		guise_additions_stay(preload.stack);
	ret = HOST(unshare)(flags);
	if (!ret)
		preload_entered_namespaces((unsigned int)flags);
	return ret;
}

/* Of a pidfd the type says it all; 0 stands for whatever the descriptor is. */
HOOK int setns(int fd, int type)
{
	int ret = HOST(setns)(fd, type);

	if (!ret && !type)
		type = (int)host_sys(SYS_ioctl, fd, NS_GET_NSTYPE);
	if (!ret && type > 0)
		preload_entered_namespaces((unsigned int)type);
	return ret;
}
