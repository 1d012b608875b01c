// SPDX-License-Identifier: GPL-2.0-only
/* What may be written for a link, and what is said about the rest. */
#include "link/spec.h"

#include "guise/guise.h"
#include "test/tap.h"

#include <errno.h>
#include <string.h>

static void refuses(const char *text, const char *word)
{
	struct guise_link_spec spec;
	int err = guise_link_spec_parse(text, &spec);

	if (!tap(err == -EINVAL && strstr(guise_error(), word), "refuses \"%.40s\", naming %s",
		 text, word))
		printf("# %s\n", guise_error());
}

int main(void)
{
	static const uint8_t mac[6] = { 2, 0, 0, 0xab, 0xCD, 1 };
	struct guise_link_spec s;
	char longer[300];

	tap(!guise_link_spec_parse("tap:tap0", &s) && s.kind == guise_link_kind("tap") &&
		    !strcmp(s.rest, "tap0") && !s.has_mac && !s.mtu && !s.offload_off,
	    "a kind and a name");
	tap(!guise_link_spec_parse("tap:fd=7,mac=02:00:00:ab:CD:01,mtu=9000,offload=off", &s) &&
		    !strcmp(s.rest, "fd=7") && s.has_mac && !memcmp(s.mac, mac, 6) &&
		    s.mtu == 9000 && s.offload_off,
	    "all options");
	tap(!guise_link_spec_parse("pair", &s) && s.kind == guise_link_kind("pair") && !*s.rest,
	    "a kind alone");

	refuses("", "tap:IFNAME or tap:fd=N; ");
	refuses("tup:tap0", "stream:PATH");
	refuses("a-kind-that-is-longer-than-any:x", "known are tap:IFNAME");
	refuses("tap:tap0,", "mac=, mtu=, offload=off");
	refuses("tap:tap0,speed=10", "speed=10");
	refuses("tap:tap0,offload=on", "offload=on");
	refuses("tap:tap0,mtu=67", "68");
	refuses("tap:tap0,mtu=65522", "68 to 65521");
	refuses("tun:tun0,mtu=65536", "68 to 65535");
	tap(!guise_link_spec_parse("tap:tap0,mtu=65521", &s) && s.mtu == 65521,
	    "the longest packet of an Ethernet frame");
	tap(!guise_link_spec_parse("tun:tun0,mtu=65535", &s) && s.mtu == 65535,
	    "and without Ethernet");
	refuses("tap:tap0,mtu=-1", "68");
	refuses("tap:tap0,mtu=1500x", "65521");
	refuses("tap:tap0,mac=02:00:00:00:00", "six bytes");
	refuses("tap:tap0,mac=02:00:00:00:00:01:02", "six bytes");
	refuses("tap:tap0,mac=2:0:0:0:0:1", "six bytes");
	refuses("tap:tap0,mac=01:00:00:00:00:01", "group address");
	refuses("tap:tap0,mac=00:00:00:00:00:00", "no address");
	refuses("tun:tun0,mac=02:00:00:00:00:01", "a tun has no Ethernet");
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	memcpy(longer, "tap:", 4);
	refuses(longer, "299 characters");
	longer[200] = '\0';
	refuses(longer, "too long");

	tap(!guise_link_name_check("eth0") && !guise_link_name_check("a-name.of_15chr"),
	    "names of interfaces");
	tap(guise_link_name_check("") && guise_link_name_check("sixteen-letters-") &&
		    guise_link_name_check("a b") && guise_link_name_check("a/b") &&
		    guise_link_name_check("a:b") && guise_link_name_check(".") &&
		    guise_link_name_check(".."),
	    "what is none");
	return tap_end();
}
