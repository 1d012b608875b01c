// SPDX-License-Identifier: GPL-2.0-only
/* Which lines of /proc/net/tcp are waited for. */
#include "holder/drain.h"

#include "test/tap.h"

#include <sys/socket.h>

static const char text[] =
	"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n"
	"   0: 00000000:0016 00000000:0000 0A 00000000:00000001 00:00000000 00000000     0\n"
	"   1: 0100007F:0016 0100007F:1234 01 00000000:00000020 00:00000000 00000000     0\n"
	"   2: 0100007F:0016 0100007F:1234 01 00000100:00000000 01:00000014 00000000     0\n"
	"   3: 0100007F:0016 0100007F:1234 04 00000000:00000000 01:00000014 00000000     0\n"
	"   4: 0100007F:0016 0100007F:1234 05 00000000:00000000 00:00000000 00000000     0\n"
	"   5: 0100007F:0016 0100007F:1234 06 00000000:00000000 03:00000000 00000000     0\n"
	"   6: 0100007F:0016 0100007F:1234 09 00000001:00000000 01:00000000 00000000     0\n";

static const char text6[] =
	"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n"
	"   0: 0000000000000000FFFF00000200000A:0016 0000000000000000FFFF00000100000A:1234 04 "
	"00000000:00000000 01:00000014 00000000     0\n"
	"   1: B80D0120000000000000000002000000:0016 B80D0120000000000000000001000000:1234 04 "
	"00000000:00000000 01:00000014 00000000     0\n";

int main(void)
{
	static struct drain_addresses any = { .n = -1 }, lo = { .n = 0 }, two = { .n = 2 };

	two.address[0] = (struct guise_address){ AF_INET, { 10, 0, 0, 2 } };
	two.address[1] = (struct guise_address){ AF_INET6, { 0x20, 0x01, 0x0d, 0xb8, [15] = 2 } };
	tap(drain_count(text, &any) == 3, "unacknowledged data, FIN_WAIT1 and LAST_ACK count");
	tap(!drain_count("  sl  local_address\n", &any), "an empty table");
	tap(drain_count(text, &lo) == 3, "loopback is always there");
	tap(drain_count(text6, &any) == 2, "IPv6, and IPv4 in its form");
	tap(!drain_count(text6, &lo), "what has lost its address does not count");
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	tap(drain_count(text6, &two) == 2, "what has its address does");
	two.n = 1;
	tap(drain_count(text6, &two) == 1, "each by itself");
#endif
	return tap_end();
}
