// SPDX-License-Identifier: GPL-2.0-only
/* Rights, from texts of /proc/PID/status, and those of this process. */
#include "region/rights.h"

#include "test/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* A user without capabilities. */
#define HEAD   "Name:\tx\nUid:\t1000\t1000\t1000\t1000\nGid:\t100\t100\t100\t100\n"
#define GROUPS "Groups:\t4 100 \n"
#define CAPS   "CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n"
#define BOUND  "CapBnd:\t000001ffffffffff\nCapAmb:\t0000000000000000\n"
#define TAIL   "NoNewPrivs:\t0\nSeccomp:\t0\nSeccomp_filters:\t0\nThreads:\t1\n"
#define USER   HEAD GROUPS CAPS BOUND TAIL

#define ROOT_CAPS "CapInh:\t0000000000000000\nCapPrm:\t000001ffffffffff\n"
#define ROOT      "Name:\tx\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nGroups:\t \n" ROOT_CAPS BOUND TAIL
/* seteuid(1000) */
#define ROOT_AS_USER \
	"Name:\tx\nUid:\t0\t1000\t0\t1000\nGid:\t0\t0\t0\t0\nGroups:\t4 \n" ROOT_CAPS BOUND TAIL

static struct guise_rights first, second;

static bool same(const char *a, const char *b)
{
	memset(&first, 0, sizeof(first));
	memset(&second, 0, sizeof(second));
	return guise_rights_parse(&first, a) && guise_rights_parse(&second, b) &&
	       guise_rights_same(&first, &second);
}

static void texts(void)
{
	static const struct {
		const char *what, *text;
	} other[] = {
		{ "real user",
		  "Name:\tx\nUid:\t1001\t1000\t1000\t1000\nGid:\t100\t100\t100\t100\n" GROUPS CAPS
			  BOUND TAIL },
		{ "saved user",
		  "Name:\tx\nUid:\t1000\t1000\t0\t1000\nGid:\t100\t100\t100\t100\n" GROUPS CAPS
			  BOUND TAIL },
		{ "group",
		  "Name:\tx\nUid:\t1000\t1000\t1000\t1000\nGid:\t100\t4\t100\t100\n" GROUPS CAPS
			  BOUND TAIL },
		{ "list of groups", HEAD "Groups:\t100 \n" CAPS BOUND TAIL },
		{ "capability",
		  HEAD GROUPS "CapInh:\t0000000000000000\nCapPrm:\t0000000000000400\n" BOUND TAIL },
		{ "bounding set",
		  HEAD GROUPS CAPS "CapBnd:\t000001fffffffffe\nCapAmb:\t0000000000000000\n" TAIL },
		{ "no_new_privs",
		  HEAD GROUPS CAPS BOUND "NoNewPrivs:\t1\nSeccomp:\t0\nSeccomp_filters:\t0\n" },
		{ "filter",
		  HEAD GROUPS CAPS BOUND "NoNewPrivs:\t0\nSeccomp:\t2\nSeccomp_filters:\t1\n" },
	};

	tap(same(USER, USER), "the same");
	tap(first.user[0] == 1000 && !first.takes_users, "whose they are");
	tap(same(USER, "Name:\tUid:\t0\n" USER), "a name that looks like a line of rights is none");
	for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++)
		tap(!same(USER, other[i].text), "not with another %s", other[i].what);
	tap(same(ROOT, ROOT_AS_USER) && first.takes_users && !second.user[0],
	    "root has given up nothing by taking a user for a while");
	tap(!same(ROOT, USER), "root and a user");
	tap(!same(HEAD GROUPS CAPS, HEAD GROUPS CAPS), "nothing is known where a line is missing");
	tap(!same("", ""), "... or all");
	first.namespace = 1;
	second = first;
	tap(guise_rights_parse(&first, USER) && guise_rights_parse(&second, USER) &&
		    guise_rights_same(&first, &second),
	    "one user namespace");
	second.namespace = 2;
	tap(!guise_rights_same(&first, &second), "two");
	second.namespace = 1;
	strcpy(second.label, "confined");
	tap(!guise_rights_same(&first, &second), "another label");
}

/* More groups than there is room for: nothing is known. */
static void many_groups(void)
{
	static char text[4 * GUISE_RIGHTS_BYTES];
	size_t n = (size_t)sprintf(text, "%sGroups:\t", HEAD);

	while (n < 2 * GUISE_RIGHTS_BYTES)
		n += (size_t)sprintf(text + n, "%zu ", n);
	strcpy(text + n, "\n" CAPS BOUND TAIL);
	tap(!same(text, text), "a list of groups that is too long");
}

static void processes(void)
{
	struct guise_rights *own = malloc(sizeof(*own));
	pid_t pid;
	int status;

	tap(guise_rights_read(0, own) && own->user[0] == getuid(), "this process");
	tap(guise_rights_read(getpid(), &second) && guise_rights_same(own, &second), "by its pid");
	pid = fork();
	if (!pid) {
		bool was = guise_rights_read(0, &first) && guise_rights_same(own, &first);

		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		_exit(was && guise_rights_read(0, &first) && !guise_rights_same(own, &first) ? 0
											     : 1);
	}
	tap(waitpid(pid, &status, 0) == pid && !status, "a child, until it gives some up");
	tap(!guise_rights_read(pid, &second) && !guise_rights_same(own, &second),
	    "of a process that has ended nothing is known");
	free(own);
}

int main(void)
{
	texts();
	many_groups();
	processes();
	return tap_end();
}
