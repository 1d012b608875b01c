// SPDX-License-Identifier: GPL-2.0-only
/* From evidence to a verdict, its headline and its sentences. */
#include "verdict.h"

#include "test/tap.h"

#include <errno.h>

static struct evidence e;
static char said[4000];

static void collect(void *with, const char *sentence)
{
	size_t n = strlen(said);

	(void)with;
	snprintf(said + n, sizeof(said) - n, "%s\n", sentence);
}

/* Evidence of Multipath TCP as it should be. */
static void begin(void)
{
	memset(&e, 0, sizeof(e));
	e.host = "peer:80";
	e.connected = e.seen = e.reported = true;
	e.got = 1;
	e.state.mptcp = true;
	e.flow.syn.with = e.flow.answer.with = 1;
	e.flow.syn.capable = e.flow.answer.capable = true;
	e.flow.syn.version = e.flow.answer.version = 1;
	e.flow.answer.key = e.report.answer.key = 7;
	e.flow.in.mapped = e.flow.out.mapped = 1;
	e.report.protocol = MPTCP;
	e.report.syn.saw = e.report.answer.saw = CAPABLE;
	e.report.in = 1 << MP_CAPABLE;
}

static void is(enum verdict expected, int status, const char *headline, const char *sentence)
{
	enum verdict v = verdict_of(&e);
	char text[300];

	verdict_headline(&e, v, text, sizeof(text));
	said[0] = '\0';
	verdict_sentences(&e, v, collect, NULL);
	if (!tap(v == expected && verdict_status(v) == status && strstr(text, headline) &&
			 strstr(said, sentence),
		 "%s: %s", verdict_names[expected], sentence))
		printf("# %s: %s\n# %s\n", verdict_names[v], text, said);
}

static void plain(void)
{
	e.state.fallback = true;
	e.flow.answer.capable = false;
	e.flow.answer.with = 0;
	e.flow.answer.without = 1;
}

int main(void)
{
	begin();
	is(IS_MPTCP, 0, "works end to end, and there is one path", "has the same key");
	e.state.n_subflows = 3;
	is(IS_MPTCP, 0, "end to end, over 3 paths", "Data of both directions");
	e.reported = false;
	is(IS_MPTCP, 0, "Multipath TCP, over 3 paths", "--serve there can say");
	begin();
	e.seen = false;
	is(IS_MPTCP, 0, "one path", "CAP_NET_RAW");
	begin();
	e.report.answer.key = 8;
	is(NOT_END_TO_END, 1, "not end to end", "different keys");
	e.report.syn.saw = PLAIN;
	is(NOT_END_TO_END, 1, "not end to end", "answers in its place");
	begin();
	e.report.protocol = TCP;
	e.report.in = 0;
	is(STRIPPED_LATER, 1, "fell back", "nothing that came behind");
	begin();
	e.state.fallback = true;
	e.flow.in.has = 1 << MP_FAIL;
	e.flow.out.has = 1 << MP_INFINITE;
	is(STRIPPED_LATER, 1, "fell back", "MP_FAIL came from");
	is(STRIPPED_LATER, 1, "fell back", "infinite mapping");
	e.outcome = BROKE;
	e.error = ECONNRESET;
	is(STRIPPED_LATER, 1, "the connection with it", "Connection reset");
	begin();
	e.outcome = BROKE;
	e.error = ETIMEDOUT;
	is(CONNECTION_BROKE, 6, "broke", "timed out");
	begin();
	plain();
	is(STRIPPED_ANSWER, 1, "from the answer", "did not arrive");
	e.report.answer.saw = PLAIN;
	is(PEER_PLAIN, 1, "the other end's kernel", "net.mptcp.enabled");
	e.report.syn.saw = PLAIN;
	is(STRIPPED_SYN, 1, "from the SYN", "was sent and did not arrive");
	e.report.syn.saw = UNSEEN;
	is(PLAIN_OR_STRIPPED, 1, "plain TCP", "takes CAP_NET_RAW");
	e.reported = false;
	is(PLAIN_OR_STRIPPED, 1, "plain TCP", "tells them apart");
	e.flow.syn.without = 1;
	is(DROPPED, 1, "only a SYN without", "drops SYNs");
	e.flow.syn.with = 0;
	is(NOT_ASKED, 1, "did not ask", "blackhole_timeout");
	begin();
	plain();
	e.flow.answer.capable = true;
	e.flow.answer.version = 0;
	is(OTHER_VERSION, 1, "another version", "RFC 6824");
	begin();
	e.outcome = NO_SOCKET;
	is(NOT_ASKED, 1, "did not ask", "net.mptcp.enabled is 0");
	e.outcome = REFUSED;
	is(WAS_REFUSED, 3, "refused", "");
	e.outcome = SILENT;
	e.patience = 0.5;
	is(NO_ANSWER, 4, "no answer", "within 0.5 s");
	e.outcome = UNREACHABLE;
	e.error = ENETUNREACH;
	is(NO_ANSWER, 4, "no answer", "unreachable");
	e.outcome = NO_NAME;
	e.problem = "not known";
	is(NAME_UNKNOWN, 5, "was not found", "not known");
	return tap_end();
}
