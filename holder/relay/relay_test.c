// SPDX-License-Identifier: GPL-2.0-only
/* The addresses in a plan's relay lines, and which of them a destination is. */
#include "holder/relay/relay.h"

#include "holder/relay/outward.h"

#include "test/tap.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

static struct relay r;

/* "ADDRESS PORT ZONE" */
static const char *words(const struct sockaddr_storage *a)
{
	const struct sockaddr_in6 *in6 = (const void *)a;
	const struct sockaddr_in *in = (const void *)a;
	static char text[128];
	char address[INET6_ADDRSTRLEN];
	bool six = a->ss_family == AF_INET6;

	inet_ntop(a->ss_family, six ? (const void *)&in6->sin6_addr : &in->sin_addr, address,
		  sizeof(address));
	snprintf(text, sizeof(text), "%s %d %u", address, ntohs(in->sin_port),
		 six ? in6->sin6_scope_id : 0);
	return text;
}

static void takes(const char *text, const char *as)
{
	r.maps = 0;
	if (!tap(!relay_add_map(&r, text, "127.0.0.1") && r.maps == 1 &&
			 !strcmp(words(&r.map[0].from), as),
		 "%s is %s", text, as))
		printf("# %s\n", words(&r.map[0].from));
}

static void refuses(const char *text)
{
	r.maps = 0;
	tap(relay_add_map(&r, text, "127.0.0.1") && relay_add_map(&r, "127.0.0.1", text) && !r.maps,
	    "\"%s\" is refused on either side", text);
}

static struct sockaddr_storage address(const char *text)
{
	struct relay one = { 0 };

	relay_add_map(&one, text, "127.0.0.1");
	return one.map[0].from;
}

static void leads(const char *from, const char *to)
{
	struct sockaddr_storage dst = address(from);
	struct outward_target t;
	const char *is = outward_map(&r, &dst, &t) ? words(&t.to) : "nowhere";

	if (!tap(!strcmp(is, to), "%s leads to %s", from, to))
		printf("# %s\n", is);
}

static void maps(void)
{
	r.maps = 0;
	tap(!relay_add_map(&r, "169.254.77.1", "127.0.0.1") &&
		    !relay_add_map(&r, "169.254.77.11:53", "127.0.0.53") &&
		    !relay_add_map(&r, "169.254.77.12:53", "192.0.2.1:5353") &&
		    !relay_add_map(&r, "fd67::1", "::1") && r.maps == 4,
	    "a table of four");
	leads("169.254.77.1:80", "127.0.0.1 80 0");
	leads("169.254.77.11:53", "127.0.0.53 53 0");
	leads("169.254.77.11:54", "nowhere");
	leads("169.254.77.12:53", "192.0.2.1 5353 0");
	leads("[fd67::1]:8080", "::1 8080 0");
	leads("[fd67::2]:8080", "nowhere");
	leads("127.0.0.1:80", "nowhere");
	while (r.maps < RELAY_MAPS)
		relay_add_map(&r, "192.0.2.1", "192.0.2.2");
	tap(relay_add_map(&r, "192.0.2.1", "192.0.2.2") && r.maps == RELAY_MAPS,
	    "one too many is refused");
}

static bool asked(const char *server, struct outward_target *t)
{
	struct sockaddr_storage dst = address("169.254.77.11:53");

	r.maps = 0;
	return !relay_add_resolver(&r, "169.254.77.11", server) && outward_map(&r, &dst, t);
}

static void resolvers(void)
{
	struct outward_target t;

	tap(asked("192.0.2.53", &t) && !strcmp(words(&t.to), "192.0.2.53 53 0") && t.inside &&
		    t.resolver,
	    "a server that is named is asked over the stack");
	resolvers_read(&r.resolvers, "nameserver 192.0.2.54\n");
	tap(!stat("/etc/resolv.conf", &r.resolvers.read) && asked(NULL, &t) &&
		    !strcmp(words(&t.to), "192.0.2.54 53 0") && t.inside,
	    "the host's over the stack, too");
	resolvers_read(&r.resolvers, "nameserver 127.0.0.53\n");
	tap(asked(NULL, &t) && !strcmp(words(&t.to), "127.0.0.53 53 0") && !t.inside,
	    "... but on its loopback by the host");
	tap(!resolvers_set(&r.resolvers, (char *[]){ "192.0.2.55", "dev", "up1" }, 3) &&
		    asked(NULL, &t) && !strcmp(words(&t.to), "192.0.2.55 53 0") && t.inside &&
		    !strcmp(t.ifname, "up1") && asked("192.0.2.53", &t) && !*t.ifname,
	    "those of a link over it, in place of the host's");
}

int main(void)
{
	takes("192.0.2.1", "192.0.2.1 0 0");
	takes("192.0.2.1:53", "192.0.2.1 53 0");
	takes("192.0.2.1:65535", "192.0.2.1 65535 0");
	takes("2001:db8::1", "2001:db8::1 0 0");
	takes("[2001:db8::1]", "2001:db8::1 0 0");
	takes("[2001:db8::1]:53", "2001:db8::1 53 0");
	takes("fe80::1%3", "fe80::1 0 3");
	takes("[fe80::1%3]:53", "fe80::1 53 3");
	refuses("");
	refuses("localhost");
	refuses("192.0.2");
	refuses("192.0.2.1:");
	refuses("192.0.2.1:0");
	refuses("192.0.2.1:65536");
	refuses("192.0.2.1:-1");
	refuses("192.0.2.1:53x");
	refuses("[2001:db8::1");
	refuses("[2001:db8::1]53");
	refuses("[2001:db8::1]:");
	refuses("[192.0.2.1:53");
	refuses("2001:db8:::1");
	refuses("0000000000000000000000000000000000000000000000000000000000000000000000000000000000");
	maps();
	resolvers();
	return tap_end();
}
