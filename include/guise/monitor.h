/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The records of the monitor: what changed in the transport layer of a stack, when, and in which
 * function of the kernel. The port writes them (linux/arch/guise/monitor), whoever may read them
 * maps them read-only.
 *
 * They lie in memory of their own, apart from the region, so that who reads records cannot write
 * the stack's memory:
 *
 *	0				struct guise_monitor_head
 *	GUISE_MONITOR_RECORDS		head.capacity records of 256 bytes, a ring
 *
 * Record n lies at place n % capacity. The writer never waits. It counts `begun` up before it
 * writes a record, and `written` after. A reader copies record n while n < written, and then looks
 * at `begun` again: if n + capacity < begun, or is the same, the record may have been overwritten,
 * and is lost to this reader. So each reader knows exactly how many it missed.
 *
 * GUISE_RECORD_FIELDS is the one place where a field is described: its type, name, unit, and
 * where the value comes from.
 */
#ifndef GUISE_MONITOR_H
#define GUISE_MONITOR_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdint.h>
#endif

#define GUISE_MONITOR_MAGIC    0x474d4f4e49544f52 /* "GMONITOR" */
#define GUISE_MONITOR_VERSION  1
#define GUISE_MONITOR_RECORDS  0x10000 /* a boundary of pages on every host */
#define GUISE_MONITOR_NAME     48
#define GUISE_MONITOR_HOOKS    512
#define GUISE_MONITOR_VALUES   4
#define GUISE_MONITOR_CONTROLS 32

/*
 * Kinds of events: name, and what seq, end, count and detail of the record say. A kind's number
 * never changes; new ones come at the end.
 */
#define GUISE_EVENTS(X)                                                                           \
	X(ACK, "ack",                                                                             \
	  "an acknowledgement was processed; seq: its number; count: "                            \
	  "bytes it newly "                                                                       \
	  "acknowledges; detail: packets it newly delivers")                                      \
	X(SENT, "sent",                                                                           \
	  "a segment with data, SYN or FIN was sent; seq, end: its "                              \
	  "range; count: "                                                                        \
	  "packets it is cut into; detail: flags of its header")                                  \
	X(RETRANSMIT, "retransmit",                                                               \
	  "a segment was sent again; seq, end: its range; count: "                                \
	  "packets; detail: 0, or the error that kept it back")                                   \
	X(DUPACK, "dupack",                                                                       \
	  "a duplicate acknowledgement; seq: its number; count: how "                             \
	  "many it "                                                                              \
	  "stands for")                                                                           \
	X(SACK, "sack",                                                                           \
	  "a range was selectively acknowledged; seq, end: the range; "                           \
	  "count: "                                                                               \
	  "packets of it")                                                                        \
	X(DSACK, "dsack",                                                                         \
	  "the peer has got a range twice; seq, end: the range; count: "                          \
	  "packets")                                                                              \
	X(RTO, "rto",                                                                             \
	  "the retransmission timer fired; seq: the first byte that is "                          \
	  "not "                                                                                  \
	  "acknowledged; count: how often in a row, before this one")                             \
	X(TLP, "tlp",                                                                             \
	  "a tail loss probe was sent; seq, end: what is not "                                    \
	  "acknowledged; count: 1 if it was a retransmission")                                    \
	X(PROBE, "zero-window-probe",                                                             \
	  "the peer's window is closed, and was probed; count: probes "                           \
	  "so far; detail: 0, or the error that kept it back")                                    \
	X(LOCAL_DROP, "local-drop",                                                               \
	  "a segment did not fit into the queue of the interface; seq, "                          \
	  "end: its range; count: packets; detail: the queue's answer")                           \
	X(CA_STATE, "ca-state",                                                                   \
	  "the state of congestion avoidance changed; count: the state "                          \
	  "before; detail: the state after")                                                      \
	X(UNDO, "undo",                                                                           \
	  "a reduction of the window was taken back; count: 1 if marks "                          \
	  "of loss were, too")                                                                    \
	X(ECN, "ecn",                                                                             \
	  "a mark of congestion; detail: 1 the peer reports one, 2 a "                            \
	  "packet had one")                                                                       \
	X(REORDERING, "reordering",                                                               \
	  "packets were overtaken; seq: the first that was; count: by "                           \
	  "how many; detail: 1 if only a timestamp tells")                                        \
	X(OUT_OF_ORDER, "out-of-order",                                                           \
	  "data came before what precedes it, and was kept; seq, "                                \
	  "end: its range")                                                                       \
	X(RECEIVED, "received",                                                                   \
	  "data came in order; seq, end: its range; count: bytes that "                           \
	  "the "                                                                                  \
	  "program has not read yet")                                                             \
	X(ACK_SENT, "ack-sent",                                                                   \
	  "an acknowledgement without data was sent; seq: its number; "                           \
	  "count: bytes that it covers; detail: how many more are sent "                          \
	  "at once")                                                                              \
	X(DELACK, "delack",                                                                       \
	  "the timer of a delayed acknowledgement fired; count: bytes "                           \
	  "not yet acknowledged")                                                                 \
	X(PRUNED, "pruned",                                                                       \
	  "the receive buffer was full, and data was dropped or moved; "                          \
	  "detail: "                                                                              \
	  "1 tried, 2 out-of-order data dropped, 3 still too much")                               \
	X(COLLAPSED, "collapsed",                                                                 \
	  "received segments were copied together to save memory; seq, "                          \
	  "end: the range of the first")                                                          \
	X(WINDOW, "window", "the peer's window changed; count: bytes before; detail: after")      \
	X(CWND, "cwnd",                                                                           \
	  "the congestion window was set; count: packets before; "                                \
	  "detail: after")                                                                        \
	X(IDLE_RESTART, "idle-restart",                                                           \
	  "nothing was sent for long, and the window begins anew; "                               \
	  "count: packets before; detail: after")                                                 \
	X(APP_LIMITED, "app-limited",                                                             \
	  "detail: 1 the program gives less than could be sent, 0 that "                          \
	  "is over; count: packets in flight")                                                    \
	X(OPTION, "option",                                                                       \
	  "a program has set a socket option; count: its number; "                                \
	  "detail: its "                                                                          \
	  "level")                                                                                \
	X(SYSCTL, "sysctl", "a sysctl was written; its name stands in local and remote")          \
	X(STATE, "state", "the state of the socket changed; count: before; detail: after")        \
	X(PATH_ADDED, "path-added", "a subflow was joined to its connection")                     \
	X(PATH_REMOVED, "path-removed", "a subflow left its connection; detail: the error, or 0") \
	X(PATH_STALE, "path-stale",                                                               \
	  "a subflow makes no progress, and gets no data; detail: 1; 0: "                         \
	  "it does again")                                                                        \
	X(SCHEDULED, "scheduled",                                                                 \
	  "the scheduler of Multipath TCP chose this subflow for the "                            \
	  "next data")                                                                            \
	X(UDP_SENT, "udp-sent", "a datagram was sent; count: bytes of data")                      \
	X(UDP_RECEIVED, "udp-received", "a datagram was queued for the program; count: bytes")    \
	X(UDP_SEND_DROP, "udp-send-drop",                                                         \
	  "a datagram was not sent; count: bytes; detail: the error")                             \
	X(UDP_RECEIVE_DROP, "udp-receive-drop",                                                   \
	  "the receive buffer was full; count: bytes; "                                           \
	  "detail: the error")

enum guise_event {
#define GUISE_EVENT(NAME, name, says) GUISE_EVENT_##NAME,
	GUISE_EVENTS(GUISE_EVENT)
#undef GUISE_EVENT
		GUISE_EVENT_KINDS
};

/*
 * Fields: type, name, unit ("": none), where the value comes from; of arrays (A) the number of
 * elements as well. What a socket does not have is 0.
 */
#define GUISE_RECORD_FIELDS(X, A)                                                             \
	X(u64, time, "ns", "CLOCK_MONOTONIC, or the stack's simulated clock")                 \
	X(u64, cookie, "", "sock_gen_cookie(): tells a socket from all others of the stack")  \
	X(u32, netns, "", "inode of the network namespace, sock_net(sk)->ns.inum")            \
	X(u16, kind, "", "enum guise_event")                                                  \
	X(u16, hook, "", "which of head.hook: the function that made the change")             \
	X(u8, protocol, "", "IPPROTO_TCP, IPPROTO_UDP")                                       \
	X(u8, family, "", "AF_INET, AF_INET6")                                                \
	X(u8, state, "", "sk->sk_state, TCP_ESTABLISHED is 1 (tcp_states.h)")                 \
	X(u8, ca_state, "", "icsk_ca_state: 0 open, 1 disorder, 2 cwr, 3 recovery, 4 loss")   \
	X(u32, inode, "", "of the socket; 0 once the program has closed it")                  \
	A(u8, local, 16, "", "address; of IPv4 the first 4 bytes")                            \
	A(u8, remote, 16, "", "address")                                                      \
	X(u16, local_port, "", "")                                                            \
	X(u16, remote_port, "", "")                                                           \
	X(u32, token, "", "of the Multipath TCP connection, as the stack chose it")           \
	X(u8, local_id, "", "of the subflow's local address")                                 \
	X(u8, remote_id, "", "of the subflow's remote address")                               \
	X(u8, subflow, "", "1 it is one; 2 it is backup; 4 it was fallen back from")          \
	X(u8, control, "", "which of head.control: the congestion control")                   \
	X(u32, cwnd, "packets", "tp->snd_cwnd")                                               \
	X(u32, ssthresh, "packets", "tp->snd_ssthresh")                                       \
	X(u32, packets_out, "packets", "tp->packets_out: sent and not acknowledged")          \
	X(u32, lost_out, "packets", "tp->lost_out")                                           \
	X(u32, retrans_out, "packets", "tp->retrans_out")                                     \
	X(u32, sacked_out, "packets", "tp->sacked_out")                                       \
	X(u32, total_retrans, "packets", "tp->total_retrans")                                 \
	X(u32, srtt, "us", "tp->srtt_us / 8")                                                 \
	X(u32, rttvar, "us", "tp->mdev_us / 4")                                               \
	X(u32, min_rtt, "us", "tcp_min_rtt()")                                                \
	X(u32, rto, "us", "icsk_rto")                                                         \
	X(u32, snd_una, "sequence", "tp->snd_una")                                            \
	X(u32, snd_nxt, "sequence", "tp->snd_nxt")                                            \
	X(u32, write_seq, "sequence", "tp->write_seq: behind the last byte that was written") \
	X(u32, rcv_nxt, "sequence", "tp->rcv_nxt")                                            \
	X(u32, copied_seq, "sequence", "tp->copied_seq: behind the last byte that was read")  \
	X(u32, rcv_wnd, "bytes", "tp->rcv_wnd: the window that the peer was told")            \
	X(u32, snd_wnd, "bytes", "tp->snd_wnd: the peer's window")                            \
	X(u32, mss, "bytes", "tp->mss_cache")                                                 \
	X(u32, sndbuf_used, "bytes", "sk->sk_wmem_queued; UDP: sk_wmem_alloc")                \
	X(u32, sndbuf, "bytes", "sk->sk_sndbuf")                                              \
	X(u32, rcvbuf_used, "bytes", "sk->sk_rmem_alloc")                                     \
	X(u32, rcvbuf, "bytes", "sk->sk_rcvbuf")                                              \
	X(u32, out_of_order, "bytes", "from rcv_nxt to the end of what came out of order")    \
	X(u32, app_limited, "packets", "tp->app_limited, 0: it is not")                       \
	X(u64, pacing_rate, "bytes/s", "sk->sk_pacing_rate; all bits set: unlimited")         \
	X(u64, delivery_rate, "bytes/s", "tp->rate_delivered in tp->rate_interval_us")        \
	X(u64, data_seq, "sequence", "msk->snd_nxt of the Multipath TCP connection")          \
	A(u32, value, GUISE_MONITOR_VALUES, "",                                               \
	  "of the congestion control; head.control names them")                               \
	X(u32, seq, "", "of the event")                                                       \
	X(u32, end, "", "of the event")                                                       \
	X(u32, count, "", "of the event")                                                     \
	X(u32, detail, "", "of the event")                                                    \
	X(u64, bytes_acked, "bytes", "tp->bytes_acked")                                       \
	X(u64, bytes_received, "bytes", "tp->bytes_received")                                 \
	X(u32, delivered, "packets", "tp->delivered")                                         \
	X(u32, reordering, "packets", "tp->reordering")

#define GUISE_RECORD_u8  uint8_t
#define GUISE_RECORD_u16 uint16_t
#define GUISE_RECORD_u32 uint32_t
#define GUISE_RECORD_u64 uint64_t

struct guise_record {
#define GUISE_RECORD_FIELD(type, name, unit, source)    GUISE_RECORD_##type name;
#define GUISE_RECORD_ARRAY(type, name, n, unit, source) GUISE_RECORD_##type name[n];
	GUISE_RECORD_FIELDS(GUISE_RECORD_FIELD, GUISE_RECORD_ARRAY)
#undef GUISE_RECORD_FIELD
#undef GUISE_RECORD_ARRAY
};

_Static_assert(sizeof(struct guise_record) == 256, "the size of a record is part of its format");

/* A congestion control that was seen, and what its values are called ("": it has fewer). */
struct guise_monitor_control {
	char name[16];
	char value[GUISE_MONITOR_VALUES][28];
};

struct guise_monitor_head {
	uint64_t magic;
	uint32_t version;
	uint32_t record_size;
	uint64_t capacity; /* records; a power of two */
	uint64_t offset;   /* ns to be added to a record's time for CLOCK_REALTIME */
	uint32_t hooks, controls;
	char release[64]; /* of the kernel */
	uint64_t begun __attribute__((aligned(64)));
	uint64_t written;
	char hook[GUISE_MONITOR_HOOKS][GUISE_MONITOR_NAME] __attribute__((aligned(64)));
	struct guise_monitor_control control[GUISE_MONITOR_CONTROLS];
};

_Static_assert(sizeof(struct guise_monitor_head) <= GUISE_MONITOR_RECORDS, "it fits");

#endif
