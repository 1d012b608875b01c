/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a process may do on the host: its users, groups and capabilities, and how it is confined.
 * A stack's memory is shared by processes that have the same rights; all others are served
 * (served/ring.h).
 *
 * Two processes have the same rights if what /proc/PID/status says of them is the same:
 * users, groups, the capabilities that they have and may get, no_new_privs, seccomp and the number
 * of its filters (Linux 5.9); and if their user namespace is the same, and the label that a
 * security module gave them. One that may take each user and group (CAP_SETUID and CAP_SETGID) has
 * the rights of each, whichever it has taken at the moment.
 *
 * The kernel's own rule of who may trace whom is the model (ptrace(2)): a process that its
 * user's others may not trace, because it is not dumpable, cannot be read here, and is served.
 */
#ifndef GUISE_REGION_RIGHTS_H
#define GUISE_REGION_RIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define GUISE_RIGHTS_BYTES 8192 /* of status; some 600 groups */

struct guise_rights {
	uint32_t user[4], group[4]; /* real, effective, saved, of files */
	uint64_t effective;         /* capabilities */
	bool has_users;
	bool takes_users;   /* it may take each user and group */
	uint64_t namespace; /* of users: the inode */
	char label[256];
	size_t length; /* of what follows: 0 if nothing is known */
	char lines[GUISE_RIGHTS_BYTES];
};

/* False where /proc does not say all of it: then nothing can be compared, but users, groups and
 * effective capabilities may be known (has_users). pid 0: this process. */
bool guise_rights_read(pid_t pid, struct guise_rights *rights);
/* The same from the text of status, the rest being set already. For a test, too. */
bool guise_rights_parse(struct guise_rights *rights, const char *status);
/* Those that this process would have as that user, with those groups. */
bool guise_rights_as(struct guise_rights *rights, uid_t uid, gid_t gid, const gid_t *group,
		     unsigned int groups);
/* Whether a process, whose rights were read, is in this one's user namespace. */
bool guise_rights_here(pid_t pid, const struct guise_rights *rights);
/* False if nothing is known of one of them. */
bool guise_rights_same(const struct guise_rights *a, const struct guise_rights *b);

#endif
