// SPDX-License-Identifier: GPL-2.0-only
#include "verdict.h"

#include <stdarg.h>
#include <string.h>

#define SPOKEN 1 /* the version that Linux speaks */

const char *const verdict_names[VERDICTS] = {
	[IS_MPTCP] = "mptcp",
	[PEER_PLAIN] = "peer-plain",
	[STRIPPED_SYN] = "stripped-syn",
	[STRIPPED_ANSWER] = "stripped-answer",
	[PLAIN_OR_STRIPPED] = "plain-or-stripped",
	[STRIPPED_LATER] = "stripped-later",
	[DROPPED] = "dropped",
	[OTHER_VERSION] = "other-version",
	[NOT_END_TO_END] = "not-end-to-end",
	[NOT_ASKED] = "not-asked",
	[WAS_REFUSED] = "refused",
	[NO_ANSWER] = "no-answer",
	[NAME_UNKNOWN] = "name-unknown",
	[CONNECTION_BROKE] = "broke",
};

int verdict_status(enum verdict v)
{
	switch (v) {
	case IS_MPTCP:
		return 0;
	case WAS_REFUSED:
		return 3;
	case NO_ANSWER:
		return 4;
	case NAME_UNKNOWN:
		return 5;
	case CONNECTION_BROKE:
		return 6;
	default:
		return 1;
	}
}

/* The handshake ended without Multipath TCP; why? */
static enum verdict why_plain(const struct evidence *e)
{
	const struct hello *syn = &e->flow.syn, *answer = &e->flow.answer;

	if (e->seen) {
		if (syn->without && !syn->with)
			return NOT_ASKED;
		if (syn->with && syn->without)
			return DROPPED;
		if (answer->capable && answer->version != SPOKEN)
			return OTHER_VERSION;
		if (answer->capable)
			return STRIPPED_LATER;
	}
	if (e->reported && e->report.syn.saw == PLAIN)
		return STRIPPED_SYN;
	if (e->reported && e->report.syn.saw == CAPABLE)
		return e->report.answer.saw == CAPABLE ? STRIPPED_ANSWER : PEER_PLAIN;
	return PLAIN_OR_STRIPPED;
}

/* This side has Multipath TCP; does the other end, and is it the same connection? */
static enum verdict why_not_whole(const struct evidence *e)
{
	const struct report *r = &e->report;
	uint64_t key = e->seen ? e->flow.answer.key : 0;

	if (!e->reported)
		return IS_MPTCP;
	if (r->syn.saw == PLAIN || (key && r->answer.key && key != r->answer.key))
		return NOT_END_TO_END;
	return r->protocol == MPTCP ? IS_MPTCP : STRIPPED_LATER;
}

/* A connection that broke, and was told before that Multipath TCP cannot go on. */
static bool lost_its_options(const struct evidence *e)
{
	const struct stream *in = &e->flow.in, *out = &e->flow.out;

	return e->seen && e->flow.answer.capable && e->flow.answer.version == SPOKEN &&
	       (in->unmapped || ((in->has | out->has) & (1 << MP_FAIL | 1 << MP_INFINITE)));
}

enum verdict verdict_of(const struct evidence *e)
{
	switch (e->outcome) {
	case NO_NAME:
		return NAME_UNKNOWN;
	case NO_SOCKET:
		return NOT_ASKED;
	case REFUSED:
		return WAS_REFUSED;
	case SILENT:
	case UNREACHABLE:
		return NO_ANSWER;
	case BROKE:
		return lost_its_options(e) ? STRIPPED_LATER : CONNECTION_BROKE;
	default:
		return e->state.mptcp && !e->state.fallback ? why_not_whole(e) : why_plain(e);
	}
}

static int paths(const struct evidence *e)
{
	return e->state.n_subflows ? e->state.n_subflows : (int)e->state.joined + 1;
}

void verdict_headline(const struct evidence *e, enum verdict v, char *text, size_t size)
{
	static const char *const meanings[VERDICTS] = {
		[PEER_PLAIN] = "plain TCP: the other end's kernel answers without Multipath TCP",
		[STRIPPED_SYN] = "plain TCP: something between strips the option from the SYN",
		[STRIPPED_ANSWER] =
			"plain TCP: something between strips the option from the answer to the SYN",
		[PLAIN_OR_STRIPPED] = "plain TCP: the answer to the SYN came without the option",
		[STRIPPED_LATER] = "plain TCP after a handshake of Multipath TCP: it fell back",
		[DROPPED] = "plain TCP: only a SYN without the option was answered",
		[OTHER_VERSION] =
			"plain TCP: the other end speaks another version of Multipath TCP",
		[NOT_END_TO_END] =
			"Multipath TCP ends between here and there: it is not end to end",
		[NOT_ASKED] = "plain TCP: this side did not ask for Multipath TCP",
		[WAS_REFUSED] = "refused: nothing listens there, or a firewall says so",
		[NO_ANSWER] = "no answer",
		[NAME_UNKNOWN] = "the name was not found",
		[CONNECTION_BROKE] = "the connection broke before it could be judged",
	};

	if (v == STRIPPED_LATER && e->outcome == BROKE)
		snprintf(text, size,
			 "%s: Multipath TCP broke after its handshake, and the connection with it",
			 e->host);
	else if (v != IS_MPTCP)
		snprintf(text, size, "%s: %s", e->host, meanings[v]);
	else if (paths(e) > 1)
		snprintf(text, size, "%s: Multipath TCP%s, over %d paths", e->host,
			 e->reported ? " end to end" : "", paths(e));
	else
		snprintf(text, size, "%s: Multipath TCP works%s, and there is one path", e->host,
			 e->reported ? " end to end" : "");
}

/* ---- sentences ------------------------------------------------------------------------- */

struct teller {
	void (*tell)(void *with, const char *sentence);
	void *with;
};

__attribute__((format(printf, 2, 3))) static void say(struct teller *t, const char *format, ...)
{
	char text[600];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	t->tell(t->with, text);
}

static void say_handshake(struct teller *t, const struct evidence *e)
{
	const struct hello *syn = &e->flow.syn, *answer = &e->flow.answer;

	if (!e->seen) {
		say(t, "The packets could not be seen (a packet socket takes CAP_NET_RAW), so this "
		       "is what the socket says.");
		return;
	}
	if (syn->with)
		say(t, "The SYN went out with MP_CAPABLE, version %u%s.", syn->version,
		    syn->with > 1 ? ", more than once" : "");
	if (syn->without)
		say(t, "%s SYN went out without the option.", syn->with ? "Then a" : "The");
	if (answer->capable)
		say(t, "The answer came with MP_CAPABLE, version %u.", answer->version);
	else if (answer->without)
		say(t, "The answer came without the option.");
}

static void say_what_ended_it(struct teller *t, const struct evidence *e)
{
	const struct stream *in = &e->flow.in, *out = &e->flow.out;

	if (!e->seen)
		return;
	if ((in->has | out->has) & 1 << MP_FAIL)
		say(t,
		    "MP_FAIL %s: bytes came that do not fit their checksum or mapping, as when a "
		    "middlebox rewrites data.",
		    !(in->has & 1 << MP_FAIL)    ? "was sent"
		    : !(out->has & 1 << MP_FAIL) ? "came from the other end"
						 : "went in both directions");
	if ((in->has | out->has) & 1 << MP_INFINITE)
		say(t, "An infinite mapping was seen: from there on it is TCP for good.");
	if (in->unmapped)
		say(t, "%u segments of data came without a mapping (DSS)%s.", in->unmapped,
		    in->mapped ? ", others with one" : "");
	if (in->reset && in->has & 1 << MP_TCPRST)
		say(t, "A reset came with MP_TCPRST, reason %u%s.", in->reason,
		    in->reason == 6 ? " (a middlebox interferes)" : "");
	else if (in->reset)
		say(t, "A reset came.");
	if (out->reset && out->has & 1 << MP_TCPRST)
		say(t, "This side sent a reset with MP_TCPRST, reason %u%s.", out->reason,
		    out->reason == 6 ? " (a middlebox interferes)" : "");
}

static void say_later(struct teller *t, const struct evidence *e)
{
	const struct report *r = &e->report;

	say_what_ended_it(t, e);
	if (e->outcome == BROKE) {
		say(t, "So something between strips options from segments behind the handshake, or "
		       "rewrites data.");
		return;
	}
	if (!e->reported) {
		say(t, "So options are stripped from segments behind the handshake, or data is "
		       "rewritten. guise check-mptcp --serve at the other end could say which.");
		return;
	}
	if (r->syn.saw == UNSEEN)
		say(t, "The other end could not see its packets; its socket is %s.",
		    r->protocol == MPTCP ? "one of Multipath TCP" : "one of TCP");
	else if (!r->in)
		say(t, "The other end saw the option on the SYN, and on nothing that came behind "
		       "it: something between strips it from later segments.");
	else
		say(t, "The other end saw options behind the handshake, so it was whole at first: "
		       "something between strips or rewrites later.");
}

static void say_why_plain(struct teller *t, const struct evidence *e, enum verdict v)
{
	switch (v) {
	case PEER_PLAIN:
		say(t,
		    "The other end saw the option on the SYN and answered without: Multipath TCP "
		    "is off there (sysctl net.mptcp.enabled), or its limits are reached.");
		break;
	case STRIPPED_SYN:
		say(t, "The option was sent and did not arrive: the other end saw a SYN without "
		       "it.");
		break;
	case STRIPPED_ANSWER:
		say(t, "The other end saw the option on the SYN and answered with it, and that did "
		       "not arrive.");
		break;
	case PLAIN_OR_STRIPPED:
		if (e->reported)
			say(t, "The other end could not see its packets (--serve takes CAP_NET_RAW "
			       "for that), so it cannot say whether the option arrived.");
		say(t,
		    "Either the program or the kernel there does not speak Multipath TCP, or a "
		    "middlebox strips the option.%s",
		    e->reported ? ""
				: " guise check-mptcp --serve at the other end tells them apart.");
		break;
	case OTHER_VERSION:
		say(t,
		    "Linux speaks version %d (RFC 8684) alone. A peer of version 0 (RFC 6824) is "
		    "an older kernel, such as that of multipath-tcp.org.",
		    SPOKEN);
		break;
	case DROPPED:
		say(t, "Something between drops SYNs that have the option; the kernel then went on "
		       "without.");
		break;
	case NOT_ASKED:
		say(t, "%s",
		    e->outcome == NO_SOCKET
			    ? "This kernel makes no socket of Multipath TCP: it was built without, or "
			      "sysctl net.mptcp.enabled is 0."
			    : "Its kernel found earlier that SYNs with the option are dropped, and "
			      "pauses (sysctl net.mptcp.blackhole_timeout), or may not use it here.");
		break;
	case NOT_END_TO_END:
		say(t, "%s",
		    e->report.syn.saw == PLAIN
			    ? "This side has Multipath TCP, and the other end saw a SYN without the "
			      "option: a proxy between answers in its place."
			    : "The two ends saw different keys: a proxy between speaks Multipath TCP "
			      "with each of them.");
		break;
	default:
		break;
	}
}

static void say_paths(struct teller *t, const struct evidence *e)
{
	char from[ADDRESS_TEXT], to[ADDRESS_TEXT];

	for (int i = 0; i < e->n_joins; i++) {
		static const char *const results[] = {
			[JOIN_UNANSWERED] = "got no answer",
			[JOIN_REFUSED] = "was reset",
			[JOIN_PLAIN] = "was answered without the option: it is stripped there",
		};

		if (e->join[i].result != JOINED)
			say(t, "A further path from %s to %s was tried and %s.",
			    address_text(&e->join[i].from, from), address_text(&e->join[i].to, to),
			    results[e->join[i].result]);
	}
	if (e->told_addresses)
		say(t, "The other end told of a further address (ADD_ADDR).");
}

static void say_data(struct teller *t, const struct evidence *e)
{
	const struct flow *f = &e->flow;

	if (!e->got)
		say(t, "The other end sent no data, so only this side's was seen over it.");
	else if (!e->seen || (f->in.mapped && f->out.mapped && !f->in.unmapped && !f->out.unmapped))
		say(t, "Data of both directions went over it.");
	else
		say(t, "Data went over it; %u segments came and %u went without a mapping.",
		    f->in.unmapped, f->out.unmapped);
	if (e->reported)
		say(t, "The other end says the same%s.",
		    e->seen && f->answer.key && f->answer.key == e->report.answer.key
			    ? ", and has the same key"
			    : "");
	else
		say(t, "Whether the other end has it, and no proxy in its place, guise check-mptcp "
		       "--serve there can say.");
}

/* A NAT, which Multipath TCP bears. */
static void say_seen_as(struct teller *t, const struct evidence *e)
{
	char here[ADDRESS_TEXT], there[ADDRESS_TEXT];

	if (!e->reported || !e->report.from.family || !e->local.family ||
	    address_equal(&e->report.from, &e->local))
		return;
	say(t, "The other end sees %s as %s: a NAT between translates.",
	    address_text(&e->local, here), address_text(&e->report.from, there));
}

static void say_counter(void *with, const char *name, uint64_t by)
{
	FILE *list = with;

	fprintf(list, " %s %llu", name, (unsigned long long)by);
}

static void say_counters(struct teller *t, const struct evidence *e)
{
	char list[500] = "";
	FILE *file = fmemopen(list, sizeof(list), "w");

	if (!file)
		return;
	counters_grown(&e->before, &e->after, say_counter, file);
	fclose(file);
	list[sizeof(list) - 1] = '\0';
	if (*list)
		say(t, "Counters of this stack that grew meanwhile:%s.", list);
}

void verdict_sentences(const struct evidence *e, enum verdict v,
		       void (*tell)(void *with, const char *sentence), void *with)
{
	struct teller t = { tell, with };

	switch (v) {
	case NAME_UNKNOWN:
		say(&t, "%s.", e->problem);
		return;
	case NO_ANSWER:
		if (e->outcome == UNREACHABLE)
			say(&t, "%s.", strerror(e->error));
		else
			say(&t, "Nothing came within %g s, to SYNs with the option%s.", e->patience,
			    e->seen && e->flow.syn.without ? " and without" : "");
		return;
	case WAS_REFUSED:
		return;
	case CONNECTION_BROKE:
		say_handshake(&t, e);
		say(&t, "It ended with: %s.", strerror(e->error));
		say_what_ended_it(&t, e);
		break;
	case IS_MPTCP:
		say_handshake(&t, e);
		say_data(&t, e);
		say_paths(&t, e);
		say_seen_as(&t, e);
		return;
	case STRIPPED_LATER:
		say_handshake(&t, e);
		if (e->outcome == BROKE)
			say(&t, "It ended with: %s.", strerror(e->error));
		say_later(&t, e);
		say_seen_as(&t, e);
		break;
	default:
		if (e->outcome != NO_SOCKET)
			say_handshake(&t, e);
		say_why_plain(&t, e, v);
		say_seen_as(&t, e);
		break;
	}
	say_counters(&t, e);
}
