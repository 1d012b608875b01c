// SPDX-License-Identifier: GPL-2.0-only
/*
 * Changes of users, groups and capabilities. They are the host's; afterwards the stack
 * hears of them (lib/region/identity.c), so that the sockets made from then on are those of
 * the new user. A program that has made no call into the stack yet has nothing to tell.
 * To enter a user namespace (namespace.c) changes all of them, too.
 *
 * libc changes all threads of a process, a system call by number the one that makes it.
 */
#include "preload/preload.h"

#include "guise/layout.h"
#include "preload/raw/number.h"
#include "region/identity.h"
#include "region/stack.h"

void preload_identity_changed(bool all)
{
	uint64_t id[6];
	int saved = errno;

	if (!preload.stack || preload_borrowed() || !guise_own_place(preload.stack)->leader)
		return;
	preload.stack->users = GUISE_USERS_UNKNOWN;
	guise_identity(preload.stack, id);
	if (id[5])
		guise_call(preload.stack, GUISE_NR_IDENTIFY, (long)id[0], (long)id[1], (long)id[2],
			   (long)id[3], (long)id[4],
			   (long)(id[5] | (all ? GUISE_IDENTITY_ALL : 0)));
	errno = saved;
}

static int changed_unless(int error)
{
	if (!error)
		preload_identity_changed(true);
	return error;
}

HOOK int setuid(uid_t id)
{
	return changed_unless(HOST(setuid)(id));
}

HOOK int seteuid(uid_t id)
{
	return changed_unless(HOST(seteuid)(id));
}

HOOK int setreuid(uid_t real, uid_t effective)
{
	return changed_unless(HOST(setreuid)(real, effective));
}

HOOK int setresuid(uid_t real, uid_t effective, uid_t saved)
{
	return changed_unless(HOST(setresuid)(real, effective, saved));
}

HOOK int setgid(gid_t id)
{
	return changed_unless(HOST(setgid)(id));
}

HOOK int setegid(gid_t id)
{
	return changed_unless(HOST(setegid)(id));
}

HOOK int setregid(gid_t real, gid_t effective)
{
	return changed_unless(HOST(setregid)(real, effective));
}

HOOK int setresgid(gid_t real, gid_t effective, gid_t saved)
{
	return changed_unless(HOST(setresgid)(real, effective, saved));
}

/* These tell what it was, and not whether it changed. */
HOOK int setfsuid(uid_t id)
{
	int before = HOST(setfsuid)(id);

	preload_identity_changed(false);
	return before;
}

HOOK int setfsgid(gid_t id)
{
	int before = HOST(setfsgid)(id);

	preload_identity_changed(false);
	return before;
}

HOOK int capset(void *header, const void *data)
{
	int error = HOST(capset)(header, data);

	if (!error)
		preload_identity_changed(false);
	return error;
}

/* ---- by number -------------------------------------------------------------------- */

static long changed_by_number(long nr, const struct preload_arguments *x)
{
	long ret = number_on_host(nr, x);

	if (ret >= 0)
		preload_identity_changed(false);
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
BY_NUMBER(setfsgid)
BY_NUMBER(capset)
