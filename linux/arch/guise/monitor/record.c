// SPDX-License-Identifier: GPL-2.0-only
/*
 * Writes the records of the monitor (guise/monitor.h) into their ring.
 *
 * One virtual CPU runs the code of the kernel, so there is one writer, and no lock. The ring lies
 * in memory of its own (guise_monitor_head()); others map it read-only, so what they do cannot
 * disturb the writer. A member that is killed in the middle of a record finishes it with
 * everything else that it had begun (lib/region/finish.c).
 *
 * Reading the clock costs more than all the rest. TCP reads it when it begins to work on a packet
 * that came and when it begins to send, so events of this work have that time. For all others it is
 * read. Times never go back.
 *
 * A field that a socket does not have is 0. Records are written whole, for a reader must not see
 * what was in their place before.
 */
#include <linux/sock_diag.h>
#include <linux/string.h>
#include <linux/timekeeping.h>
#include <net/inet_sock.h>
#include <net/ipv6.h>
#include <net/mptcp.h>
#include <net/tcp.h>

#include "net/mptcp/protocol.h"

#include <asm/monitor.h>

extern const struct guise_control __start_guise_controls[], __stop_guise_controls[];

/* Those of head->control. */
static const struct tcp_congestion_ops *control_ops[GUISE_MONITOR_CONTROLS];
static const struct guise_control *control_values[GUISE_MONITOR_CONTROLS];
static u64 last_time;

/* Kinds whose time is that of the packet. */
#define OF_PACKET                                                                                 \
	(BIT_ULL(GUISE_EVENT_ACK) | BIT_ULL(GUISE_EVENT_SENT) | BIT_ULL(GUISE_EVENT_RETRANSMIT) | \
	 BIT_ULL(GUISE_EVENT_DUPACK) | BIT_ULL(GUISE_EVENT_SACK) | BIT_ULL(GUISE_EVENT_DSACK) |   \
	 BIT_ULL(GUISE_EVENT_OUT_OF_ORDER) | BIT_ULL(GUISE_EVENT_RECEIVED) |                      \
	 BIT_ULL(GUISE_EVENT_CWND) | BIT_ULL(GUISE_EVENT_ACK_SENT) |                              \
	 BIT_ULL(GUISE_EVENT_LOCAL_DROP) | BIT_ULL(GUISE_EVENT_WINDOW))

static struct guise_record *begin(struct guise_monitor_head *h)
{
	u64 n = h->begun;

	WRITE_ONCE(h->begun, n + 1);
	smp_wmb(); /* before what it overwrites */
	return guise_monitor_place(h, n);
}

static void end(struct guise_monitor_head *h)
{
	smp_store_release(&h->written, h->begun);
}

static u64 now(u64 of_packet)
{
	u64 time = of_packet ?: ktime_get_ns();

	if (time > last_time)
		last_time = time;
	return last_time;
}

/* Which of head->control; 0: none yet, or the table is full. */
static u8 control_of(struct guise_monitor_head *h, const struct tcp_congestion_ops *ops)
{
	const struct guise_control *c;
	unsigned int i;

	if (!ops)
		return 0;
	for (i = 1; i < h->controls; i++)
		if (control_ops[i] == ops)
			return i;
	if (i >= GUISE_MONITOR_CONTROLS)
		return 0;
	control_ops[i] = ops;
	strscpy(h->control[i].name, ops->name, sizeof(h->control[i].name));
	for (c = __start_guise_controls; c < __stop_guise_controls; c++) {
		if (c->ops != ops)
			continue;
		control_values[i] = c;
		for (unsigned int k = 0; k < GUISE_MONITOR_VALUES && c->name[k]; k++)
			strscpy(h->control[i].value[k], c->name[k], sizeof(h->control[i].value[k]));
	}
	smp_store_release(&h->controls, i + 1);
	return i;
}

static void write_socket(struct guise_record *r, const struct sock *sk)
{
	const struct inet_sock *inet = inet_sk(sk);

	r->cookie = sock_gen_cookie((struct sock *)sk);
	r->netns = sock_net(sk)->ns.inum;
	r->protocol = sk->sk_protocol == IPPROTO_MPTCP ? IPPROTO_TCP : sk->sk_protocol;
	r->family = sk->sk_family;
	r->state = sk->sk_state;
	r->inode = sk->sk_socket ? SOCK_INODE(sk->sk_socket)->i_ino : 0;
	r->local_port = ntohs(inet->inet_sport); /* inet_num is 0 once it is closed */
	r->remote_port = ntohs(inet->inet_dport);
#if IS_ENABLED(CONFIG_IPV6)
	if (sk->sk_family == AF_INET6) {
		memcpy(r->local, &sk->sk_v6_rcv_saddr, sizeof(r->local));
		memcpy(r->remote, &sk->sk_v6_daddr, sizeof(r->remote));
	} else
#endif
	{
		memset(r->local, 0, sizeof(r->local) + sizeof(r->remote));
		memcpy(r->local, &inet->inet_rcv_saddr, sizeof(inet->inet_rcv_saddr));
		memcpy(r->remote, &inet->inet_daddr, sizeof(inet->inet_daddr));
	}
	r->sndbuf = READ_ONCE(sk->sk_sndbuf);
	r->rcvbuf_used = atomic_read(&sk->sk_rmem_alloc);
	r->rcvbuf = READ_ONCE(sk->sk_rcvbuf);
}

static void write_path(struct guise_record *r, const struct sock *sk)
{
	struct mptcp_subflow_context *subflow;
	const struct mptcp_sock *msk;

	r->token = 0;
	r->local_id = r->remote_id = r->subflow = 0;
	r->data_seq = 0;
	if (!sk_is_mptcp(sk))
		return;
	subflow = mptcp_subflow_ctx(sk);
	r->token = subflow->token;
	r->local_id = subflow_get_local_id(subflow);
	r->remote_id = READ_ONCE(subflow->remote_id);
	r->subflow = 1 | (subflow->backup ? 2 : 0);
	msk = subflow->conn ? mptcp_sk(subflow->conn) : NULL;
	if (!msk)
		return;
	r->data_seq = msk->snd_nxt;
	if (__mptcp_check_fallback(msk))
		r->subflow |= 4;
}

static u64 delivery_rate(const struct tcp_sock *tp)
{
	u64 bytes = (u64)READ_ONCE(tp->rate_delivered) * tp->mss_cache * USEC_PER_SEC;
	u32 interval = READ_ONCE(tp->rate_interval_us);

	return interval ? div_u64(bytes, interval) : 0;
}

static void write_tcp(struct guise_monitor_head *h, struct guise_record *r, const struct sock *sk)
{
	const struct inet_connection_sock *icsk = inet_csk(sk);
	const struct tcp_sock *tp = tcp_sk(sk);

	r->ca_state = icsk->icsk_ca_state;
	r->control = control_of(h, icsk->icsk_ca_ops);
	if (control_values[r->control])
		control_values[r->control]->values(sk, r->value);
	else
		memset(r->value, 0, sizeof(r->value));
	r->cwnd = tcp_snd_cwnd(tp);
	r->ssthresh = tp->snd_ssthresh;
	r->packets_out = tp->packets_out;
	r->lost_out = tp->lost_out;
	r->retrans_out = tp->retrans_out;
	r->sacked_out = tp->sacked_out;
	r->total_retrans = tp->total_retrans;
	r->srtt = tp->srtt_us >> 3;
	r->rttvar = tp->mdev_us >> 2;
	r->min_rtt = tcp_min_rtt(tp);
	r->rto = jiffies_to_usecs(icsk->icsk_rto);
	r->snd_una = tp->snd_una;
	r->snd_nxt = tp->snd_nxt;
	r->write_seq = tp->write_seq;
	r->rcv_nxt = tp->rcv_nxt;
	r->copied_seq = tp->copied_seq;
	r->rcv_wnd = tp->rcv_wnd;
	r->snd_wnd = tp->snd_wnd;
	r->mss = tp->mss_cache;
	r->sndbuf_used = sk->sk_wmem_queued;
	r->out_of_order = RB_EMPTY_ROOT(&tp->out_of_order_queue)
				  ? 0
				  : TCP_SKB_CB(tp->ooo_last_skb)->end_seq - tp->rcv_nxt;
	r->app_limited = tp->app_limited;
	r->pacing_rate = READ_ONCE(sk->sk_pacing_rate);
	r->delivery_rate = delivery_rate(tp);
	r->bytes_acked = tp->bytes_acked;
	r->bytes_received = tp->bytes_received;
	r->delivered = tp->delivered;
	r->reordering = tp->reordering;
}

static void write_event(struct guise_record *r, unsigned int kind, const struct guise_hook *hook,
			u32 seq, u32 end, u32 count, u32 detail)
{
	r->kind = kind;
	r->hook = hook - __start_guise_hooks;
	r->seq = seq;
	r->end = end;
	r->count = count;
	r->detail = detail;
}

void guise_monitor_tcp(const struct sock *sk, unsigned int kind, const struct guise_hook *hook,
		       u32 seq, u32 end_seq, u32 count, u32 detail)
{
	struct guise_monitor_head *h = guise_monitor_head();
	struct guise_record *r = begin(h);

	r->time = now(OF_PACKET & BIT_ULL(kind) ? tcp_sk(sk)->tcp_clock_cache : 0);
	write_event(r, kind, hook, seq, end_seq, count, detail);
	write_socket(r, sk);
	write_path(r, sk);
	write_tcp(h, r, sk);
	end(h);
}

void guise_monitor_udp(const struct sock *sk, unsigned int kind, const struct guise_hook *hook,
		       u32 seq, u32 end_seq, u32 count, u32 detail)
{
	struct guise_monitor_head *h = guise_monitor_head();
	struct guise_record *r = begin(h);

	memset(r, 0, sizeof(*r));
	r->time = now(0);
	write_event(r, kind, hook, seq, end_seq, count, detail);
	write_socket(r, sk);
	r->sndbuf_used = sk_wmem_alloc_get(sk);
	end(h);
}

void guise_monitor_any(const struct sock *sk, unsigned int kind, const struct guise_hook *hook,
		       u32 seq, u32 end_seq, u32 count, u32 detail)
{
	if (sk_is_tcp(sk))
		guise_monitor_tcp(sk, kind, hook, seq, end_seq, count, detail);
	else if (sk_is_inet(sk))
		guise_monitor_udp(sk, kind, hook, seq, end_seq, count, detail);
}

void guise_monitor_sysctl(const char *name, const struct guise_hook *hook)
{
	struct guise_monitor_head *h = guise_monitor_head();
	struct guise_record *r = begin(h);

	memset(r, 0, sizeof(*r));
	r->time = now(0);
	write_event(r, GUISE_EVENT_SYSCTL, hook, 0, 0, 0, 0);
	strscpy((char *)r->local, name, sizeof(r->local) + sizeof(r->remote));
	end(h);
}
