/* SPDX-License-Identifier: GPL-2.0-only */
/* Text that another user may have written, fit for a terminal. See plain.c. */
#ifndef GUISE_HOST_PLAIN_H
#define GUISE_HOST_PLAIN_H

/* Overwrites each character of a line that a terminal would obey with '?'. */
void guise_plain(char *line);

#endif
