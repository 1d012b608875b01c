// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel's structures are written down here: they grew after the headers of Debian 12, and
 * each kernel fills in as much as it knows.
 */
#include "state.h"

#include <linux/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SOL_MPTCP     284
#define INFO          1
#define TCPINFO       2
#define SUBFLOW_ADDRS 3
#define FELL_BACK     1

struct info {
	uint8_t subflows, add_addr_signal, add_addr_accepted, subflows_max, add_addr_signal_max,
		add_addr_accepted_max;
	uint32_t flags, token;
	uint64_t write_seq, snd_una, rcv_nxt;
	uint8_t local_addr_used, local_addr_max, csum_enabled;
	uint32_t retransmits;
	uint64_t bytes_retrans, bytes_sent, bytes_received, bytes_acked;
};

_Static_assert(offsetof(struct info, token) == 12 && sizeof(struct info) == 80,
	       "struct mptcp_info of Linux 6.12, as far as it is read");

/* The head of what MPTCP_TCPINFO and MPTCP_SUBFLOW_ADDRS give. */
struct array {
	uint32_t size, n, size_kernel, size_user;
};

struct addresses {
	struct sockaddr_storage local, remote;
};

static int ask(int fd, int option, struct array *head, size_t whole, size_t element)
{
	socklen_t length = (socklen_t)whole;

	*head = (struct array){ .size = sizeof(*head), .size_user = (uint32_t)element };
	if (getsockopt(fd, SOL_MPTCP, option, head, &length))
		return -1;
	return head->n < STATE_SUBFLOWS ? (int)head->n : STATE_SUBFLOWS;
}

/* The kernel lists those that wait for an answer to their SYN as well. */
static bool is_open(uint8_t state)
{
	enum { SYN_SENT = 2, SYN_RECV = 3, CLOSED = 7 };

	return state != SYN_SENT && state != SYN_RECV && state != CLOSED;
}

static void read_subflows(struct state *s, int fd)
{
	struct {
		struct array head;
		struct addresses element[STATE_SUBFLOWS];
	} a;
	struct {
		struct array head;
		struct tcp_info element[STATE_SUBFLOWS];
	} t;
	int n, m;

	memset(&a, 0, sizeof(a));
	memset(&t, 0, sizeof(t));
	n = ask(fd, SUBFLOW_ADDRS, &a.head, sizeof(a), sizeof(a.element[0]));
	m = ask(fd, TCPINFO, &t.head, sizeof(t), sizeof(t.element[0]));
	for (int i = 0; i < n; i++) {
		struct subflow *f = &s->subflow[s->n_subflows];
		const struct tcp_info *info = &t.element[i];
		bool known = n == m; /* else one came or went in between */

		if (known && !is_open(info->tcpi_state))
			continue;
		s->n_subflows++;
		f->local = address_of(&a.element[i].local);
		f->remote = address_of(&a.element[i].remote);
		if (!known)
			continue;
		f->sent = info->tcpi_bytes_acked;
		f->received = info->tcpi_bytes_received;
		f->rtt_us = info->tcpi_rtt;
		f->retransmits = info->tcpi_total_retrans;
	}
}

static void read_tcp(struct state *s, int fd)
{
	struct tcp_info i = { 0 };
	socklen_t length = sizeof(i);

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &i, &length))
		return;
	s->sent = i.tcpi_bytes_acked;
	s->received = i.tcpi_bytes_received;
}

void state_read(struct state *s, int fd)
{
	struct info i;
	socklen_t length = sizeof(i);

	memset(s, 0, sizeof(*s));
	memset(&i, 0, sizeof(i));
	if (getsockopt(fd, SOL_MPTCP, INFO, &i, &length)) {
		read_tcp(s, fd);
		return;
	}
	s->mptcp = true;
	s->fallback = i.flags & FELL_BACK;
	s->joined = i.subflows;
	s->tells_addresses = i.add_addr_signal;
	s->told_addresses = i.add_addr_accepted;
	s->token = i.token;
	s->sent = i.bytes_sent;
	s->received = i.bytes_received;
	read_subflows(s, fd);
}

void counters_read(struct counters *c)
{
	static const char prefix[] = "MPTcpExt:";
	FILE *file = fopen("/proc/net/netstat", "re");
	char *line = NULL;
	size_t size = 0;
	int n = 0;

	memset(c, 0, sizeof(*c));
	if (!file)
		return;
	/* A line of names, then one of values. */
	while (n < 2 && getline(&line, &size, file) > 0)
		if (!strncmp(line, prefix, sizeof(prefix) - 1))
			snprintf(n++ ? c->values : c->names, sizeof(c->names), "%s",
				 line + sizeof(prefix) - 1);
	free(line);
	fclose(file);
}

static uint64_t value_of(char **line)
{
	char *word = strsep(line, " \n");

	return word ? strtoull(word, NULL, 10) : 0;
}

void counters_grown(const struct counters *before, const struct counters *after,
		    void (*tell)(void *with, const char *name, uint64_t by), void *with)
{
	struct counters old = *before, new = *after;
	char *names = new.names, *was = old.values, *is = new.values, *name;

	while ((name = strsep(&names, " \n"))) {
		uint64_t from = value_of(&was), to = value_of(&is);

		if (*name && to > from)
			tell(with, name, to - from);
	}
}
