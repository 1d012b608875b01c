/* SPDX-License-Identifier: GPL-2.0-only */
/* Whether a program of the stack would get what is sent to an address and port. */
#ifndef GUISE_HOLDER_SERVED_H
#define GUISE_HOLDER_SERVED_H

#include "guise/guise.h"

#include <stdbool.h>

bool served(struct guise_stack *s, bool udp, const struct sockaddr_storage *from,
	    const struct sockaddr_storage *to);

#endif
