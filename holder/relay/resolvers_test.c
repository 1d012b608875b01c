// SPDX-License-Identifier: GPL-2.0-only
/* Which servers a resolv.conf names, and who can reach them. */
#include "holder/relay/resolvers.h"

#include "test/tap.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

static struct resolvers r;

static const char *words(void)
{
	static char all[300];
	size_t n = 0;

	all[0] = '\0';
	for (unsigned int i = 0; i < r.n; i++) {
		const struct sockaddr_in *in = (void *)&r.server[i];
		const struct sockaddr_in6 *in6 = (void *)&r.server[i];
		char text[INET6_ADDRSTRLEN];
		bool six = in->sin_family == AF_INET6;

		inet_ntop(in->sin_family, six ? (const void *)&in6->sin6_addr : &in->sin_addr, text,
			  sizeof(text));
		n += (size_t)snprintf(all + n, sizeof(all) - n, "%s%s", n ? " " : "", text);
		if (six && in6->sin6_scope_id)
			n += (size_t)snprintf(all + n, sizeof(all) - n, "%%%u", in6->sin6_scope_id);
		n += (size_t)snprintf(all + n, sizeof(all) - n, "%s",
				      resolvers_is_hosts(&r.server[i]) ? "!" : "");
	}
	return all;
}

static void reads(const char *text, const char *expected)
{
	resolvers_read(&r, text);
	if (!tap(!strcmp(words(), expected), "%s", expected))
		printf("# %s\n", words());
}

static int set(const char *text)
{
	char copy[200], *word[16], *rest;
	int words = 0;

	snprintf(copy, sizeof(copy), "%s", text);
	for (char *w = strtok_r(copy, " ", &rest); w; w = strtok_r(NULL, " ", &rest))
		word[words++] = w;
	return resolvers_set(&r, word, words);
}

static void links(void)
{
	static const char *const wrong[] = {
		"192.0.2.1",
		"192.0.2.1 dev",
		"192.0.2.1 via up1",
		"here dev up1",
		"fe80::1%up1 dev up1",
		"192.0.2.1 dev an-interface-with-a-long-name",
		"192.0.2.1 dev a 192.0.2.1 dev b 192.0.2.1 dev c 192.0.2.1 dev d",
	};
	struct resolvers_link l = { 0 };

	tap(!resolvers_of_link(&r, 0, &l), "at first the host's are asked");
	tap(!set("192.0.2.1 dev up1 fe80::1 dev up2") && resolvers_of_link(&r, 0, &l) &&
		    !strcmp(l.ifname, "up1") && l.server.ss_family == AF_INET &&
		    ((struct sockaddr_in *)&l.server)->sin_port == htons(53) &&
		    resolvers_of_link(&r, 1, &l) && !strcmp(l.ifname, "up2") &&
		    l.server.ss_family == AF_INET6,
	    "then those of the links, each over its own");
	tap(resolvers_of_link(&r, 2, &l) && !strcmp(l.ifname, "up1"), "a third one is the first");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		tap(set(wrong[i]) && resolvers_of_link(&r, 1, &l) && !strcmp(l.ifname, "up2"),
		    "\"%s\" is refused, and changes nothing", wrong[i]);
	tap(!set("") && !resolvers_of_link(&r, 0, &l), "and the host's again");
}

int main(void)
{
	reads("", "127.0.0.1!");
	reads("nameserver 192.0.2.1", "192.0.2.1");
	reads("# nameserver 192.0.2.9\nsearch a.test\nnameserver\t192.0.2.1 \r\n\n"
	      "nameserver 2001:db8::1\noptions x\n",
	      "192.0.2.1 2001:db8::1");
	reads("nameserver 127.0.0.53\nnameserver ::1\nnameserver 169.254.169.253\n",
	      "127.0.0.53! ::1! 169.254.169.253!");
	reads("nameserver fe80::1%lo\nnameserver fe80::1%7\n", "fe80::1%1! fe80::1%7!");
	reads("nameserver 192.0.2.1\nnameserver 192.0.2.2\nnameserver 192.0.2.3\n"
	      "nameserver 192.0.2.4\n",
	      "192.0.2.1 192.0.2.2 192.0.2.3");
	reads("nameserver\nnameserver here\nnameserver 192.0.2\nnameserver 192.0.2.1%lo\n"
	      "nameserver 0000000000000000000000000000000000000000000000000000000000000000000000\n",
	      "127.0.0.1!");
	links();
	return tap_end();
}
