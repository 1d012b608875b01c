// SPDX-License-Identifier: GPL-2.0-only
/* Names that need no server: getaddrinfo and getnameinfo with every flag, and their errors. */
#include "call.h"

#include <netdb.h>
#include <netinet/in.h>

static void show_list(const struct addrinfo *list)
{
	char text[64];

	for (; list; list = list->ai_next) {
		const struct sockaddr_in *v4 = (void *)list->ai_addr;
		const struct sockaddr_in6 *v6 = (void *)list->ai_addr;

		inet_ntop(list->ai_family,
			  list->ai_family == AF_INET ? (void *)&v4->sin_addr
						     : (void *)&v6->sin6_addr,
			  text, sizeof(text));
		printf("  %d %d %d %s port %d scope %u flags %x length %u %s\n", list->ai_family,
		       list->ai_socktype, list->ai_protocol, text, ntohs(v4->sin_port),
		       list->ai_family == AF_INET6 ? v6->sin6_scope_id : 0, list->ai_flags,
		       list->ai_addrlen, list->ai_canonname ? list->ai_canonname : "-");
	}
}

static void look_up(const char *node, const char *service, int flags, int family, int type,
		    int protocol)
{
	struct addrinfo hints = {
		.ai_flags = flags, .ai_family = family, .ai_socktype = type, .ai_protocol = protocol
	};
	struct addrinfo *list = NULL;
	int ret;

	errno = 0;
	ret = getaddrinfo(node, service, &hints, &list);
	printf("getaddrinfo(%s, %s, %x, %d, %d, %d): %s\n", node ? node : "NULL",
	       service ? service : "NULL", (unsigned int)flags, family, type, protocol,
	       ret ? gai_strerror(ret) : "found");
	if (!ret) {
		show_list(list);
		freeaddrinfo(list);
	}
}

static const char *const nodes[] = {
	"127.0.0.1",
	"127.1",
	"127.0.1",
	"0x7f000001",
	"2130706433",
	"1.2.3.4",
	"1.2.3.4.5",
	"1.2.3.256",
	"::1",
	"::ffff:1.2.3.4",
	"fe80::1%lo",
	"fe80::1%1",
	"fe80::1%none0",
	"2001:db8::1%lo",
	"::1%lo",
	"[::1]",
	"",
	" 1.2.3.4",
	"1.2.3.4 ",
	"0",
	"::",
	"1:2",
	"1:2:3:4:5:6:7:8",
	"1:2:3:4:5:6:7:8:9",
	"01.02.03.04",
	"08.1.1.1",
	"255.255.255.255",
	"ff02::1%lo",
};

CASE(name_numbers)
{
	static const int families[] = { AF_UNSPEC, AF_INET, AF_INET6 };

	for (size_t n = 0; n < COUNT(nodes); n++)
		for (size_t f = 0; f < COUNT(families); f++) {
			look_up(nodes[n], "80", AI_NUMERICHOST, families[f], SOCK_STREAM, 0);
			look_up(nodes[n], NULL, AI_NUMERICHOST | AI_CANONNAME, families[f],
				SOCK_DGRAM, 0);
			look_up(nodes[n], NULL, AI_NUMERICHOST | AI_V4MAPPED | AI_ALL, families[f],
				SOCK_DGRAM, 0);
		}
}

CASE(name_hints)
{
	static const int families[] = { AF_UNSPEC, AF_INET, AF_INET6, AF_UNIX, 99, -1 };
	static const int types[] = { 0, SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET, 77 };
	static const int protocols[] = { 0, 6, 17, 1, 132, 255, 262 };
	static const char *const services[] = { NULL,        "80", "0",    "65535",
						"65536",     "-1", "http", "domain",
						"none such", "",   "http " };

	for (size_t f = 0; f < COUNT(families); f++)
		for (size_t t = 0; t < COUNT(types); t++)
			for (size_t p = 0; p < COUNT(protocols); p++)
				for (size_t s = 0; s < 3; s++)
					look_up("127.0.0.1", services[s], AI_NUMERICHOST,
						families[f], types[t], protocols[p]);
	for (size_t s = 0; s < COUNT(services); s++)
		for (size_t t = 0; t < COUNT(types); t++) {
			look_up("127.0.0.1", services[s], AI_NUMERICHOST, AF_INET, types[t], 0);
			look_up("127.0.0.1", services[s], AI_NUMERICSERV, AF_INET, types[t], 0);
			look_up(NULL, services[s], 0, AF_UNSPEC, types[t], 0);
			look_up(NULL, services[s], AI_PASSIVE, AF_UNSPEC, types[t], 0);
		}
	for (int bit = 0; bit < 16; bit++) {
		look_up("127.0.0.1", "80", 1 << bit, AF_UNSPEC, SOCK_STREAM, 0);
		look_up(NULL, "80", 1 << bit, AF_UNSPEC, SOCK_STREAM, 0);
		look_up("localhost", "80", (1 << bit) & ~AI_ADDRCONFIG, AF_INET, SOCK_STREAM, 0);
	}
	look_up("localhost", "80", AI_NUMERICHOST, AF_UNSPEC, SOCK_STREAM, 0);
	look_up("localhost", NULL, 0, AF_INET, SOCK_STREAM, 0);
}

static void name_of(const struct sockaddr *addr, socklen_t len, socklen_t host, socklen_t service,
		    int flags)
{
	char h[NI_MAXHOST] = "unset", s[NI_MAXSERV] = "unset";
	int ret = getnameinfo(addr, len, host ? h : NULL, host, service ? s : NULL, service, flags);

	printf("getnameinfo(%d, %u, %u, %u, %x): %s\n", addr->sa_family, len, host, service,
	       (unsigned int)flags, ret ? gai_strerror(ret) : "found");
	if (!ret)
		printf("  %s %s\n", h, s);
}

CASE(name_backward)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(80) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(53) };
	struct sockaddr other = { .sa_family = 77 };

	inet_pton(AF_INET, "192.0.2.5", &v4.sin_addr);
	inet_pton(AF_INET6, "fe80::5", &v6.sin6_addr);
	v6.sin6_scope_id = 1;
	for (int bit = -1; bit < 10; bit++) {
		int flags = NI_NUMERICHOST | (bit < 0 ? 0 : 1 << bit);

		name_of((void *)&v4, sizeof(v4), NI_MAXHOST, NI_MAXSERV, flags);
		name_of((void *)&v6, sizeof(v6), NI_MAXHOST, NI_MAXSERV, flags);
		name_of((void *)&v4, sizeof(v4), NI_MAXHOST, NI_MAXSERV, flags | NI_NUMERICSERV);
		name_of((void *)&v6, sizeof(v6), NI_MAXHOST, NI_MAXSERV, flags | NI_NUMERICSERV);
		name_of((void *)&v4, sizeof(v4), 0, NI_MAXSERV, flags);
		name_of((void *)&v4, sizeof(v4), NI_MAXHOST, 0, flags);
		name_of((void *)&v4, sizeof(v4), 0, 0, flags);
	}
	for (socklen_t n = 1; n < 14; n++) {
		name_of((void *)&v4, sizeof(v4), n, 32, NI_NUMERICHOST | NI_NUMERICSERV);
		name_of((void *)&v4, sizeof(v4), 64, n, NI_NUMERICHOST | NI_NUMERICSERV);
		name_of((void *)&v6, sizeof(v6), n, 32, NI_NUMERICHOST | NI_NUMERICSERV);
	}
	for (socklen_t n = 0; n < 30; n++) {
		name_of((void *)&v4, n, 64, 32, NI_NUMERICHOST | NI_NUMERICSERV);
		name_of((void *)&v6, n, 64, 32, NI_NUMERICHOST | NI_NUMERICSERV);
		name_of(&other, n, 64, 32, NI_NUMERICHOST);
	}
	v6.sin6_scope_id = 4711;
	name_of((void *)&v6, sizeof(v6), 64, 32, NI_NUMERICHOST | NI_NUMERICSERV);
	v4.sin_port = htons(4711);
	name_of((void *)&v4, sizeof(v4), 64, 32, NI_NUMERICHOST);
	name_of((void *)&v4, sizeof(v4), 64, 32, NI_NUMERICHOST | NI_DGRAM);
}
