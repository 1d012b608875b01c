/* SPDX-License-Identifier: GPL-2.0-only */
/* Who is a member, and whose a served program is; the warden looks. See struct guise_server. */
#ifndef GUISE_HOLDER_RIGHTS_H
#define GUISE_HOLDER_RIGHTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

bool rights_of_member(const struct ucred *who);
int rights_identify(pid_t program, bool as_host, uint64_t arg[6]);

#endif
