// SPDX-License-Identifier: GPL-2.0-only
/*
 * Streams: the data of each of two connections is sent on the other.
 *
 * Received data is sent on at once. Data that the other end does not take is kept, at
 * most one chunk in each direction, and nothing more is received until it has been sent.
 * So TCP itself slows the sender down, and memory is bounded. When one end has sent all
 * of its data and shuts that direction down, this is passed on after the data, and the
 * other direction continues (half-close). A reset of one connection resets the other. A
 * byte of urgent data is sent on as urgent, at the same place in the data.
 *
 * An end from which no event is needed at the moment is not watched at all: epoll would
 * report its hang-up again and again. The hang-up is noticed when the end is used next.
 */
#include "relay/stream.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#define ROUNDS 8 /* chunks that are moved for one stream before it is the turn of others */

/* From one end to the other. */
struct direction {
	char *kept;
	size_t from, to; /* the part of kept that has not been sent */
	bool eof, shut;  /* the end of the data was received; was passed on */
	bool urgent;     /* there is urgent data that has not been sent on */
	int kept_flags;  /* of send(), for kept */
};

struct stream {
	struct grave grave;
	struct list place; /* in the engine's streams */
	struct engine *engine;
	struct end end[2];       /* near, far */
	struct direction way[2]; /* from end[k] */
	bool connecting;
};

static void forget(struct stream *st)
{
	list_remove(&st->place);
	st->engine->n_streams--;
	if (!st->way[0].shut)
		__atomic_sub_fetch(&st->engine->busy, 1, __ATOMIC_RELEASE);
	free(st->way[0].kept);
	free(st->way[1].kept);
	engine_bury(st->engine, &st->grave);
}

static void abort_both(struct stream *st)
{
	end_reset(&st->end[0]);
	end_reset(&st->end[1]);
	forget(st);
}

/* Keeps data that could not be sent. False when there is no memory. */
static bool keep(struct direction *w, const char *data, size_t n)
{
	w->kept = malloc(n);
	if (!w->kept)
		return false;
	memcpy(w->kept, data, n);
	w->from = 0;
	w->to = n;
	return true;
}

static long transmit(struct end *to, const char *data, size_t n, int flags)
{
	return end_call(to, sendto, data, n, MSG_DONTWAIT | MSG_NOSIGNAL | flags, 0, 0);
}

/* Whether the next byte is the urgent one. A receive before that byte ends in front of it. */
static bool at_mark(struct end *e)
{
	int at = 0;

	return !end_call(e, ioctl, SIOCATMARK, &at, 0, 0, 0) && at;
}

/* Moves what can be moved from end k; false when an end is broken. */
static bool move(struct stream *st, int k)
{
	struct direction *w = &st->way[k];
	struct end *from = &st->end[k], *to = &st->end[!k];
	char *scratch = st->engine->scratch;
	long n, sent;
	int flags;

	for (int i = 0; i < ROUNDS; i++) {
		if (w->kept) {
			sent = transmit(to, w->kept + w->from, w->to - w->from, w->kept_flags);
			if (sent == -EAGAIN)
				break;
			if (sent < 0)
				return false;
			w->from += (size_t)sent;
			if (w->from < w->to)
				break;
			free(w->kept);
			w->kept = NULL;
		}
		if (w->eof)
			break;
		flags = w->urgent && at_mark(from) ? MSG_OOB : 0;
		n = end_call(from, recvfrom, scratch, flags ? 1 : ENGINE_CHUNK, MSG_DONTWAIT, 0, 0);
		if (n == -EAGAIN)
			break;
		if (n < 0)
			return false;
		if (!n) {
			w->eof = true;
			break;
		}
		if (flags)
			w->urgent = false;
		sent = transmit(to, scratch, (size_t)n, flags);
		if (sent == -EAGAIN)
			sent = 0;
		if (sent < 0)
			return false;
		w->kept_flags = flags;
		if (sent < n && !keep(w, scratch + sent, (size_t)(n - sent)))
			return false;
	}
	if (w->eof && !w->kept && !w->shut) {
		end_call(to, shutdown, SHUT_WR, 0, 0, 0, 0);
		w->shut = true;
		if (!k)
			__atomic_sub_fetch(&st->engine->busy, 1, __ATOMIC_RELEASE);
	}
	return true;
}

static bool watch(struct stream *st)
{
	for (int k = 0; k < 2; k++) {
		uint32_t events = 0;

		if (!st->way[k].eof && !st->way[k].kept)
			events |= EPOLLIN | EPOLLPRI;
		if (st->way[!k].kept)
			events |= EPOLLOUT;
		if (end_watch(&st->end[k], events))
			return false;
	}
	return true;
}

static void ready(struct end *e, uint32_t events)
{
	struct stream *st = e->owner;

	if (events & EPOLLPRI)
		st->way[e == &st->end[1]].urgent = true;
	if (st->connecting) {
		if (end_error(e)) {
			abort_both(st);
			return;
		}
		st->connecting = false;
	}
	if (!move(st, 0) || !move(st, 1) || !watch(st)) {
		abort_both(st);
		return;
	}
	if (st->way[0].shut && st->way[1].shut) {
		end_close(&st->end[0]);
		end_close(&st->end[1]);
		forget(st);
	}
}

bool stream_join(const struct end *near, const struct end *far, bool connecting)
{
	struct engine *g = near->engine;
	struct stream *st = g->n_streams < g->most_streams ? calloc(1, sizeof(*st)) : NULL;
	struct end end[2];

	end_init(&end[0], g, near->inside, near->fd, st, ready);
	end_init(&end[1], g, far->inside, far->fd, st, ready);
	for (int k = 0; k < 2; k++) {
		end_option(&end[k], IPPROTO_TCP, TCP_NODELAY, 1);
		end_option(&end[k], SOL_SOCKET, SO_OOBINLINE, 1);
		/*
		 * The engine does not know whether the programs set SO_KEEPALIVE on their
		 * own connections, which end here. With it a peer that is gone is noticed
		 * after net.ipv4.tcp_keepalive_time.
		 */
		end_option(&end[k], SOL_SOCKET, SO_KEEPALIVE, 1);
	}
	if (!st) {
		end_reset(&end[0]);
		end_reset(&end[1]);
		return false;
	}
	st->engine = g;
	memcpy(st->end, end, sizeof(end));
	st->connecting = connecting;
	list_add_first(&g->streams, &st->place);
	g->n_streams++;
	__atomic_add_fetch(&g->busy, 1, __ATOMIC_RELEASE);
	if (connecting ? end_watch(&st->end[0], EPOLLOUT) : !watch(st)) {
		abort_both(st);
		return false;
	}
	return true;
}

void stream_end_all(struct engine *g)
{
	while (!list_empty(&g->streams)) {
		struct stream *st = list_of(g->streams.next, struct stream, place);

		/* All data of the near end has been given to the far connection, which delivers
		 * it if it is closed and not reset. */
		if (st->way[0].shut)
			end_close(&st->end[1]);
		abort_both(st);
	}
}
