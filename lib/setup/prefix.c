// SPDX-License-Identifier: GPL-2.0-only
#include "setup/prefix.h"
#include "region/stack.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

size_t guise_prefix_bytes(const struct guise_prefix *p)
{
	return p->family == AF_INET ? 4 : 16;
}

int guise_prefix_parse(const char *text, struct guise_prefix *p, const char *what)
{
	char copy[64], *slash, *end;
	unsigned long len, max;

	memset(p, 0, sizeof(*p));
	if (!strcmp(text, "default")) {
		p->family = AF_INET;
		return 0;
	}
	if (strlen(text) >= sizeof(copy))
		goto bad;
	strcpy(copy, text);
	slash = strchr(copy, '/');
	if (slash)
		*slash++ = '\0';
	if (inet_pton(AF_INET, copy, p->addr) == 1)
		p->family = AF_INET;
	else if (inet_pton(AF_INET6, copy, p->addr) == 1)
		p->family = AF_INET6;
	else
		goto bad;
	len = max = 8 * guise_prefix_bytes(p);
	if (slash) {
		len = strtoul(slash, &end, 10);
		if (!isdigit((unsigned char)*slash) || *end || len > max)
			return guise_fail(EINVAL, "%s %s: the prefix length must be 0 to %lu", what,
					  text, max);
	}
	p->len = (uint8_t)len;
	return 0;
bad:
	return guise_fail(EINVAL,
			  "%s %s: expected an address such as 192.0.2.2/24 or "
			  "2001:db8::2/64",
			  what, text);
}
