// SPDX-License-Identifier: GPL-2.0-only
/* Which lines of /proc/net/tcp and its like mean that a port is served. */
#include "holder/guests/guests.h"

#include "test/tap.h"

#include <arpa/inet.h>
#include <string.h>

#define HEAD "  sl  local_address rem_address   st tx_queue rx_queue\n"
/* 0.0.0.0:80 listens, 10.213.0.2:81 listens, 127.0.0.1:82 listens, 10.213.0.2:83 is connected */
#define TCP                                                                         \
	HEAD "   0: 00000000:0050 00000000:0000 0A 00000000:00000000 00:00000000\n" \
	     "   1: 0200D50A:0051 00000000:0000 0A 00000000:00000000 00:00000000\n" \
	     "   2: 0100007F:0052 00000000:0000 0A 00000000:00000000 00:00000000\n" \
	     "   3: 0200D50A:0053 0100D50A:8000 01 00000000:00000000 00:00000000\n"
/* [::]:80 listens, [fd00::2]:81 listens */
#define TCP6                                                                            \
	HEAD "   0: 00000000000000000000000000000000:0050 "                             \
	     "00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000\n" \
	     "   1: 000000FD000000000000000002000000:0051 "                             \
	     "00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000\n"
#define UDP HEAD "   0: 00000000:0035 00000000:0000 07 00000000:00000000 00:00000000\n"

static bool listens(const char *table, bool udp, const char *addr, uint16_t port)
{
	struct sockaddr_storage a = { 0 };
	struct sockaddr_in *in = (void *)&a;
	struct sockaddr_in6 *in6 = (void *)&a;
	FILE *f = fmemopen((void *)table, strlen(table), "r");
	bool yes;

	a.ss_family = strchr(addr, ':') ? AF_INET6 : AF_INET;
	in->sin_port = htons(port);
	inet_pton(a.ss_family, addr,
		  a.ss_family == AF_INET ? (void *)&in->sin_addr : (void *)&in6->sin6_addr);
	yes = f && guests_listen(f, udp, &a);
	if (f)
		fclose(f);
	return yes;
}

int main(void)
{
	tap(listens(TCP, false, "10.213.0.2", 80), "a server on all addresses");
	tap(listens(TCP, false, "10.213.0.2", 81), "a server on this one");
	tap(!listens(TCP, false, "10.213.0.3", 81), "not on another one");
	tap(!listens(TCP, false, "10.213.0.2", 82), "not on localhost");
	tap(!listens(TCP, false, "10.213.0.2", 83), "what is connected is no server");
	tap(!listens(TCP, false, "10.213.0.2", 84), "nor is nothing");
	tap(listens(TCP6, false, "fd00::2", 80), "a server on all IPv6 addresses");
	tap(listens(TCP6, false, "10.213.0.2", 80), "takes IPv4 as well");
	tap(listens(TCP6, false, "fd00::2", 81), "a server on this IPv6 address");
	tap(!listens(TCP6, false, "fd00::3", 81), "not on another one");
	tap(listens(UDP, true, "10.213.0.2", 53), "a datagram socket");
	tap(!listens(UDP, false, "10.213.0.2", 53), "is no TCP server");
	tap(!listens("", false, "10.213.0.2", 80) && !listens("\n\nx", false, "10.213.0.2", 80),
	    "a table that is none");
	return tap_end();
}
