// SPDX-License-Identifier: GPL-2.0-only
/* Which servers a resolv.conf names, and who can reach them. */
#include "holder/relay/resolvers.h"

#include "test/tap.h"

#include <arpa/inet.h>

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
	return tap_end();
}
