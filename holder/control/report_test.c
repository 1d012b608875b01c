// SPDX-License-Identifier: GPL-2.0-only
/* The number of sockets is found in the kernel's text, or is not known. */
#include "holder/control/report.h"

#include "test/tap.h"

int main(void)
{
	tap(report_sockets("sockets: used 17\nTCP: inuse 3 orphan 0\n") == 17,
	    "as Linux writes it");
	tap(report_sockets("TCP: inuse 3\n") == -1, "not there");
	tap(report_sockets("sockets: used \n") == -1, "without its number");
	tap(report_sockets("") == -1, "nothing at all");
	return tap_end();
}
