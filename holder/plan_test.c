// SPDX-License-Identifier: GPL-2.0-only
/*
 * Plans: what is taken apart without a stack, and, where there is a kernel
 * image, a plan with every directive that needs no device of the host.
 */
#include "holder/plan.h"

#include "guise/layout.h"
#include "region/stack.h"
#include "test/kernel.h"
#include "test/tap.h"

#include <errno.h>

static struct plan p;
static char text[4096];

static int parse(const char *plan)
{
	plan_free(&p);
	snprintf(text, sizeof(text), "%s", plan);
	return plan_parse(&p, text);
}

static void refuses(const char *plan, int line, const char *word)
{
	int bad = parse(plan);

	if (!tap(bad == line && strstr(guise_error(), word), "line %d is refused, naming %s", line,
		 word))
		printf("# line %d: %s\n", bad, guise_error());
}

static void parses(void)
{
	tap(!parse("") && !p.lines && !p.keep, "an empty plan");
	tap(!parse("# a comment\n\n \t\n") && !p.lines, "comments and blank lines");
	tap(!parse("name x\n  boot \r\nlink eth0 tap fd=3 mtu=1400\nundo /bin/x j\nkeep") &&
		    p.lines == 3 && p.keep && !strcmp(p.undo_program, "/bin/x") &&
		    !strcmp(p.undo_journal, "j") && p.line[2].number == 3 && p.line[2].words == 5 &&
		    !strcmp(p.line[2].word[3], "fd=3"),
	    "words, lines, and what is about the end");

	refuses("name x\nfrobnicate 7\n", 2,
		"name, memory, kernel, clock, cmdline, boot, privileges, link");
	refuses("name\n", 1, "expected \"name NAME\"");
	refuses("boot now\n", 1, "expected \"boot\"");
	refuses("route default\n", 1, "DST [via ADDR]");
	refuses("boot\n\n# x\nmemory 64M\n", 4, "before the first line that needs the stack");
	refuses("up lo\nclock real\n", 2, "before the first line");
}

static void stops(const char *plan, int line, const char *word)
{
	int bad = parse(plan);

	if (!bad)
		bad = plan_apply(&p);
	if (!tap(bad == line && strstr(guise_error(), word), "line %d fails, saying %s", line,
		 word))
		printf("# line %d: %s\n", bad, guise_error());
	if (p.s)
		guise_leave(p.s);
}

static void applies(void)
{
	char value[64];
	int line;

	tap(!parse("name test\n"
		   "memory 48M\n"
		   "clock sim 7\n"
		   "cmdline numa=off\n"
		   "sysctl net.ipv4.tcp_rmem 4096 65536 131072\n"
		   "address lo 192.0.2.1/32\n"
		   "route 198.51.100.0/24 dev lo table 9\n"
		   "rule from 192.0.2.1 table 9\n"
		   "rule to 10.0.0.0/8 iif lo oif lo fwmark 7 priority 100 table 10\n"
		   "rule fwmark 3 table 11\n"
		   "qdisc lo netem delay 1ms loss 0.1% seed 3\n"
		   "mptcp limits 2 3\n"
		   "mptcp endpoint 192.0.2.1 dev lo signal\n"

		   "up lo\n"),
	    "a plan of everything");
	line = plan_apply(&p);
	if (!tap(!line && p.s, "is carried out")) {
		printf("# line %d: %s\n", line, guise_error());
		return;
	}
	tap(guise_sysctl_get(p.s, "net.ipv4.tcp_rmem", value, sizeof(value)) > 0 &&
		    !strcmp(value, "4096\t65536\t131072"),
	    "a value of three words");
	tap(!strcmp(p.s->region->name, "test") && p.s->region->seed == 7 &&
		    p.s->region->ram_size == 48 << 20,
	    "name, seed and memory are the stack's");
	guise_leave(p.s);

	stops("memory 31M\n", 1, "at least 32M");
	stops("memory lots\n", 1, "no size");
	stops("clock sim\n", 1, "clock sim SEED");
	stops("memory 32M\nup eth9\n", 2, "no interface \"eth9\"");
	stops("memory 32M\nlink eth0 tup x\n", 2, "known are tap:IFNAME");
	stops("memory 32M\nlink eth0 tap fd=0\n", 2, "not a tap");
	stops("memory 32M\nguests lo netns=7 10.0.0.1\n", 2, "not fd=N");
	stops("memory 32M\nguests lo fd=0 nowhere\n", 2, "neither mptcp nor an address");
	stops("memory 32M\nguests eth9 fd=0 10.0.0.1\n", 2, "no interface \"eth9\"");
	stops("memory 32M\nguests lo fd=0 10.0.0.1\n", 2, "lo is no link");
	stops("memory 32M\nroute default over lo\n", 2, "known are via, dev, ");
	stops("memory 32M\nroute default dev lo table\n", 2, "table needs a value");
	stops("memory 32M\nrule via 10.0.0.0/8 table 7\n", 2, "from, to, iif");
	stops("memory 32M\nrule to 10.0.0.0/8 table\n", 2, "table needs a value");
	stops("memory 32M\nrule fwmark x table 7\n", 2, "fwmark");
	stops("memory 32M\nrule from 10.0.0.0/8 to fd00::/8 table 7\n", 2, "IPv6");
	stops("memory 32M\nmptcp limits 1 x\n", 2, "no number");
	stops("memory 32M\nmptcp endpoint 192.0.2.1 lo signal\n", 2, "mptcp endpoint ADDR dev");
	stops("memory 32M\nqdisc lo netem delay 5\n", 2, "ms");
	stops("memory 32M\nsysctl net.ipv4.tcp_congestion_control tahoe\n", 2, "valid are ");
}

int main(void)
{
	parses();
	test_find_kernel();
	applies();
	plan_free(&p);
	return tap_end();
}
