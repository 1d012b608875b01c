/* SPDX-License-Identifier: GPL-2.0-only */
/* The line of proof that a stack leaves behind. */
#ifndef GUISE_HOLDER_SUMMARY_H
#define GUISE_HOLDER_SUMMARY_H

#include "region/serve.h"

#include <stdint.h>

/* Counter field of table in the text of /proc/net/snmp or netstat ("Tcp",
 * "RetransSegs"); 0 if it is not there. */
uint64_t summary_counter(const char *text, const char *table, const char *field);

/* The JSON object, without a newline, to be freed; NULL: out of memory. The stack must still be
 * there. cut: it was taken from programs that were on it; guests: programs had a namespace; left:
 * enum isolation_left. */
char *summary(const struct guise_server *v, bool cut, bool guests, unsigned int left);

#endif
