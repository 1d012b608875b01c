// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which programs map the region: those that have the rights of the stack's user.
 *
 * A sender must have had that user when it sent its message, as the host's kernel says, and have
 * all its rights now. So a process cannot gain these for the moment of the look by executing a
 * program that has more rights than its caller (setuid).
 */
#include "holder/carrier/rights.h"

#include "holder/carrier/ask.h"

#include "region/identity.h"
#include "region/rights.h"

#include <unistd.h>

bool rights_of_member(const struct ucred *who)
{
	struct guise_rights rights;
	bool member, here;

	return who->uid == geteuid() && !ask_for_rights(who->pid, &rights, &member, &here) &&
	       member;
}

int rights_identify(pid_t program, bool as_host, uint64_t arg[6])
{
	struct guise_rights rights;
	bool member, here;
	int err = ask_for_rights(program, &rights, &member, &here);

	if (err)
		return err;
	guise_identity_of(&rights, here, as_host, arg);
	return member;
}
