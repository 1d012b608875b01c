// SPDX-License-Identifier: GPL-2.0-only
/*
 * The root queueing discipline of an interface.
 *
 * A netem that is there already is changed, not replaced, so that the packets in it
 * are not lost. Every attribute is sent, because one that is left out would keep its old
 * value. Qdiscs of other kinds are made anew; an old one stays until the new one has been
 * made.
 */
#include "region/stack.h"
#include "setup/nl.h"
#include "setup/qdisc_spec.h"
#include "setup/setup.h"

#include <errno.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <string.h>

/* Since Linux 6.6; Debian 12's headers do not have it. */
#define NETEM_PRNG_SEED 14
#define NETEM_LIMIT     1000 /* packets; tc's default */

static uint32_t clamp32(uint64_t v)
{
	return v < UINT32_MAX ? (uint32_t)v : UINT32_MAX;
}

static void put_netem(struct guise_nl *m, const struct guise_qdisc *q)
{
	const uint64_t *delay = q->word[GUISE_Q_DELAY].v, *loss = q->word[GUISE_Q_LOSS].v;
	const uint64_t *dup = q->word[GUISE_Q_DUPLICATE].v, *re = q->word[GUISE_Q_REORDER].v;
	uint64_t rate = q->word[GUISE_Q_RATE].v[0];
	struct tc_netem_qopt opt = {
		.limit = NETEM_LIMIT,
		.loss = (uint32_t)loss[0],
		.duplicate = (uint32_t)dup[0],
	};
	struct tc_netem_corr corr = {
		.delay_corr = (uint32_t)delay[2],
		.loss_corr = (uint32_t)loss[1],
		.dup_corr = (uint32_t)dup[1],
	};
	struct tc_netem_reorder reorder = { (uint32_t)re[0], (uint32_t)re[1] };
	struct tc_netem_corrupt corrupt = {
		(uint32_t)q->word[GUISE_Q_CORRUPT].v[0],
		(uint32_t)q->word[GUISE_Q_CORRUPT].v[1],
	};
	struct tc_netem_rate limit = { .rate = clamp32(rate) };
	size_t nest;

	if (q->word[GUISE_Q_LIMIT].set)
		opt.limit = (uint32_t)q->word[GUISE_Q_LIMIT].v[0];
	/* A gap of 1: each packet is a candidate. 0 would switch reordering off. */
	if (re[0])
		opt.gap = q->word[GUISE_Q_GAP].set ? (uint32_t)q->word[GUISE_Q_GAP].v[0] : 1;

	nest = guise_nl_nest(m, TCA_OPTIONS, &opt, sizeof(opt));
	guise_nl_put(m, TCA_NETEM_CORR, &corr, sizeof(corr));
	guise_nl_put(m, TCA_NETEM_REORDER, &reorder, sizeof(reorder));
	guise_nl_put(m, TCA_NETEM_CORRUPT, &corrupt, sizeof(corrupt));
	guise_nl_put(m, TCA_NETEM_RATE, &limit, sizeof(limit));
	if (rate > UINT32_MAX)
		guise_nl_u64(m, TCA_NETEM_RATE64, rate);
	guise_nl_u64(m, TCA_NETEM_LATENCY64, delay[0]);
	guise_nl_u64(m, TCA_NETEM_JITTER64, delay[1]);
	guise_nl_u32(m, TCA_NETEM_ECN, q->word[GUISE_Q_ECN].set);
	if (q->word[GUISE_Q_SEED].set)
		guise_nl_u64(m, NETEM_PRNG_SEED, q->word[GUISE_Q_SEED].v[0]);
	guise_nl_end(m, nest);
}

static void put_tbf(struct guise_nl *m, const struct guise_qdisc *q)
{
	uint64_t rate = q->word[GUISE_Q_RATE].v[0], burst = q->word[GUISE_Q_BURST].v[0];
	struct tc_tbf_qopt opt = {
		/* Not "unaware": the kernel would want a table of transmission times. */
		.rate = { .linklayer = TC_LINKLAYER_ETHERNET, .rate = clamp32(rate) },
		.limit = (uint32_t)q->word[GUISE_Q_LIMIT].v[0],
	};
	size_t nest;

	/* The queue holds what the bucket passes at once, and what arrives during the latency. */
	if (q->word[GUISE_Q_LATENCY].set)
		opt.limit = clamp32(
			(uint64_t)((double)rate * (double)q->word[GUISE_Q_LATENCY].v[0] / 1e9) +
			burst);
	nest = guise_nl_nest(m, TCA_OPTIONS, NULL, 0);
	guise_nl_put(m, TCA_TBF_PARMS, &opt, sizeof(opt));
	guise_nl_u32(m, TCA_TBF_BURST, (uint32_t)burst);
	if (rate > UINT32_MAX)
		guise_nl_u64(m, TCA_TBF_RATE64, rate);
	guise_nl_end(m, nest);
}

static void put_word(struct guise_nl *m, const struct guise_qdisc *q, uint16_t type,
		     enum guise_qdisc_word word, uint64_t divide)
{
	if (q->word[word].set)
		guise_nl_u32(m, type, clamp32(q->word[word].v[0] / divide));
}

static void put_fq(struct guise_nl *m, const struct guise_qdisc *q)
{
	size_t nest = guise_nl_nest(m, TCA_OPTIONS, NULL, 0);

	put_word(m, q, TCA_FQ_PLIMIT, GUISE_Q_LIMIT, 1);
	put_word(m, q, TCA_FQ_FLOW_PLIMIT, GUISE_Q_FLOW_LIMIT, 1);
	put_word(m, q, TCA_FQ_QUANTUM, GUISE_Q_QUANTUM, 1);
	put_word(m, q, TCA_FQ_INITIAL_QUANTUM, GUISE_Q_INITIAL_QUANTUM, 1);
	put_word(m, q, TCA_FQ_FLOW_MAX_RATE, GUISE_Q_MAXRATE, 1);
	if (q->word[GUISE_Q_PACING].set || q->word[GUISE_Q_NOPACING].set)
		guise_nl_u32(m, TCA_FQ_RATE_ENABLE, q->word[GUISE_Q_PACING].set);
	guise_nl_end(m, nest);
}

static void put_fq_codel(struct guise_nl *m, const struct guise_qdisc *q)
{
	size_t nest = guise_nl_nest(m, TCA_OPTIONS, NULL, 0);

	put_word(m, q, TCA_FQ_CODEL_LIMIT, GUISE_Q_LIMIT, 1);
	put_word(m, q, TCA_FQ_CODEL_FLOWS, GUISE_Q_FLOWS, 1);
	put_word(m, q, TCA_FQ_CODEL_TARGET, GUISE_Q_TARGET, 1000); /* us */
	put_word(m, q, TCA_FQ_CODEL_INTERVAL, GUISE_Q_INTERVAL, 1000);
	put_word(m, q, TCA_FQ_CODEL_QUANTUM, GUISE_Q_QUANTUM, 1);
	if (q->word[GUISE_Q_ECN].set || q->word[GUISE_Q_NOECN].set)
		guise_nl_u32(m, TCA_FQ_CODEL_ECN, q->word[GUISE_Q_ECN].set);
	guise_nl_end(m, nest);
}

static void put_fifo(struct guise_nl *m, const struct guise_qdisc *q)
{
	struct tc_fifo_qopt opt = { .limit = (uint32_t)q->word[GUISE_Q_LIMIT].v[0] };

	if (q->word[GUISE_Q_LIMIT].set)
		guise_nl_put(m, TCA_OPTIONS, &opt, sizeof(opt));
}

/* Back to what the interface had by itself. */
static int delete_root(struct guise_stack *s, const struct tcmsg *body, const char *dev)
{
	struct guise_nl m;
	int err;

	guise_nl_begin(&m, RTM_DELQDISC, 0, body, sizeof(*body));
	err = guise_nl_talk(s, NETLINK_ROUTE, &m, NULL, NULL, "qdisc none on %s", dev);
	/* It has none that was set. */
	return err == -ENOENT || err == -EINVAL ? 0 : err;
}

static int put_root(struct guise_stack *s, const struct tcmsg *body, const struct guise_qdisc *q,
		    uint16_t flags, const char *dev)
{
	struct guise_nl m;

	guise_nl_begin(&m, RTM_NEWQDISC, flags, body, sizeof(*body));
	guise_nl_str(&m, TCA_KIND, q->name);
	switch (q->kind) {
	case GUISE_QDISC_NETEM:
		put_netem(&m, q);
		break;
	case GUISE_QDISC_TBF:
		put_tbf(&m, q);
		break;
	case GUISE_QDISC_FQ:
		put_fq(&m, q);
		break;
	case GUISE_QDISC_FQ_CODEL:
		put_fq_codel(&m, q);
		break;
	default:
		put_fifo(&m, q);
	}
	return guise_nl_talk(s, NETLINK_ROUTE, &m, NULL, NULL, "qdisc %s on %s", q->name, dev);
}

int guise_qdisc_set(struct guise_stack *s, const char *dev, const char *spec)
{
	struct tcmsg body = { .tcm_family = AF_UNSPEC, .tcm_parent = TC_H_ROOT };
	uint16_t flags = NLM_F_CREATE | NLM_F_REPLACE;
	struct guise_qdisc q;
	int err;

	err = guise_qdisc_parse(spec, &q);
	if (err)
		return err;
	body.tcm_ifindex = guise_ifindex(s, dev);
	if (body.tcm_ifindex < 0)
		return body.tcm_ifindex;
	if (q.kind == GUISE_QDISC_NONE)
		return delete_root(s, &body, dev);
	if (q.kind != GUISE_QDISC_NETEM)
		flags |= NLM_F_EXCL;

	err = put_root(s, &body, &q, flags, dev);
	if (err == -EEXIST) {
		/* One of the same kind, which must not keep its old values. */
		err = delete_root(s, &body, dev);
		if (!err)
			err = put_root(s, &body, &q, flags, dev);
	}
	return err;
}
