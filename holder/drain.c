// SPDX-License-Identifier: GPL-2.0-only
/*
 * Delivery after the end.
 *
 * A program may exit with data in its sockets' send queues; a host's kernel
 * goes on delivering it. So does a stack whose last member has left: its pump
 * runs until every connection has been acknowledged to the end. A connection
 * that only waits for its peer to close (FIN_WAIT2, TIME_WAIT) has nothing left
 * to deliver and is not waited for, nor is one whose address is on no interface with a carrier: its
 * path is gone. What came from a program by a published port or
 * a relayed address is delivered when the relay's connection has ended.
 */
#include "holder/drain.h"

#include "holder/carrier/ask.h"
#include "holder/control/control.h"
#include "holder/members/members.h"
#include "holder/relay/relay.h"

#include "host/sys.h"
#include "region/bury.h"
#include "region/stack.h"
#include "region/vcpu.h"
#include "region/wait.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LOOK_MS 20

/* An address as the kernel writes it there, in words of the processor's order. */
static bool parse_address(const char *hex, struct guise_address *a)
{
	uint32_t word[4] = { 0 };
	int n = 0;

	while (n < 4 && sscanf(hex + 8 * n, "%8x", &word[n]) == 1 && hex[8 * n] != ':')
		n++;
	*a = (struct guise_address){ .family = n == 1 ? AF_INET : AF_INET6 };
	memcpy(a->addr, word, sizeof(word));
	if (n == 4 && !word[0] && !word[1] && word[2] == htonl(0xffff)) { /* IPv4, mapped */
		*a = (struct guise_address){ .family = AF_INET };
		memcpy(a->addr, &word[3], sizeof(word[3]));
	}
	return n == 1 || n == 4;
}

static bool is_one_of(const char *hex, const struct drain_addresses *there)
{
	struct guise_address a;

	if (there->n < 0 || !parse_address(hex, &a))
		return true;
	for (int i = 0; i < there->n; i++)
		if (!memcmp(&there->address[i], &a, sizeof(a)))
			return true;
	/* All of 127/8 is on lo. */
	return a.family == AF_INET && a.addr[0] == 127;
}

unsigned int drain_count(const char *text, const struct drain_addresses *there)
{
	unsigned int n = 0, state, queue;
	char local[48];
	const char *line;

	for (line = strchr(text, '\n'); line && line[1]; line = strchr(line + 1, '\n')) {
		/* sl local remote st tx_queue:rx_queue */
		if (sscanf(line + 1, "%*s %47s %*s %x %x:", local, &state, &queue) != 3 ||
		    state == TCP_LISTEN || !is_one_of(local, there))
			continue;
		/* In these a peer still owes us an acknowledgement whatever the queue says. */
		if (queue || state == TCP_FIN_WAIT1 || state == TCP_LAST_ACK ||
		    state == TCP_CLOSING)
			n++;
	}
	return n;
}

static unsigned int unfinished(struct guise_stack *s, char *buf, size_t size)
{
	struct drain_addresses there;
	unsigned int n = 0;

	there.n = guise_addresses(s, there.address, DRAIN_ADDRESSES);
	if (there.n == DRAIN_ADDRESSES) /* there may be more */
		there.n = -1;
	if (guise_read_file(s, "/proc/net/tcp", buf, size) > 0)
		n += drain_count(buf, &there);
	if (guise_read_file(s, "/proc/net/tcp6", buf, size) > 0)
		n += drain_count(buf, &there);
	return n;
}

/* A process that died has not closed its sockets before the reaper is done with it. */
static bool burying(struct guise_stack *s)
{
	unsigned int i;

	if (s->region->dead)
		return false;
	if (guise_bury_unfinished(s))
		return true;
	for (i = 0; i < GUISE_MAX_PROCS; i++)
		if (s->region->procs[i].used && s->region->procs[i].dead)
			return true;
	return false;
}

/* All its links are gone: nothing can be delivered any more. */
static bool cut_off(const struct guise_stack *s)
{
	unsigned int i, links = 0, live = 0;

	for (i = 0; i < GUISE_MAX_LINKS; i++) {
		links += s->region->links[i].used != 0;
		live += guise_link_live(s, i);
	}
	return links && !live;
}

/* Nobody joins a stack that is ending. */
static void nobody(void *arg, unsigned int proc)
{
	(void)arg;
	(void)proc;
}

void drain(struct guise_stack *s, const struct relay *relay, struct control *control, int signals)
{
	const uint64_t until = guise_host_now() + GUISE_DRAIN_SECONDS * 1000000000ull;
	struct pollfd p[2] = {
		{ .fd = signals, .events = POLLIN },
		{ .fd = control_fd(control), .events = POLLIN },
	};
	const size_t size = 1 << 20;
	char *buf = malloc(size);

	while (buf && guise_host_now() < until &&
	       (burying(s) || (!s->region->dead && relay_busy(relay)) ||
		guests_have_sent(&relay->guests, s) || (!cut_off(s) && unfinished(s, buf, size)))) {
		struct timespec t = { 0, LOOK_MS * 1000000l };

		ask_deadline(END_SECONDS);
		if (host_sys(SYS_ppoll, p, 2, &t, NULL, 0) <= 0)
			continue;
		if (p[0].revents)
			break;
		control_turn(control, nobody, NULL);
	}
	free(buf);
}
