// SPDX-License-Identifier: GPL-2.0-only
/*
 * localhost. To libc it is a name like any other: addresses that /etc/hosts does not have are
 * asked of DNS. c-ares has addresses of its own for it (RFC 6761). They do no harm where
 * /etc/hosts has one of the same family; where it has none, the program would get an address
 * that its server does not listen on. Then c-ares is given the name with a dot at its end, which
 * is the same name to DNS and nothing special to c-ares.
 */
#include "preload/names/resolver.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#define BLANKS " \t\r\n"

static bool is_localhost(const char *name)
{
	const char *last = strrchr(name, '.');

	return !strcasecmp(last ? last + 1 : name, "localhost");
}

/* Whether a line of the file has an address of that family for the name. */
static bool names(char *line, const char *name, int family)
{
	unsigned char address[sizeof(struct in6_addr)];
	char *rest, *word;

	line[strcspn(line, "#")] = '\0';
	word = strtok_r(line, BLANKS, &rest);
	if (!word || (family != AF_UNSPEC && inet_pton(family, word, address) != 1))
		return false;
	while ((word = strtok_r(NULL, BLANKS, &rest)))
		if (!strcasecmp(word, name))
			return true;
	return false;
}

static bool is_filed(const char *name, int family)
{
	FILE *f = fopen("/etc/hosts", "re");
	char line[1024];
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f))
		found = names(line, name, family);
	if (f)
		fclose(f);
	return found;
}

const char *resolver_name(const char *name, int family, char room[RESOLVER_NAME_ROOM])
{
	if (strlen(name) + 2 > RESOLVER_NAME_ROOM || !is_localhost(name) || is_filed(name, family))
		return name;
	return strcat(strcpy(room, name), ".");
}
