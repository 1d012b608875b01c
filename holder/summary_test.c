// SPDX-License-Identifier: GPL-2.0-only
/* Counters are found by name in the kernel's two-line tables, or are 0. */
#include "holder/summary.h"

#include "test/tap.h"

static const char snmp[] = "Ip: Forwarding DefaultTTL\nIp: 2 64\n"
			   "Tcp: RtoAlgorithm MaxConn ActiveOpens PassiveOpens RetransSegs\n"
			   "Tcp: 1 -1 17 4 18446744073709551615\n"
			   "TcpExt: RetransSegs\nTcpExt: 5\n";

int main(void)
{
	tap(summary_counter(snmp, "Tcp", "ActiveOpens") == 17, "one in the middle");
	tap(summary_counter(snmp, "Tcp", "RetransSegs") == UINT64_MAX, "the last of a line");
	tap(summary_counter(snmp, "Ip", "Forwarding") == 2, "the first of the text");
	tap(summary_counter(snmp, "TcpExt", "RetransSegs") == 5, "one of the last table");
	tap(!summary_counter(snmp, "Tcp", "Opens") && !summary_counter(snmp, "Tcp", "Active"),
	    "no part of a name");
	tap(!summary_counter(snmp, "Udp", "InErrors"), "no table that is not there");
	tap(!summary_counter("", "Tcp", "ActiveOpens") &&
		    !summary_counter("Tcp: ActiveOpens", "Tcp", "ActiveOpens") &&
		    !summary_counter("Tcp: A B\nTcp: 1", "Tcp", "B") &&
		    !summary_counter("Tcp: A\nUdp: 1\n", "Tcp", "A"),
	    "nothing in a text that is cut");
	return tap_end();
}
