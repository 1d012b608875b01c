// SPDX-License-Identifier: GPL-2.0-only
/*
 * LIA, the coupled congestion control for Multipath TCP of RFC 6356.
 *
 * What it promises, as the RFC's three goals (test/extension/test_lia.py):
 *	1. A connection of several paths gets at least what it would get on the best of them alone.
 *	2. It takes no more of a link that several of its subflows share than one TCP would.
 *	3. It moves its traffic away from paths with congestion, as far as goals 1 and 2 allow.
 *
 * How. Slow start and what a loss does are Reno's, for each subflow by itself. Only the increase
 * in congestion avoidance is coupled: for each acknowledged packet subflow i adds
 *
 *	min(alpha / total, 1 / cwnd_i)		where total is the sum of all cwnd, and
 *	alpha = total * max(cwnd_j / rtt_j^2) / (sum of cwnd_j / rtt_j)^2
 *
 * to its window. total is cancelled, so that subflow i adds one packet for each n packets that
 * are acknowledged, n being the larger of cwnd_i and (sum of cwnd_j / rtt_j)^2 divided by the
 * largest cwnd_j / rtt_j^2. With best as the subflow of that largest, the latter is
 *
 *	(sum of cwnd_j * rtt_best / rtt_j)^2 / cwnd_best
 *
 * in which only quotients of round-trip times remain. It is computed for each acknowledgement:
 * a connection has 9 subflows at most.
 *
 * The list of subflows is walked without the lock of the connection, which the caller may not
 * take here. In a stack of guise that is right: there is one virtual CPU, which no other task
 * takes in the middle of a function that does not sleep, and the list is never left half changed
 * across a sleep. A kernel with several processors would need a copy of the windows instead.
 *
 * Limits: a socket that is not Multipath TCP, or has fallen back to TCP, is Reno. Round-trip
 * times count up to 8 s, windows up to 2^20 packets: above these the sums would overflow.
 */
#include <linux/module.h>
#include <net/tcp.h>

#include "net/mptcp/protocol.h"

#define SCALE    10 /* bits behind the point of the sum */
#define RTT_MAX  (1U << 23)
#define CWND_MAX (1U << 20)

struct sample {
	u32 cwnd;
	u32 rtt; /* us; 0: not measured yet */
};

static struct sample sample_of(const struct sock *ssk)
{
	const struct tcp_sock *tp = tcp_sk(ssk);

	return (struct sample){
		.cwnd = clamp_t(u32, tcp_snd_cwnd(tp), 1, CWND_MAX),
		.rtt = min_t(u32, READ_ONCE(tp->srtt_us) >> 3, RTT_MAX),
	};
}

/* Whether it sends: one that is dead, or waits for its handshake, is no path. */
static bool counts(struct mptcp_subflow_context *subflow)
{
	return __mptcp_subflow_active(subflow) && !subflow->stale;
}

/* How many acknowledged packets add one to any window; 0: nothing is coupled. */
static u32 coupled(struct sock *sk)
{
	struct mptcp_subflow_context *subflow = sk_is_mptcp(sk) ? mptcp_subflow_ctx(sk) : NULL;
	struct sample best = {};
	u64 most = 0, sum = 0;
	struct mptcp_sock *msk;

	if (!subflow || !subflow->conn)
		return 0;
	msk = mptcp_sk(subflow->conn);
	mptcp_for_each_subflow(msk, subflow)
	{
		struct sample now = sample_of(mptcp_subflow_tcp_sock(subflow));
		u64 rate;

		if (!counts(subflow) || !now.rtt)
			continue;
		rate = div64_u64((u64)now.cwnd << 43, (u64)now.rtt * now.rtt);
		if (rate >= most) {
			most = rate;
			best = now;
		}
	}
	if (!best.cwnd)
		return 0;
	mptcp_for_each_subflow(msk, subflow)
	{
		struct sample now = sample_of(mptcp_subflow_tcp_sock(subflow));

		if (counts(subflow) && now.rtt)
			sum += div_u64(((u64)now.cwnd * best.rtt) << SCALE, now.rtt);
	}
	sum = min_t(u64, sum, U32_MAX);
	return (u32)min_t(u64, div_u64((sum * sum) >> (2 * SCALE), best.cwnd), U32_MAX);
}

static void lia_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (!tcp_is_cwnd_limited(sk))
		return;
	if (tcp_in_slow_start(tp)) {
		acked = tcp_slow_start(tp, acked);
		if (!acked)
			return;
	}
	tcp_cong_avoid_ai(tp, max(tcp_snd_cwnd(tp), coupled(sk)), acked);
}

static struct tcp_congestion_ops lia __read_mostly = {
	.ssthresh = tcp_reno_ssthresh,
	.cong_avoid = lia_cong_avoid,
	.undo_cwnd = tcp_reno_undo_cwnd,
	.flags = TCP_CONG_NON_RESTRICTED,
	.owner = THIS_MODULE,
	.name = "lia",
};

static int __init lia_register(void)
{
	return tcp_register_congestion_control(&lia);
}
module_init(lia_register);

MODULE_DESCRIPTION("Coupled congestion control for Multipath TCP (RFC 6356)");
MODULE_LICENSE("GPL");
