// SPDX-License-Identifier: GPL-2.0-only
/*
 * A congestion control to begin with: copy this folder, rename what is called template, and
 * change what the functions do. docs/extensions.md says how it is built and chosen.
 *
 * What it does as it stands: additive increase and multiplicative decrease, as Reno, but with
 * two numbers that can be changed. Each round trip adds STEP packets to the window, and a loss
 * leaves KEEP percent of it. With 1 and 50 it is Reno; with less backing off it is less fair.
 *
 * How Linux uses a congestion control. Each TCP socket has a window, tcp_snd_cwnd(tp), in
 * packets: no more than these are in flight. Linux finds the losses, sends again, and reduces
 * the window itself while it recovers. It asks the congestion control for three things:
 *	cong_avoid	data was acknowledged and nothing is wrong: let the window grow
 *	ssthresh	data was lost: which window to go down to
 *	undo_cwnd	it was not lost after all: which window to return to
 * The other members of struct tcp_congestion_ops (include/net/tcp.h in the kernel's source) are
 * optional. The ones that are used most: pkts_acked, each acknowledgement with its round-trip
 * time; cwnd_event, such as the first packet after a pause; set_state, when recovery begins or
 * ends; cong_control, in place of cong_avoid, for those that also decide the rate at which
 * packets are sent (BBR); and get_info, what `ss -i` shows.
 *
 * Limits that hold for all: the functions are called with the socket locked, and may not sleep.
 * There is no floating point in a kernel: count in integers, and mind what overflows.
 */
#include <linux/module.h>
#include <net/tcp.h>

/* How many packets a round trip adds, and how much of 100 a loss leaves. */
#define STEP 1
#define KEEP 70

/*
 * The memory of one connection. It lies in the socket, which has ICSK_CA_PRIV_SIZE bytes (about
 * 100) for it; more has to be allocated in init and freed in release. For larger state also
 * remember that a socket may change its congestion control at any time (TCP_CONGESTION).
 */
struct template {
	u32 before_loss; /* the window when the last loss was found */
	u32 losses;      /* how many there were, only to show how to keep count */
};

static struct template *of(const struct sock *sk)
{
	return inet_csk_ca(sk);
}

/* The socket has begun to use this one: before or after the connection was made. */
static void template_init(struct sock *sk)
{
	memset(of(sk), 0, sizeof(struct template));
}

/* acked packets were acknowledged by the acknowledgement ack. */
static void template_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	/* A program that sends less than it may has not tried whether more would fit. */
	if (!tcp_is_cwnd_limited(sk))
		return;

	/* Slow start: each acknowledged packet adds one, until the threshold. What is left
	 * of acked is for the phase below. */
	if (tcp_in_slow_start(tp)) {
		acked = tcp_slow_start(tp, acked);
		if (!acked)
			return;
	}

	/*
	 * tcp_cong_avoid_ai(tp, n, acked) adds one packet to the window for each n that
	 * were acknowledged. With n equal to the window that is one for each round trip.
	 */
	tcp_cong_avoid_ai(tp, max(tcp_snd_cwnd(tp) / STEP, 1U), acked);
}

/*
 * A loss: returns the new threshold of slow start, which is the window that recovery goes down
 * to. At least 2, or the connection would wait for each delayed acknowledgement. It is called
 * once for each loss event, not for each lost packet.
 */
static u32 template_ssthresh(struct sock *sk)
{
	const u32 window = tcp_snd_cwnd(tcp_sk(sk));
	struct template *state = of(sk);

	state->before_loss = window;
	state->losses++;
	return max(window * KEEP / 100, 2U);
}

/* Packets had only been late or reordered: what the window had been comes back. */
static u32 template_undo_cwnd(struct sock *sk)
{
	return max(tcp_snd_cwnd(tcp_sk(sk)), of(sk)->before_loss);
}

/*
 * The name is what users say: guise run --cc template. NON_RESTRICTED lets programs without
 * CAP_NET_ADMIN choose it for a socket. The data that is written while the kernel runs is
 * marked __read_mostly, as it is on a list.
 */
static struct tcp_congestion_ops template __read_mostly = {
	.init = template_init,
	.cong_avoid = template_cong_avoid,
	.ssthresh = template_ssthresh,
	.undo_cwnd = template_undo_cwnd,
	.flags = TCP_CONG_NON_RESTRICTED,
	.owner = THIS_MODULE,
	.name = "template",
};

/* Runs once, while the stack's kernel boots. An error here is written to its console. */
static int __init template_register(void)
{
	BUILD_BUG_ON(sizeof(struct template) > ICSK_CA_PRIV_SIZE);
	return tcp_register_congestion_control(&template);
}
module_init(template_register);

MODULE_DESCRIPTION("A congestion control to begin with");
MODULE_LICENSE("GPL");
