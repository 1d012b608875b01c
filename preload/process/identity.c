// SPDX-License-Identifier: GPL-2.0-only
/*
 * Changes of users, groups and capabilities. They are the host's; afterwards the stack
 * hears of them (lib/region/identity.c), so that the sockets made from then on are those of
 * the new user. A program that has made no call into the stack yet has nothing to tell; for a
 * served one its servant looks, as nobody believes the program. To enter a user namespace
 * (namespace.c) changes all of them, too. Who gives up rights by it gives up the region: rights.c.
 *
 * libc changes all threads of a process, a system call by number the one that makes it.
 */
#include "preload/preload.h"

#include "guise/layout.h"
#include "preload/raw/number.h"
#include "region/identity.h"
#include "region/stack.h"

#include <grp.h>

void preload_identity_changed(bool all)
{
	int saved = errno;

	if (!preload.stack || preload_borrowed())
		return;
	if (preload.stack->served) {
		if (guise_call(preload.stack, GUISE_NR_IDENTIFY, 0, 0, 0, 0, 0, 0) > 0)
			preload_rise();
		errno = saved;
		return;
	}
	if (!guise_own_place(preload.stack)->leader)
		return;
	guise_identity_changed(preload.stack, all);
	errno = saved;
}

/* After a change; before it the rights were noted. */
static void changed(bool all)
{
	preload_rights_compare();
	preload_identity_changed(all);
}

static int changed_unless(int error)
{
	if (!error)
		changed(true);
	return error;
}

HOOK int setuid(uid_t id)
{
	preload_rights_note();
	return changed_unless(HOST(setuid)(id));
}

HOOK int seteuid(uid_t id)
{
	preload_rights_note();
	return changed_unless(HOST(seteuid)(id));
}

HOOK int setreuid(uid_t real, uid_t effective)
{
	preload_rights_note();
	return changed_unless(HOST(setreuid)(real, effective));
}

HOOK int setresuid(uid_t real, uid_t effective, uid_t saved)
{
	preload_rights_note();
	return changed_unless(HOST(setresuid)(real, effective, saved));
}

HOOK int setgid(gid_t id)
{
	preload_rights_note();
	return changed_unless(HOST(setgid)(id));
}

HOOK int setegid(gid_t id)
{
	preload_rights_note();
	return changed_unless(HOST(setegid)(id));
}

HOOK int setregid(gid_t real, gid_t effective)
{
	preload_rights_note();
	return changed_unless(HOST(setregid)(real, effective));
}

HOOK int setresgid(gid_t real, gid_t effective, gid_t saved)
{
	preload_rights_note();
	return changed_unless(HOST(setresgid)(real, effective, saved));
}

HOOK int setgroups(size_t n, const gid_t *groups)
{
	preload_rights_note();
	return changed_unless(HOST(setgroups)(n, groups));
}

HOOK int initgroups(const char *user, gid_t group)
{
	preload_rights_note();
	return changed_unless(HOST(initgroups)(user, group));
}

/* These tell what it was, and not whether it changed. */
HOOK int setfsuid(uid_t id)
{
	int before;

	preload_rights_note();
	before = HOST(setfsuid)(id);
	changed(false);
	return before;
}

HOOK int setfsgid(gid_t id)
{
	int before;

	preload_rights_note();
	before = HOST(setfsgid)(id);
	changed(false);
	return before;
}

HOOK int capset(void *header, const void *data)
{
	int error;

	preload_rights_note();
	error = HOST(capset)(header, data);
	if (!error)
		changed(false);
	return error;
}

/* ---- by number -------------------------------------------------------------------- */

static long changed_by_number(long nr, const struct preload_arguments *x)
{
	long ret;

	preload_rights_note();
	ret = number_on_host(nr, x);
	if (ret >= 0)
		changed(false);
	return ret;
}

#define BY_NUMBER(name)                                       \
	long number_##name(const struct preload_arguments *x) \
	{                                                     \
		return changed_by_number(SYS_##name, x);      \
	}

BY_NUMBER(setuid)
BY_NUMBER(setreuid)
BY_NUMBER(setresuid)
BY_NUMBER(setfsuid)
BY_NUMBER(setgid)
BY_NUMBER(setregid)
BY_NUMBER(setresgid)
BY_NUMBER(setgroups)
BY_NUMBER(setfsgid)
BY_NUMBER(capset)
