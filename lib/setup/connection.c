// SPDX-License-Identifier: GPL-2.0-only
/*
 * Connections by socket diagnosis (sock_diag(7)). A subflow of Multipath TCP is a TCP socket whose
 * upper layer is "mptcp"; the token in what that layer tells is the token of the connection.
 * A connection that is plain TCP from its beginning has lost its token, so its kernel lists the
 * subflow alone.
 *
 * Kernels tell more from release to release: what an older one does not tell is marked as not
 * known, and what a newer one tells beyond is not looked at.
 */
#include "setup/connection.h"

#include "region/stack.h"

#include <linux/inet_diag.h>
#include <linux/mptcp.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

/* struct mptcp_info of Linux 6.12, which the host's headers may not have whole. */
struct mptcp_told {
	uint8_t numbers[8];
	uint32_t flags, token;
	uint64_t write_seq, snd_una, rcv_nxt;
	uint8_t more_numbers[4];
	uint32_t retransmits;
	uint64_t bytes_retrans, bytes_sent, bytes_received, bytes_acked;
};

_Static_assert(offsetof(struct mptcp_told, bytes_retrans) == 48, "as the kernel has it");

/* TCP_ESTABLISHED and so on, which <linux/tcp.h> does not have. */
static const char *const states[] = {
	NULL,        "established", "syn-sent",   "syn-recv", "fin-wait-1", "fin-wait-2",
	"time-wait", "closed",      "close-wait", "last-ack", "listening",  "closing",
};

enum { ESTABLISHED = 1, SYN_SENT, SYN_RECV, TIME_WAIT = 6, CLOSED, LISTENING = 10, STATES = 12 };

#define ALL        ((1U << STATES) - 2)
#define NOT_LISTED (1U << LISTENING | 1U << CLOSED | 1U << TIME_WAIT | 1U << SYN_RECV)

const char *guise_connection_state(unsigned int state)
{
	return state > 0 && state < STATES ? states[state] : "unknown";
}

int guise_connections_begin(struct guise_nl_dump *d, struct guise_stack *s, int family,
			    int protocol)
{
	struct inet_diag_req_v2 body = {
		.sdiag_family = (uint8_t)family,
		/* A byte: of a larger number the attribute below counts. */
		.sdiag_protocol = (uint8_t)(protocol < 256 ? protocol : IPPROTO_RAW),
		.idiag_ext = 1 << (INET_DIAG_INFO - 1),
		.idiag_states = ALL & ~NOT_LISTED,
	};
	struct guise_nl m;

	guise_nl_begin(&m, SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, &body, sizeof(body));
	if (protocol >= 256)
		guise_nl_u32(&m, INET_DIAG_REQ_PROTOCOL, (uint32_t)protocol);
	return guise_nl_dump_begin(d, s, NETLINK_SOCK_DIAG, &m, "the list of connections");
}

static void take_tcp_info(struct guise_connection *c, const void *data, size_t len)
{
	struct tcp_info info = { 0 };

	memcpy(&info, data, len < sizeof(info) ? len : sizeof(info));
	c->measured = len >= offsetof(struct tcp_info, tcpi_min_rtt) + sizeof(info.tcpi_min_rtt);
	c->counted = len >= offsetof(struct tcp_info, tcpi_bytes_retrans) +
				    sizeof(info.tcpi_bytes_retrans);
	c->rtt = info.tcpi_rtt;
	c->rttvar = info.tcpi_rttvar;
	/* All bits: none was measured. */
	c->min_rtt = info.tcpi_min_rtt == UINT32_MAX ? 0 : info.tcpi_min_rtt;
	c->cwnd = info.tcpi_snd_cwnd;
	c->mss = info.tcpi_snd_mss;
	c->retransmissions = info.tcpi_total_retrans;
	c->sent = info.tcpi_bytes_sent;
	c->acked = info.tcpi_bytes_acked;
	c->received = info.tcpi_bytes_received;
	c->resent = info.tcpi_bytes_retrans;
}

static void take_mptcp_info(struct guise_connection *c, const void *data, size_t len)
{
	struct mptcp_told info = { 0 };

	memcpy(&info, data, len < sizeof(info) ? len : sizeof(info));
	c->counted = len >= sizeof(info);
	c->token = info.token;
	c->fallback = info.flags & MPTCP_INFO_FLAG_FALLBACK;
	c->sent = info.bytes_sent;
	c->acked = info.bytes_acked;
	c->received = info.bytes_received;
	c->resent = info.bytes_retrans;
}

static uint32_t number(const void *data, size_t len)
{
	uint32_t value = 0;

	memcpy(&value, data, len < sizeof(value) ? len : sizeof(value));
	return value;
}

static void take_subflow(void *arg, unsigned int type, const void *data, size_t len)
{
	struct guise_connection *c = arg;
	uint32_t flags;

	switch (type) {
	case MPTCP_SUBFLOW_ATTR_TOKEN_LOC:
		c->token = number(data, len);
		break;
	case MPTCP_SUBFLOW_ATTR_FLAGS:
		flags = number(data, len);
		c->backup = flags & (MPTCP_SUBFLOW_FLAG_BKUP_REM | MPTCP_SUBFLOW_FLAG_BKUP_LOC);
		c->fallback = c->state != SYN_SENT && !(flags & (MPTCP_SUBFLOW_FLAG_MCAP_REM |
								 MPTCP_SUBFLOW_FLAG_JOIN_REM));
		break;
	case MPTCP_SUBFLOW_ATTR_ID_LOC:
		c->local_id = (uint8_t)number(data, len);
		break;
	case MPTCP_SUBFLOW_ATTR_ID_REM:
		c->remote_id = (uint8_t)number(data, len);
		break;
	}
}

static void take_upper_layer(void *arg, unsigned int type, const void *data, size_t len)
{
	struct guise_connection *c = arg;

	if (type != INET_ULP_INFO_MPTCP)
		return;
	c->subflow = true;
	guise_nl_attributes(data, len, take_subflow, c);
}

static void take_attribute(void *arg, unsigned int type, const void *data, size_t len)
{
	struct guise_connection *c = arg;

	if (type == INET_DIAG_INFO && c->mptcp)
		take_mptcp_info(c, data, len);
	else if (type == INET_DIAG_INFO)
		take_tcp_info(c, data, len);
	else if (type == INET_DIAG_ULP_INFO && !c->mptcp)
		guise_nl_attributes(data, len, take_upper_layer, c);
}

bool guise_connection_parse(const struct nlmsghdr *h, bool mptcp, struct guise_connection *c)
{
	const char *bytes = (const char *)h;
	struct inet_diag_msg m;

	if (h->nlmsg_type != SOCK_DIAG_BY_FAMILY || h->nlmsg_len < NLMSG_LENGTH(sizeof(m)))
		return false;
	memcpy(&m, bytes + NLMSG_HDRLEN, sizeof(m));
	if (m.idiag_family != AF_INET && m.idiag_family != AF_INET6)
		return false;
	*c = (struct guise_connection){
		.mptcp = mptcp,
		.family = m.idiag_family,
		.state = m.idiag_state,
		.local_port = ntohs(m.id.idiag_sport),
		.remote_port = ntohs(m.id.idiag_dport),
		.interface = m.id.idiag_if,
		.inode = m.idiag_inode,
		.uid = m.idiag_uid,
		.cookie = (uint64_t)m.id.idiag_cookie[1] << 32 | m.id.idiag_cookie[0],
	};
	memcpy(c->local, m.id.idiag_src, sizeof(c->local));
	memcpy(c->remote, m.id.idiag_dst, sizeof(c->remote));
	guise_nl_attributes(bytes + NLMSG_LENGTH(sizeof(m)), h->nlmsg_len - NLMSG_LENGTH(sizeof(m)),
			    take_attribute, c);
	return true;
}
