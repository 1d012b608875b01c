// SPDX-License-Identifier: GPL-2.0-only
/*
 * Delivery after the end.
 *
 * A program may exit with data in its sockets' send queues; a host's kernel
 * goes on delivering it. So does a stack whose last member has left: its pump
 * runs until every connection has been acknowledged to the end. A connection
 * that only waits for its peer to close (FIN_WAIT2, TIME_WAIT) has nothing left
 * to deliver and is not waited for. What came from a program by a published port or
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

#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LOOK_MS 20

unsigned int drain_count(const char *text)
{
	unsigned int n = 0, state, queue;
	const char *line;

	for (line = strchr(text, '\n'); line && line[1]; line = strchr(line + 1, '\n')) {
		/* sl local remote st tx_queue:rx_queue */
		if (sscanf(line + 1, "%*s %*s %*s %x %x:", &state, &queue) != 2 ||
		    state == TCP_LISTEN)
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
	unsigned int n = 0;

	if (guise_read_file(s, "/proc/net/tcp", buf, size) > 0)
		n += drain_count(buf);
	if (guise_read_file(s, "/proc/net/tcp6", buf, size) > 0)
		n += drain_count(buf);
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
