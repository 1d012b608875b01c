// SPDX-License-Identifier: GPL-2.0-only
/* A verdict as text, and as one JSON object in a line. */
#include "verdict.h"

#include <inttypes.h>

static void print_sentence(void *with, const char *sentence)
{
	fprintf(with, "  %s\n", sentence);
}

static void print_bytes(FILE *out, const char *what, uint64_t n)
{
	if (n < 10000)
		fprintf(out, ", %s %" PRIu64 " byte%s", what, n, n == 1 ? "" : "s");
	else
		fprintf(out, ", %s %" PRIu64 " kB", what, n / 1000);
}

void verdict_print(const struct evidence *e, FILE *out)
{
	char text[400], one[ADDRESS_TEXT], other[ADDRESS_TEXT];
	enum verdict v = verdict_of(e);

	verdict_headline(e, v, text, sizeof(text));
	fprintf(out, "%s\n", text);
	for (int i = 0; v == IS_MPTCP && i < e->state.n_subflows; i++) {
		const struct subflow *f = &e->state.subflow[i];

		fprintf(out, "  %s -> %s", address_text(&f->local, one),
			address_text(&f->remote, other));
		print_bytes(out, "sent", f->sent);
		print_bytes(out, "received", f->received);
		fprintf(out, ", rtt %.1f ms\n", f->rtt_us / 1e3);
	}
	verdict_sentences(e, v, print_sentence, out);
}

/* ---- JSON ------------------------------------------------------------------------------ */

static void put_text(FILE *out, const char *text)
{
	putc('"', out);
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			fprintf(out, "\\%c", c);
		else if (c < 0x20 || c >= 0x7f)
			fprintf(out, "\\u%04x", c);
		else
			putc(c, out);
	}
	putc('"', out);
}

static void put_key(FILE *out, const char *key)
{
	fputs(", ", out);
	put_text(out, key);
	fputs(": ", out);
}

static void put_address(FILE *out, const char *key, const struct address *a)
{
	char text[ADDRESS_TEXT];

	put_key(out, key);
	if (a->family)
		put_text(out, address_text(a, text));
	else
		fputs("null", out);
}

static void put_bool(FILE *out, const char *key, bool value)
{
	put_key(out, key);
	fputs(value ? "true" : "false", out);
}

struct list {
	FILE *out;
	bool begun;
};

static void put_sentence(void *with, const char *sentence)
{
	struct list *l = with;

	if (l->begun)
		fputs(", ", l->out);
	l->begun = true;
	put_text(l->out, sentence);
}

static void put_counter(void *with, const char *name, uint64_t by)
{
	struct list *l = with;

	if (l->begun)
		fputs(", ", l->out);
	l->begun = true;
	put_text(l->out, name);
	fprintf(l->out, ": %" PRIu64, by);
}

static void put_kinds(FILE *out, const char *key, uint16_t kinds)
{
	struct list l = { out, false };

	put_key(out, key);
	putc('[', out);
	for (int i = 0; i < MP_KINDS; i++)
		if (kinds & 1 << i)
			put_sentence(&l, segment_kinds[i]);
	putc(']', out);
}

static void put_version(FILE *out, const char *key, bool seen, bool capable, unsigned int version)
{
	put_key(out, key);
	if (!seen)
		fputs("null", out);
	else if (capable)
		fprintf(out, "{\"mp_capable\": true, \"version\": %u}", version);
	else
		fputs("{\"mp_capable\": false}", out);
}

static void put_report(FILE *out, const struct report *r)
{
	static const char *const protocols[] = { "tcp", "fallback", "mptcp" };

	fputs("{\"protocol\": ", out);
	put_text(out, protocols[r->protocol]);
	put_address(out, "from", &r->from);
	put_version(out, "syn", r->syn.saw != UNSEEN, r->syn.saw == CAPABLE, r->syn.version);
	put_version(out, "answer", r->answer.saw != UNSEEN, r->answer.saw == CAPABLE,
		    r->answer.version);
	put_kinds(out, "in", r->in);
	put_kinds(out, "out", r->out);
	put_key(out, "subflows");
	fprintf(out, "%d", r->n_subflows);
	put_key(out, "bytes");
	fprintf(out, "%" PRIu64, r->bytes);
	putc('}', out);
}

static void put_subflows(FILE *out, const struct state *s)
{
	put_key(out, "subflows");
	putc('[', out);
	for (int i = 0; i < s->n_subflows; i++) {
		const struct subflow *f = &s->subflow[i];
		char text[ADDRESS_TEXT];

		fputs(i ? ", {\"local\": " : "{\"local\": ", out);
		put_text(out, address_text(&f->local, text));
		put_address(out, "remote", &f->remote);
		fprintf(out,
			", \"sent\": %" PRIu64 ", \"received\": %" PRIu64
			", \"rtt_us\": %u, \"retransmits\": %u}",
			f->sent, f->received, f->rtt_us, f->retransmits);
	}
	putc(']', out);
}

static void put_joins(FILE *out, const struct evidence *e)
{
	static const char *const results[] = { [JOINED] = "joined",
					       [JOIN_UNANSWERED] = "no-answer",
					       [JOIN_REFUSED] = "reset",
					       [JOIN_PLAIN] = "stripped" };

	put_key(out, "joins");
	putc('[', out);
	for (int i = 0; i < e->n_joins; i++) {
		fputs(i ? ", {\"result\": " : "{\"result\": ", out);
		put_text(out, results[e->join[i].result]);
		put_address(out, "local", &e->join[i].from);
		put_address(out, "remote", &e->join[i].to);
		putc('}', out);
	}
	putc(']', out);
}

void verdict_print_json(const struct evidence *e, FILE *out)
{
	const struct flow *f = &e->flow;
	enum verdict v = verdict_of(e);
	struct list list = { out, false };
	char text[400];

	verdict_headline(e, v, text, sizeof(text));
	fputs("{\"verdict\": ", out);
	put_text(out, verdict_names[v]);
	put_bool(out, "mptcp", v == IS_MPTCP);
	put_bool(out, "confirmed", v == IS_MPTCP && e->reported);
	put_key(out, "headline");
	put_text(out, text);
	put_key(out, "sentences");
	putc('[', out);
	verdict_sentences(e, v, put_sentence, &list);
	putc(']', out);
	put_address(out, "local", &e->local);
	put_address(out, "remote", &e->remote);
	put_bool(out, "fallback", e->state.mptcp && e->state.fallback);
	put_key(out, "bytes_sent");
	fprintf(out, "%" PRIu64 ", \"bytes_received\": %" PRIu64, e->sent, e->got);
	put_bool(out, "packets_seen", e->seen);
	put_version(out, "syn", e->seen, f->syn.capable && !f->syn.without, f->syn.version);
	put_version(out, "answer", e->seen && (f->answer.with || f->answer.without),
		    f->answer.capable, f->answer.version);
	put_kinds(out, "options_sent", f->out.has);
	put_kinds(out, "options_received", f->in.has);
	put_bool(out, "add_addr_received", e->told_addresses);
	put_subflows(out, &e->state);
	put_joins(out, e);
	put_key(out, "counters");
	putc('{', out);
	list.begun = false;
	counters_grown(&e->before, &e->after, put_counter, &list);
	putc('}', out);
	put_key(out, "peer");
	if (e->reported)
		put_report(out, &e->report);
	else
		fputs("null", out);
	fputs("}\n", out);
}
