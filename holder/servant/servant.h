/* SPDX-License-Identifier: GPL-2.0-only */
/* Servants: the processes that make the calls of served programs. See servant.c. */
#ifndef HOLDER_SERVANT_SERVANT_H
#define HOLDER_SERVANT_SERVANT_H

#include "holder/isolation.h"

#include "region/serve.h"

#include <stdbool.h>

/* begin.c, in the warden: starts a servant with that user's rights for the process `who`, which
 * waits for an answer on channel. end: of the servant's place. 0, or -errno with the sentence. */
int servant_begin(int channel, pid_t who, int end, const struct isolation_user *user);

/* Whether the command line is a servant's, and its whole life: the exit status. */
bool servant_wanted(int argc, char **argv);
int servant(int argc, char **argv);

#endif
