// SPDX-License-Identifier: GPL-2.0-only
/*
 * The engine of connections.
 *
 *	end.c		a descriptor of the stack or of the host
 *	stream.c	TCP, when both ends are connected
 *	datagram.c	UDP, in both directions
 *	refusal.c	tells a program on the stack that no program listens there
 *	table.c		finds a conversation by its addresses
 *
 * Its structure is a part of its user's structure, which it does not know. It asks the user
 * through struct engine_ops which addresses are relayed and to where. Listeners, and
 * connections that are being made, are the user's own ends.
 *
 * One thread of the user calls engine_timers() and engine_turn() in a loop, and only that
 * thread may call any function of the engine. Only engine_turn() blocks: it waits in the
 * stack, on an epoll of the stack and an epoll of the host at the same time.
 *
 * Memory is bounded: by most_streams, most_flows, and the data that each stream keeps. The
 * work for a datagram or an event does not depend on how many conversations and streams
 * there are.
 *
 * When an object ends, other events that were fetched in the same turn may still point to it.
 * So it is freed at the end of the turn; until then its descriptors are -1, and events for it
 * are ignored.
 */
#include "relay/engine.h"

#include "relay/datagram.h"
#include "relay/stream.h"

#include "region/stack.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <time.h>

#define EVENTS  64
#define REST_MS 100

struct guise_stack *engine_stack(const struct engine *g)
{
	return g->s;
}

static uint64_t clock_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void engine_bury(struct engine *g, struct grave *dead)
{
	dead->next = g->graves;
	g->graves = dead;
}

static void free_graves(struct engine *g)
{
	while (g->graves) {
		struct grave *dead = g->graves;

		g->graves = dead->next;
		free(dead);
	}
}

int engine_begin(struct engine *g, struct guise_stack *s)
{
	g->s = s;
	list_init(&g->resting);
	list_init(&g->streams);
	list_init(&g->flows);
	table_begin(&g->flow);
	for (int k = 0; k < 2; k++)
		end_init(&g->icmp[k], g, true, -1, NULL, NULL);
	g->now = clock_ms();
	g->stack_epoll = guise_epoll_create(s, EPOLL_CLOEXEC);
	g->host_epoll = (int)host_sys(SYS_epoll_create1, EPOLL_CLOEXEC);
	if (g->stack_epoll < 0 || g->host_epoll < 0)
		return guise_fail(EMFILE, "no descriptors for the relays");
	return 0;
}

void engine_end(struct engine *g)
{
	stream_end_all(g);
	datagram_end_all(g);
	for (int k = 0; k < 2; k++)
		end_close(&g->icmp[k]);
	free_graves(g);
	table_end(&g->flow);
	if (g->stack_epoll >= 0)
		guise_call(g->s, GUISE_NR_close, g->stack_epoll, 0, 0, 0, 0, 0);
	if (g->host_epoll >= 0)
		host_sys(SYS_close, g->host_epoll);
	g->stack_epoll = g->host_epoll = -1;
}

/* ---- listeners that rest --------------------------------------------------------- */

void engine_rest(struct end *listener, long err)
{
	struct engine *g = listener->engine;

	if ((err != -EMFILE && err != -ENFILE && err != -ENOBUFS && err != -ENOMEM) ||
	    end_watch(listener, 0))
		return;
	if (list_empty(&g->resting))
		g->rested = g->now;
	list_add_first(&g->resting, &listener->rest);
}

/* Watches the resting listeners again. One that cannot be watched yet goes on resting. */
static void wake_listeners(struct engine *g)
{
	struct list due;

	list_add_first(&g->resting, &due);
	list_remove(&g->resting);
	list_init(&g->resting);
	while (!list_empty(&due)) {
		struct end *e = list_of(due.next, struct end, rest);

		engine_rest(e, end_watch(e, EPOLLIN));
	}
}

/* ---- turns ----------------------------------------------------------------------- */

int engine_timers(struct engine *g)
{
	int wait;

	g->now = clock_ms();
	wait = datagram_sweep(g);
	if (!list_empty(&g->resting) && g->now - g->rested >= REST_MS)
		wake_listeners(g);
	if (!list_empty(&g->resting) && (wait < 0 || wait > REST_MS))
		wait = REST_MS;
	return wait;
}

static void dispatch(const struct epoll_event *ev, long n)
{
	for (long i = 0; i < n; i++) {
		struct end *e = ev[i].data.ptr;

		if (e->fd >= 0)
			e->ready(e, ev[i].events);
	}
}

bool engine_turn(struct engine *g, int wait)
{
	struct epoll_event ev[EVENTS];
	struct pollfd host = { .fd = g->host_epoll, .events = POLLIN };
	int beside;
	long n;

	n = guise_call_polling(g->s, &host, 1, &beside, GUISE_NR_epoll_pwait, g->stack_epoll,
			       (long)ev, EVENTS, wait, 0, 8);
	if (n == -ENETDOWN)
		return false;
	g->now = clock_ms();
	dispatch(ev, n);
	n = host_sys(SYS_epoll_pwait, g->host_epoll, ev, EVENTS, 0, NULL, 8);
	dispatch(ev, n);
	free_graves(g);
	return true;
}
