// SPDX-License-Identifier: GPL-2.0-only
/*
 * A scheduler of Multipath TCP: the same data on each path. The peer takes the copy that comes
 * first, so that neither a loss nor the delay of one path is felt, as long as another one works.
 * A connection is as fast as the fastest of its paths, not as all together.
 *
 * All subflows are chosen at once. That one of them sends what another has sent already is done
 * in the kernel, which has to be told (`repeats`; linux/patches/6.12/0003 says why). A subflow
 * whose window is full does not get the copy, until it has room: it then goes on with the oldest
 * data that the peer lacks, so that a slow path does not carry what is known to have arrived.
 *
 * Backup subflows are used when there is no other.
 */
#include <linux/module.h>
#include <net/tcp.h>

#include "net/mptcp/protocol.h"

/* New data goes out in pieces of about this, and then it is the next subflow's turn. */
#define BURST 65536

static bool is_backup(const struct mptcp_subflow_context *subflow)
{
	return subflow->backup || subflow->request_bkup;
}

static int redundant_get_subflow(struct mptcp_sock *msk, struct mptcp_sched_data *data)
{
	bool fresh = mptcp_send_head((struct sock *)msk), backups = true, any = false;
	struct mptcp_subflow_context *subflow;

	mptcp_for_each_subflow(msk, subflow) if (!is_backup(subflow) &&
						 mptcp_subflow_active(subflow)) backups = false;
	mptcp_for_each_subflow(msk, subflow)
	{
		struct sock *ssk = mptcp_subflow_tcp_sock(subflow);

		if (data->reinject && !tcp_rtx_and_write_queues_empty(ssk)) {
			mptcp_pm_subflow_chk_stale(msk, ssk);
			continue;
		}
		if (is_backup(subflow) != backups || !mptcp_subflow_active(subflow) ||
		    !sk_stream_memory_free(ssk))
			continue;
		if (!data->reinject && !fresh && subflow->repeated &&
		    !before64(subflow->repeated, msk->snd_nxt))
			continue;
		mptcp_subflow_set_scheduled(subflow, true);
		any = true;
	}
	if (!any)
		return -EINVAL;
	msk->snd_burst = BURST;
	return 0;
}

static struct mptcp_sched_ops redundant = {
	.get_subflow = redundant_get_subflow,
	.repeats = true,
	.name = "redundant",
	.owner = THIS_MODULE,
};

static int __init redundant_register(void)
{
	return mptcp_register_scheduler(&redundant);
}
module_init(redundant_register);

MODULE_DESCRIPTION("The same data on each path");
MODULE_LICENSE("GPL");
