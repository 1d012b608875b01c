// SPDX-License-Identifier: GPL-2.0-only
/* Which lines of /proc/net/tcp are waited for. */
#include "holder/drain.h"

#include <stdio.h>

static const char text[] =
	"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n"
	"   0: 00000000:0016 00000000:0000 0A 00000000:00000001 00:00000000 00000000     0\n"
	"   1: 0100007F:0016 0100007F:1234 01 00000000:00000020 00:00000000 00000000     0\n"
	"   2: 0100007F:0016 0100007F:1234 01 00000100:00000000 01:00000014 00000000     0\n"
	"   3: 0100007F:0016 0100007F:1234 04 00000000:00000000 01:00000014 00000000     0\n"
	"   4: 0100007F:0016 0100007F:1234 05 00000000:00000000 00:00000000 00000000     0\n"
	"   5: 0100007F:0016 0100007F:1234 06 00000000:00000000 03:00000000 00000000     0\n"
	"   6: 0100007F:0016 0100007F:1234 09 00000001:00000000 01:00000000 00000000     0\n";

int main(void)
{
	unsigned int n = drain_count(text), none = drain_count("  sl  local_address\n");

	printf("1..2\n%sok 1 - unacknowledged data, FIN_WAIT1 and LAST_ACK count (%u)\n",
	       n == 3 ? "" : "not ", n);
	printf("%sok 2 - an empty table\n", none ? "not " : "");
	return n == 3 && !none ? 0 : 1;
}
