// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whose a thread is: its users and groups, and what it may do on the host.
 *
 * The stack knows users by the numbers that they have in the holder's user namespace. A
 * thread in another one (unshare -U, a sandbox) does not know its own there, and does not
 * say: it stays in the stack what its process was when it joined, which the host's kernel
 * told the holder, or what its parent was. Its capabilities are of no use outside that
 * namespace, and so it has none.
 *
 * A servant is in the stack what its program is on the host, as the holder has written into its
 * place: when the servant began, and whenever it asks (GUISE_ASK_IDENTITY).
 *
 * Nobody checks what a thread says: whoever can make a call into the stack can write all of
 * the stack's memory, and so be there whom it likes. This is a right over the stack alone.
 */
#include "region/identity.h"

#include "guise/layout.h"
#include "host/sys.h"
#include "region/confined.h"
#include "region/rights.h"
#include "region/stack.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/stat.h>

uint64_t guise_user_namespace(void)
{
	struct stat st;

	if (guise_confined.on)
		return guise_confined.user_namespace;
	return host_sys(SYS_newfstatat, AT_FDCWD, "/proc/self/ns/user", &st, 0) ? 0 : st.st_ino;
}

static uint64_t pair(uint32_t first, uint32_t second)
{
	return (uint64_t)second << 32 | first;
}

/* Two pairs: of users, or of groups. */
static void ids(uint64_t arg[2], long get, long set_for_files)
{
	uint32_t real = 0, effective = 0, saved = 0;

	host_sys(get, &real, &effective, &saved);
	arg[0] = pair(real, effective);
	/* Asked to set none, it says which it is. */
	arg[1] = pair(saved, (uint32_t)host_sys(set_for_files, -1));
}

static uint64_t capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };

	if (host_sys(SYS_capget, &header, data))
		return 0;
	return pair(data[0].effective, data[1].effective);
}

/* To look costs more than all else here. A process seldom goes to another one, and where
 * no right depends on it that is noticed when its users change, or at its next program. */
static bool is_foreign(struct guise_stack *s, bool look)
{
	uint64_t holders = s->region->user_namespace, own;

	if (s->users == GUISE_USERS_UNKNOWN || look) {
		own = guise_user_namespace();
		s->users = own && holders && own != holders ? GUISE_USERS_FOREIGN
							    : GUISE_USERS_HOLDERS;
	}
	return s->users == GUISE_USERS_FOREIGN;
}

void guise_identity_of(const struct guise_rights *r, bool here, bool as_host, uint64_t arg[6])
{
	arg[0] = pair(r->user[0], r->user[1]);
	arg[1] = pair(r->user[2], r->user[3]);
	arg[2] = pair(r->group[0], r->group[1]);
	arg[3] = pair(r->group[2], r->group[3]);
	arg[4] = as_host && here ? r->effective : 0;
	arg[5] = GUISE_IDENTITY_IDS | (as_host ? GUISE_IDENTITY_CAPABILITIES : 0);
}

void guise_identity_changed(struct guise_stack *s, bool all)
{
	uint64_t id[6];

	s->users = GUISE_USERS_UNKNOWN;
	guise_identity(s, id);
	if (id[5])
		guise_call(s, GUISE_NR_IDENTIFY, (long)id[0], (long)id[1], (long)id[2], (long)id[3],
			   (long)id[4], (long)(id[5] | (all ? GUISE_IDENTITY_ALL : 0)));
}

void guise_identity(struct guise_stack *s, uint64_t arg[6])
{
	bool as_host = s->region->privileges == GUISE_PRIVILEGES_HOST;

	memset(arg, 0, 6 * sizeof(*arg));
	if (s->serves) {
		memcpy(arg, guise_own_place(s)->identity, 6 * sizeof(*arg));
		return;
	}
	arg[5] = as_host ? GUISE_IDENTITY_CAPABILITIES : 0;
	if (is_foreign(s, as_host))
		return;
	ids(arg, SYS_getresuid, SYS_setfsuid);
	ids(arg + 2, SYS_getresgid, SYS_setfsgid);
	arg[4] = as_host ? capabilities() : 0;
	arg[5] |= GUISE_IDENTITY_IDS;
}
