// SPDX-License-Identifier: GPL-2.0-only
#include "address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct address address_of(const void *sockaddr)
{
	struct address a = { 0 };
	struct sockaddr_in6 six;
	struct sockaddr_in four;
	sa_family_t family;

	memcpy(&family, sockaddr, sizeof(family));
	if (family == AF_INET) {
		memcpy(&four, sockaddr, sizeof(four));
		a.family = 4;
		memcpy(a.bytes, &four.sin_addr, 4);
		a.port = ntohs(four.sin_port);
	} else if (family == AF_INET6) {
		memcpy(&six, sockaddr, sizeof(six));
		a.port = ntohs(six.sin6_port);
		if (IN6_IS_ADDR_V4MAPPED(&six.sin6_addr)) {
			a.family = 4;
			memcpy(a.bytes, six.sin6_addr.s6_addr + 12, 4);
		} else {
			a.family = 6;
			memcpy(a.bytes, &six.sin6_addr, 16);
		}
	}
	return a;
}

bool address_equal(const struct address *a, const struct address *b)
{
	return a->family == b->family && a->port == b->port &&
	       !memcmp(a->bytes, b->bytes, sizeof(a->bytes));
}

const char *address_text(const struct address *a, char text[ADDRESS_TEXT])
{
	char host[INET6_ADDRSTRLEN] = "";

	if (!a->family) {
		strcpy(text, "-");
		return text;
	}
	inet_ntop(a->family == 4 ? AF_INET : AF_INET6, a->bytes, host, sizeof(host));
	snprintf(text, ADDRESS_TEXT, a->family == 4 ? "%s:%u" : "[%s]:%u", host, a->port);
	return text;
}

bool address_read(struct address *a, const char *text)
{
	const char *colon = strrchr(text, ':');
	char host[INET6_ADDRSTRLEN], *end;
	unsigned long port;
	size_t length;

	*a = (struct address){ 0 };
	if (!colon || colon[1] < '0' || colon[1] > '9')
		return false;
	port = strtoul(colon + 1, &end, 10);
	length = (size_t)(colon - text);
	a->family = 4;
	if (length > 1 && text[0] == '[' && colon[-1] == ']') {
		a->family = 6;
		text++;
		length -= 2;
	}
	if (*end || port > 65535 || length >= sizeof(host)) {
		a->family = 0;
		return false;
	}
	memcpy(host, text, length);
	host[length] = '\0';
	a->port = (uint16_t)port;
	if (inet_pton(a->family == 4 ? AF_INET : AF_INET6, host, a->bytes) == 1)
		return true;
	*a = (struct address){ 0 };
	return false;
}

struct address address_local(int fd)
{
	struct sockaddr_storage s = { 0 };
	socklen_t length = sizeof(s);

	getsockname(fd, (void *)&s, &length);
	return address_of(&s);
}

struct address address_remote(int fd)
{
	struct sockaddr_storage s = { 0 };
	socklen_t length = sizeof(s);

	getpeername(fd, (void *)&s, &length);
	return address_of(&s);
}
