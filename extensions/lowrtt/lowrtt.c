// SPDX-License-Identifier: GPL-2.0-only
/*
 * A scheduler of Multipath TCP: the lowest round-trip time, with re-injection.
 *
 * Data goes to the subflow with the lowest smoothed round-trip time among those whose congestion
 * window has room. So a fast path is filled first, and the next one gets what does not fit. (The
 * scheduler that Linux has goes by the time that what is queued on a subflow will take.)
 *
 * Re-injection: when the connection's retransmission timer expires, the oldest data that the
 * peer has not acknowledged is sent again on another subflow, the one with the lowest round-trip
 * time that is not itself waiting for a timeout, even if that one is busy. (Linux's waits until
 * one has nothing to send.) A subflow that made no progress is not used until it does.
 *
 * Backup subflows are used when all others are gone or have stopped; a subflow that waits for a
 * timeout gets new data only if there is no other.
 *
 * Limits: Linux takes data from the queue in pieces of up to 32 KiB, so a window may be overrun
 * by one of them: it then waits in that subflow's queue.
 */
#include <linux/module.h>
#include <net/tcp.h>

#include "net/mptcp/protocol.h"

/* Packets that may still be given to it: a quarter more than the window, because a window that is
 * never asked for more does not grow. */
static int room(const struct sock *ssk)
{
	const struct tcp_sock *tp = tcp_sk(ssk);
	u32 unsent = DIV_ROUND_UP(tp->write_seq - tp->snd_nxt, max(tp->mss_cache, 1U));

	if (!sk_stream_memory_free(ssk))
		return 0;
	return (int)(tcp_snd_cwnd(tp) + max(tcp_snd_cwnd(tp) / 4, 4U)) -
	       (int)(tcp_packets_in_flight(tp) + unsent);
}

/* A timeout has expired, and nothing was acknowledged since. */
static bool stopped(const struct sock *ssk)
{
	return inet_csk(ssk)->icsk_ca_state == TCP_CA_Loss || inet_csk(ssk)->icsk_retransmits;
}

/* The lower the better; U64_MAX: not at all. */
static u64 rank(struct mptcp_subflow_context *subflow, const struct mptcp_sched_data *data)
{
	const struct sock *ssk = mptcp_subflow_tcp_sock(subflow);
	bool backup = subflow->backup || subflow->request_bkup;

	if (!mptcp_subflow_active(subflow) || room(ssk) <= 0 || (data->reinject && stopped(ssk)))
		return U64_MAX;
	return (u64)backup << 33 | (u64)stopped(ssk) << 32 | READ_ONCE(tcp_sk(ssk)->srtt_us);
}

/* Whether a subflow that is no backup sends: then a backup has to wait. */
static bool is_served(struct mptcp_sock *msk)
{
	struct mptcp_subflow_context *subflow;

	mptcp_for_each_subflow(msk,
			       subflow) if (!subflow->backup && !subflow->request_bkup &&
					    mptcp_subflow_active(subflow) &&
					    !stopped(mptcp_subflow_tcp_sock(subflow))) return true;
	return false;
}

static int lowrtt_get_subflow(struct mptcp_sock *msk, struct mptcp_sched_data *data)
{
	struct mptcp_subflow_context *subflow, *best = NULL;
	u64 lowest = is_served(msk) ? 1ULL << 33 : U64_MAX, n;

	mptcp_for_each_subflow(msk, subflow)
	{
		struct sock *ssk = mptcp_subflow_tcp_sock(subflow);

		if (data->reinject && !tcp_rtx_and_write_queues_empty(ssk))
			mptcp_pm_subflow_chk_stale(msk, ssk);
		n = rank(subflow, data);
		if (n < lowest) {
			lowest = n;
			best = subflow;
		}
	}
	if (!best)
		return -EINVAL;
	if (!data->reinject) {
		const struct sock *ssk = mptcp_subflow_tcp_sock(best);

		msk->snd_burst = room(ssk) * (int)tcp_sk(ssk)->mss_cache;
	}
	mptcp_subflow_set_scheduled(best, true);
	return 0;
}

static struct mptcp_sched_ops lowrtt = {
	.get_subflow = lowrtt_get_subflow,
	.name = "lowrtt",
	.owner = THIS_MODULE,
};

static int __init lowrtt_register(void)
{
	return mptcp_register_scheduler(&lowrtt);
}
module_init(lowrtt_register);

MODULE_DESCRIPTION("The path with the lowest round-trip time, with re-injection");
MODULE_LICENSE("GPL");
