/* SPDX-License-Identifier: GPL-2.0-only */
/* IP addresses and prefixes as text. */
#ifndef GUISE_SETUP_PREFIX_H
#define GUISE_SETUP_PREFIX_H

#include <stddef.h>
#include <stdint.h>

struct guise_prefix {
	uint8_t family;   /* AF_INET or AF_INET6 */
	uint8_t len;      /* bits; without "/LEN" all of them */
	uint8_t addr[16]; /* network order; 4 of them for IPv4 */
};

/* "192.0.2.2/24", "2001:db8::2", "default" (AF_INET, length 0); 0, or -EINVAL
 * with a sentence that begins with what. */
int guise_prefix_parse(const char *text, struct guise_prefix *p, const char *what);

/* 4 or 16 */
size_t guise_prefix_bytes(const struct guise_prefix *p);

#endif
