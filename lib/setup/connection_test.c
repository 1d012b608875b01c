// SPDX-License-Identifier: GPL-2.0-only
/* What the answers of socket diagnosis say, and those that are cut or say too little. */
#include "setup/connection.h"

#include "test/tap.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/mptcp.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdlib.h>

static struct guise_nl m;

static void begin(uint8_t family, uint8_t state)
{
	struct inet_diag_msg body = { .idiag_family = family, .idiag_state = state };

	body.id.idiag_sport = htons(4000);
	body.id.idiag_dport = htons(80);
	inet_pton(AF_INET, "10.0.0.1", body.id.idiag_src);
	inet_pton(AF_INET, "10.0.0.2", body.id.idiag_dst);
	body.id.idiag_cookie[0] = 1;
	body.id.idiag_cookie[1] = 2;
	body.idiag_inode = 77;
	body.idiag_uid = 5;
	guise_nl_begin(&m, SOCK_DIAG_BY_FAMILY, 0, &body, sizeof(body));
}

/* Parses a heap copy of exactly that length. */
static bool parse_cut(size_t len, bool mptcp, struct guise_connection *c)
{
	struct nlmsghdr *copy = malloc(len);
	bool good;

	((struct nlmsghdr *)m.buf)->nlmsg_len = (uint32_t)len;
	memcpy(copy, m.buf, len);
	good = guise_connection_parse(copy, mptcp, c);
	free(copy);
	return good;
}

static bool parse(bool mptcp, struct guise_connection *c)
{
	return parse_cut(m.len, mptcp, c);
}

static void put_subflow(uint32_t flags)
{
	size_t ulp = guise_nl_nest(&m, INET_DIAG_ULP_INFO | NLA_F_NESTED, NULL, 0);
	size_t info;

	guise_nl_str(&m, INET_ULP_INFO_NAME, "mptcp");
	info = guise_nl_nest(&m, INET_ULP_INFO_MPTCP | NLA_F_NESTED, NULL, 0);
	guise_nl_u32(&m, MPTCP_SUBFLOW_ATTR_TOKEN_REM, 1);
	guise_nl_u32(&m, MPTCP_SUBFLOW_ATTR_TOKEN_LOC, 0xb385f8ae);
	guise_nl_u32(&m, MPTCP_SUBFLOW_ATTR_FLAGS, flags);
	guise_nl_u8(&m, MPTCP_SUBFLOW_ATTR_ID_LOC, 3);
	guise_nl_u8(&m, MPTCP_SUBFLOW_ATTR_ID_REM, 4);
	guise_nl_end(&m, info);
	guise_nl_end(&m, ulp);
}

static void tcp(void)
{
	struct tcp_info info = {
		.tcpi_rtt = 100,
		.tcpi_min_rtt = UINT32_MAX,
		.tcpi_snd_cwnd = 10,
		.tcpi_snd_mss = 1448,
		.tcpi_total_retrans = 6,
		.tcpi_bytes_sent = 1ULL << 40,
		.tcpi_bytes_acked = 8,
		.tcpi_bytes_received = 9,
		.tcpi_bytes_retrans = 12,
	};
	struct guise_connection c;

	begin(AF_INET, 1);
	guise_nl_put(&m, INET_DIAG_INFO, &info, sizeof(info));
	tap(parse(false, &c) && !c.mptcp && !c.subflow && !c.fallback, "a TCP connection");
	tap(!memcmp(c.local, "\12\0\0\1", 4) && !memcmp(c.remote, "\12\0\0\2", 4) &&
		    c.local_port == 4000 && c.remote_port == 80 && c.inode == 77 && c.uid == 5 &&
		    c.cookie == (2ULL << 32 | 1),
	    "its ends, and whose it is");
	tap(c.counted && c.sent == 1ULL << 40 && c.acked == 8 && c.received == 9 && c.resent == 12,
	    "its bytes");
	tap(c.measured && c.rtt == 100 && c.cwnd == 10 && c.mss == 1448 && c.retransmissions == 6,
	    "what was measured");
	tap(c.min_rtt == 0, "a least round trip time that is not known yet");
	begin(AF_INET6, 1);
	guise_nl_put(&m, INET_DIAG_INFO, &info, offsetof(struct tcp_info, tcpi_bytes_sent));
	tap(parse(false, &c) && c.measured && !c.counted, "an older kernel counts no bytes");
	begin(AF_INET, 1);
	tap(parse(false, &c) && !c.measured && !c.counted, "without figures");
	begin(AF_UNIX, 1);
	tap(!parse(false, &c), "another family is no connection");
}

static void subflows(void)
{
	struct guise_connection c;

	begin(AF_INET, 1);
	put_subflow(MPTCP_SUBFLOW_FLAG_MCAP_REM | MPTCP_SUBFLOW_FLAG_MCAP_LOC);
	tap(parse(false, &c) && c.subflow && c.token == 0xb385f8ae && !c.backup && !c.fallback &&
		    c.local_id == 3 && c.remote_id == 4,
	    "a subflow, and its connection's token");
	begin(AF_INET, 1);
	put_subflow(MPTCP_SUBFLOW_FLAG_JOIN_REM | MPTCP_SUBFLOW_FLAG_BKUP_LOC);
	tap(parse(false, &c) && c.backup && !c.fallback, "a backup subflow");
	begin(AF_INET, 1);
	put_subflow(MPTCP_SUBFLOW_FLAG_MCAP_LOC);
	tap(parse(false, &c) && c.fallback, "one whose peer speaks TCP alone");
	begin(AF_INET, 2);
	put_subflow(MPTCP_SUBFLOW_FLAG_MCAP_LOC);
	tap(parse(false, &c) && !c.fallback, "before the peer has answered nobody knows");
}

static void multipath(void)
{
	uint64_t info[10] = { 0 };
	struct guise_connection c;

	info[1] = (uint64_t)0x1234 << 32 | MPTCP_INFO_FLAG_FALLBACK;
	info[6] = 1;
	info[7] = 2;
	info[8] = 3;
	info[9] = 4;
	begin(AF_INET, 1);
	guise_nl_put(&m, INET_DIAG_INFO, info, sizeof(info));
	tap(parse(true, &c) && c.mptcp && c.token == 0x1234 && c.fallback && !c.measured,
	    "a Multipath TCP connection that has fallen back");
	tap(c.counted && c.resent == 1 && c.sent == 2 && c.received == 3 && c.acked == 4,
	    "its bytes");
	begin(AF_INET, 1);
	guise_nl_put(&m, INET_DIAG_INFO, info, 44);
	tap(parse(true, &c) && !c.counted && c.token == 0x1234, "an older kernel's");
}

static void cut(void)
{
	const size_t least = NLMSG_LENGTH(sizeof(struct inet_diag_msg));
	struct guise_connection c;
	unsigned int wrong = 0;
	size_t at = 0;

	begin(AF_INET, 1);
	put_subflow(MPTCP_SUBFLOW_FLAG_MCAP_REM);
	for (size_t len = sizeof(struct nlmsghdr); len < m.len; len++)
		wrong += parse_cut(len, false, &c) != (len >= least);
	tap(!wrong, "an answer that is cut is none, or says less (%u)", wrong);
	((struct nlmsghdr *)m.buf)->nlmsg_len = (uint32_t)m.len + 1;
	tap(!guise_nl_message(m.buf, m.len, &at), "a message longer than what came is none");
	((struct nlmsghdr *)m.buf)->nlmsg_len = 3;
	tap(!guise_nl_message(m.buf, m.len, &at), "nor one shorter than its head");
	at = m.len + 4;
	tap(!guise_nl_message(m.buf, m.len, &at), "nor one beyond the end");
}

int main(void)
{
	tcp();
	subflows();
	multipath();
	cut();
	tap(!strcmp(guise_connection_state(1), "established") &&
		    !strcmp(guise_connection_state(11), "closing"),
	    "names of states");
	tap(!strcmp(guise_connection_state(0), "unknown") &&
		    !strcmp(guise_connection_state(12), "unknown"),
	    "and of what is none");
	return tap_end();
}
