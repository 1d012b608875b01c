// SPDX-License-Identifier: GPL-2.0-only
/* Services that need no /etc/services: ports by number, and what is refused. */
#include "preload/names/service.h"

#include "test/tap.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <sys/socket.h>

static struct service list[SERVICES_MAX];

static int find(const char *name, int socktype, int protocol, int flags)
{
	struct addrinfo hints = { .ai_socktype = socktype,
				  .ai_protocol = protocol,
				  .ai_flags = flags };

	return service_find(name, &hints, list);
}

static bool is(const struct service *s, int socktype, int protocol, int port)
{
	return s->socktype == socktype && s->protocol == protocol && ntohs(s->port) == port;
}

int main(void)
{
	tap(find("80", 0, 0, 0) == 3 && is(&list[0], SOCK_STREAM, IPPROTO_TCP, 80) &&
		    is(&list[1], SOCK_DGRAM, IPPROTO_UDP, 80) && is(&list[2], SOCK_RAW, 0, 80),
	    "a number alone means all usual types");
	tap(find(NULL, 0, 0, 0) == 3 && is(&list[0], SOCK_STREAM, IPPROTO_TCP, 0),
	    "no service means port 0");
	tap(find("53", SOCK_DGRAM, 0, 0) == 1 && is(&list[0], SOCK_DGRAM, IPPROTO_UDP, 53) &&
		    find("53", 0, IPPROTO_TCP, 0) == 1 &&
		    is(&list[0], SOCK_STREAM, IPPROTO_TCP, 53) &&
		    find("53", 0, IPPROTO_SCTP, 0) == 1 &&
		    is(&list[0], SOCK_STREAM, IPPROTO_SCTP, 53),
	    "a type or a protocol means one");
	tap(find(NULL, SOCK_RAW, 89, 0) == 1 && is(&list[0], SOCK_RAW, 89, 0) &&
		    find("80", SOCK_RAW, 89, 0) == EAI_SERVICE,
	    "raw sockets have any protocol and no service");
	tap(find("80", 77, 0, 0) == EAI_SOCKTYPE &&
		    find("80", SOCK_STREAM, IPPROTO_UDP, 0) == EAI_SOCKTYPE,
	    "an unknown type is refused");
	tap(find("http", 0, 0, AI_NUMERICSERV) == EAI_NONAME &&
		    find("80x", SOCK_STREAM, 0, AI_NUMERICSERV) == EAI_NONAME,
	    "where numbers are wanted, names are refused");
	tap(find("no such service", SOCK_STREAM, 0, 0) == EAI_SERVICE, "so is an unknown name");
	return tap_end();
}
