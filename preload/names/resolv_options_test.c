// SPDX-License-Identifier: GPL-2.0-only
/* What is taken from resolv.conf and $RES_OPTIONS. */
#include "preload/names/resolver.h"

#include "test/tap.h"

static bool gives(const char *line, int timeout_ms, int attempts, bool use_vc)
{
	struct resolver_options o = RESOLVER_DEFAULTS;

	resolver_options_line(&o, line);
	return o.timeout_ms == timeout_ms && o.attempts == attempts && o.use_vc == use_vc;
}

int main(void)
{
	struct resolver_options o = RESOLVER_DEFAULTS;

	tap(gives("", 5000, 2, false) && gives("\n", 5000, 2, false) &&
		    gives("nameserver 192.0.2.1\n", 5000, 2, false),
	    "without options, libc's defaults");
	tap(gives("options timeout:3\n", 3000, 2, false) &&
		    gives("options\tattempts:4 ndots:2\n", 5000, 4, false) &&
		    gives("options use-vc", 5000, 2, true) &&
		    gives("options  rotate   timeout:1 attempts:1 use-vc \r\n", 1000, 1, true),
	    "each option, and all of them");
	tap(gives("options timeout:0 attempts:0", 1000, 1, false) &&
		    gives("options timeout:1000 attempts:99", 30000, 5, false) &&
		    gives("options timeout:99999999999999999999", 30000, 2, false),
	    "numbers within libc's limits");
	tap(gives("options timeout: attempts:x use-vcx timeout:3s attempts", 5000, 2, false) &&
		    gives("optionstimeout:3", 5000, 2, false) &&
		    gives("# options timeout:3", 5000, 2, false) &&
		    gives(" options timeout:3", 5000, 2, false),
	    "anything else changes nothing");
	resolver_options_line(&o, "options timeout:3 attempts:3");
	resolver_options_read(&o, "timeout:7");
	tap(o.timeout_ms == 7000 && o.attempts == 3, "later words replace earlier ones");
	return tap_end();
}
