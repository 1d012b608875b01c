// SPDX-License-Identifier: GPL-2.0-only
/* Parses a link's spec; changes nothing. */
#include "link/spec.h"
#include "region/stack.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define KIND(...)
#include "link/kinds.h"

static int parse_mac(const char *text, uint8_t mac[6])
{
	static const uint8_t zero[6];
	uint8_t m[6];
	const char *p = text;
	int i;

	for (i = 0; i < 6; i++) {
		if (!isxdigit((unsigned char)p[0]) || !isxdigit((unsigned char)p[1]) ||
		    p[2] != (i < 5 ? ':' : '\0'))
			return guise_fail(EINVAL,
					  "link: mac=%s: expected six bytes, such as "
					  "mac=02:00:00:00:00:01",
					  text);
		m[i] = (uint8_t)strtoul(p, NULL, 16);
		p += 3;
	}
	if ((m[0] & 1) || !memcmp(m, zero, 6))
		return guise_fail(EINVAL,
				  "link: mac=%s is %s; an interface needs an address of its "
				  "own, such as 02:00:00:00:00:01",
				  text, m[0] & 1 ? "a group address" : "no address");
	memcpy(mac, m, 6);
	return 0;
}

static int parse_option(const char *word, struct guise_link_spec *spec)
{
	if (!strncmp(word, "mac=", 4)) {
		spec->has_mac = true;
		return parse_mac(word + 4, spec->mac);
	}
	if (!strncmp(word, "mtu=", 4)) {
		char *end;
		unsigned long mtu = strtoul(word + 4, &end, 10);
		unsigned long most = spec->kind->features & GUISE_LINK_RAW ? LINK_MTU_MOST_IP
									   : LINK_MTU_MOST_ETHERNET;

		if (!isdigit((unsigned char)word[4]) || *end || mtu < LINK_MTU_LEAST || mtu > most)
			return guise_fail(EINVAL, "link: %s: expected a number from %d to %lu",
					  word, LINK_MTU_LEAST, most);
		spec->mtu = (uint32_t)mtu;
		return 0;
	}
	if (!strcmp(word, "offload=off")) {
		spec->offload_off = true;
		return 0;
	}
	return guise_fail(EINVAL, "link: unknown option \"%s\"; known are mac=, mtu=, offload=off",
			  word);
}

int guise_link_spec_parse(const char *text, struct guise_link_spec *spec)
{
	char copy[256], *word, *next, *colon;
	int err;

	memset(spec, 0, sizeof(*spec));
	if (strlen(text) >= sizeof(copy))
		return guise_fail(EINVAL, "link: a spec of %zu characters; at most %zu are allowed",
				  strlen(text), sizeof(copy) - 1);
	strcpy(copy, text);

	next = copy;
	word = strsep(&next, ",");
	colon = strchr(word, ':');
	if (colon)
		*colon = '\0';
	spec->kind = guise_link_kind(word);
	if (!spec->kind)
		return guise_fail(EINVAL, "link: unknown kind \"%s\"; known are %s", word,
				  guise_link_kinds());
	if (colon) {
		if (strlen(colon + 1) >= sizeof(spec->rest))
			return guise_fail(EINVAL, "link: \"%s\" is too long for kind %s", colon + 1,
					  word);
		strcpy(spec->rest, colon + 1);
	}
	while (next) {
		err = parse_option(strsep(&next, ","), spec);
		if (err)
			return err;
	}
	if (spec->has_mac && spec->kind->features & GUISE_LINK_RAW)
		return guise_fail(EINVAL, "link: a %s has no Ethernet, and so no MAC address",
				  spec->kind->name);
	return 0;
}

int guise_link_name_check(const char *name)
{
	size_t len = strlen(name), i;

	for (i = 0; i < len; i++)
		if (isspace((unsigned char)name[i]) || name[i] == '/' || name[i] == ':')
			break;
	if (!len || len > 15 || i < len || !strcmp(name, ".") || !strcmp(name, ".."))
		return guise_fail(EINVAL,
				  "link: \"%s\" is no interface name: 1 to 15 characters, "
				  "without blanks, slashes and colons",
				  name);
	return 0;
}
