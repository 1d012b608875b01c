// SPDX-License-Identifier: GPL-2.0-only
/* Addresses and ports of the packets that wait in the queue, however long they are. */
#include "holder/relay/outward.h"

#include "test/tap.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TCP 6
#define UDP 17

/* As long as it says, so that the sanitizer sees who reads further. */
static bool found(const uint8_t *packet, size_t n, char *text, size_t room)
{
	struct sockaddr_storage from, to;
	char a[INET6_ADDRSTRLEN], b[INET6_ADDRSTRLEN];
	uint8_t *copy = malloc(n ? n : 1);
	bool is;

	memcpy(copy, packet, n);
	is = outward_addresses(n ? copy : NULL, n, &from, &to);
	free(copy);
	if (!is)
		return false;
	if (from.ss_family == AF_INET) {
		inet_ntop(AF_INET, &((struct sockaddr_in *)&from)->sin_addr, a, sizeof(a));
		inet_ntop(AF_INET, &((struct sockaddr_in *)&to)->sin_addr, b, sizeof(b));
	} else {
		inet_ntop(AF_INET6, &((struct sockaddr_in6 *)&from)->sin6_addr, a, sizeof(a));
		inet_ntop(AF_INET6, &((struct sockaddr_in6 *)&to)->sin6_addr, b, sizeof(b));
	}
	snprintf(text, room, "%s %d, %s %d", a, ntohs(((struct sockaddr_in *)&from)->sin_port), b,
		 ntohs(((struct sockaddr_in *)&to)->sin_port));
	return true;
}

static void holds(const char *what, const uint8_t *packet, size_t n, const char *words)
{
	char text[128] = "nothing";
	bool is = found(packet, n, text, sizeof(text));

	if (!tap(is == !!words && (!words || !strcmp(text, words)), "%s", what))
		printf("# %s\n", text);
}

static uint8_t packet[64];

static void version4(int words, int protocol)
{
	static const uint8_t addresses[] = { 192, 0, 2, 1, 198, 51, 100, 2 };

	memset(packet, 0xee, sizeof(packet));
	packet[0] = (uint8_t)(0x40 | words);
	packet[9] = (uint8_t)protocol;
	memcpy(packet + 12, addresses, sizeof(addresses));
	memcpy(packet + words * 4, "\x12\x34\x00\x50", 4);
}

static void version6(int protocol)
{
	memset(packet, 0, sizeof(packet));
	packet[0] = 0x60;
	packet[6] = (uint8_t)protocol;
	inet_pton(AF_INET6, "2001:db8::1", packet + 8);
	inet_pton(AF_INET6, "2001:db8::2", packet + 24);
	memcpy(packet + 40, "\x12\x34\x00\x50", 4);
}

int main(void)
{
	static const char four[] = "192.0.2.1 4660, 198.51.100.2 80",
			  six[] = "2001:db8::1 4660, 2001:db8::2 80";

	version4(5, TCP);
	holds("a SYN of IPv4", packet, 40, four);
	holds("its header and ports", packet, 24, four);
	for (size_t n = 0; n < 24; n++)
		holds("less of it", packet, n, NULL);
	version4(15, TCP);
	holds("options before the ports", packet, 64, four);
	holds("options that leave no room for ports", packet, 60, NULL);
	version4(5, UDP);
	holds("a datagram", packet, 40, NULL);
	version4(5, TCP);
	packet[0] = 0x44;
	holds("a header that is shorter than any", packet, 40, NULL);
	packet[0] = 0x55;
	holds("another version", packet, 64, NULL);
	version6(TCP);
	holds("a SYN of IPv6", packet, 60, six);
	holds("its header and ports", packet, 44, six);
	for (size_t n = 0; n < 44; n += 4)
		holds("less of it", packet, n, NULL);
	version6(UDP);
	holds("a datagram of IPv6", packet, 60, NULL);
	return tap_end();
}
