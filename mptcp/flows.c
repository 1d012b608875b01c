// SPDX-License-Identifier: GPL-2.0-only
#include "flows.h"

#include <string.h>

static bool is_of(const struct flow *f, const struct address *from, const struct address *to)
{
	return f->last && address_equal(&f->from, from) && address_equal(&f->to, to);
}

static struct flow *find(struct flows *f, const struct segment *s)
{
	for (int i = 0; i < FLOWS; i++)
		if (is_of(&f->flow[i], &s->from, &s->to) || is_of(&f->flow[i], &s->to, &s->from))
			return &f->flow[i];
	return NULL;
}

static struct flow *take(struct flows *f)
{
	struct flow *quiet = &f->flow[0];

	for (int i = 0; i < FLOWS; i++)
		if (f->flow[i].last < quiet->last)
			quiet = &f->flow[i];
	return quiet;
}

static void begin(struct flow *flow, const struct segment *s)
{
	memset(flow, 0, sizeof(*flow));
	flow->from = s->from;
	flow->to = s->to;
}

static void greet(struct hello *h, const struct segment *s)
{
	if (!(s->has & (1 << MP_CAPABLE | 1 << MP_JOIN))) {
		h->without++;
		return;
	}
	h->with++;
	h->capable = s->has & 1 << MP_CAPABLE;
	h->join = s->has & 1 << MP_JOIN;
	h->version = s->version;
	h->key = s->key;
}

static void go_on(struct stream *t, const struct segment *s)
{
	t->has |= s->has;
	if (s->data) {
		if (s->has & (1 << MP_DSS | 1 << MP_CAPABLE))
			t->mapped++;
		else
			t->unmapped++;
	}
	if (s->flags & TCP_RST) {
		t->reset = true;
		if (s->has & 1 << MP_TCPRST)
			t->reason = s->reason;
	}
}

void flows_see(struct flows *f, const struct segment *s)
{
	bool first = (s->flags & (TCP_SYN | TCP_ACK)) == TCP_SYN;
	struct flow *flow = find(f, s);

	if (!flow) {
		if (!first)
			return; /* it began before us, and its direction is not known */
		flow = take(f);
		begin(flow, s);
	} else if (first && (flow->out.has || flow->out.mapped || flow->out.unmapped)) {
		begin(flow, s); /* the same ports once more */
	}
	flow->last = ++f->clock;
	if (first)
		greet(&flow->syn, s);
	else if (s->flags & TCP_SYN)
		greet(&flow->answer, s);
	else
		go_on(address_equal(&flow->from, &s->from) ? &flow->out : &flow->in, s);
}

const struct flow *flows_find(const struct flows *f, const struct address *one,
			      const struct address *other)
{
	for (int i = 0; i < FLOWS; i++)
		if (is_of(&f->flow[i], one, other) || is_of(&f->flow[i], other, one))
			return &f->flow[i];
	return NULL;
}
