// SPDX-License-Identifier: GPL-2.0-only
/* The backend between; it runs on kernel stacks, with the virtual CPU held. */
#include "watch.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static struct watch watch;
static struct guise_link *link;
static const struct guise_link_backend *real;
static struct guise_link_backend between;

static const struct frame *expected;
static uint32_t n_expected, done;
static bool drained;

static bool handed_over; /* the port has a frame that it has not accounted for */
static enum verdict handed_verdict;
static uint64_t seen_frames, seen_malformed;

static const char *const fate_name[] = { "accepted", "counted as malformed", "lost" };
enum fate { FATE_ACCEPTED, FATE_MALFORMED, FATE_LOST };

__attribute__((format(printf, 1, 2))) static void find(const char *format, ...)
{
	va_list ap;

	if (watch.finding[0])
		return;
	va_start(ap, format);
	vsnprintf(watch.finding, sizeof(watch.finding), format, ap);
	va_end(ap);
}

/* For a finding: the header, and enough of the frame to know it by. */
static const char *hex(const uint8_t *bytes, uint64_t len)
{
	static char text[2 * FRAME_VERDICT + 4];
	uint64_t i, n = len < FRAME_VERDICT ? len : FRAME_VERDICT;

	for (i = 0; i < n; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	snprintf(text + 2 * n, 4, "%s", n < len ? "..." : "");
	return text;
}

static void meet(enum fate fate, enum verdict verdict, const struct frame *f)
{
	if (fate == FATE_ACCEPTED)
		watch.accepted++;
	else if (fate == FATE_MALFORMED)
		watch.malformed++;
	else
		watch.lost++;
	if (f)
		verdict = frame_verdict(f->bytes, f->len);
	if (fate == FATE_LOST || (fate == FATE_ACCEPTED && verdict == VERDICT_BAD) ||
	    (fate == FATE_MALFORMED && verdict == VERDICT_GOOD))
		find("a %s frame was %s: %u bytes %s",
		     verdict == VERDICT_BAD ? "malformed" : "well-formed", fate_name[fate],
		     f ? f->len : 0, f ? hex(f->bytes, f->len) : "");
}

/* The next frame of those expected; NULL when nobody knows. */
static const struct frame *next_expected(void)
{
	if (!expected)
		return NULL;
	if (done == n_expected) {
		find("the link brought more frames than were fed to it");
		return NULL;
	}
	return &expected[done++];
}

/* What became of the frame that the port was given last. */
static void account(void)
{
	uint64_t frames = link->rx_frames - seen_frames;
	uint64_t bad = link->rx_malformed - seen_malformed;

	if (handed_over) {
		handed_over = false;
		meet(frames ? FATE_ACCEPTED
		     : bad  ? FATE_MALFORMED
			    : FATE_LOST,
		     handed_verdict, next_expected());
		if (frames + bad > 1)
			find("one frame was counted %llu times",
			     (unsigned long long)(frames + bad));
	} else if (frames || bad) {
		find("%llu frames were counted that never came",
		     (unsigned long long)(frames + bad));
	}
	seen_frames = link->rx_frames;
	seen_malformed = link->rx_malformed;
}

/* What the port was given is what was fed. */
static void compare(const struct guise_iov *iov, uint32_t n, int64_t got)
{
	const struct frame *f = &expected[done];
	uint64_t at = 0, part;
	uint32_t i;

	if (done >= n_expected)
		return;
	if (got != f->len && f->len <= FRAME_ROOM)
		find("of a frame of %u bytes came %lld: %s", f->len, (long long)got,
		     hex(f->bytes, f->len));
	for (i = 0; i < n && at < f->len; i++, at += part) {
		part = f->len - at < iov[i].len ? f->len - at : iov[i].len;
		if (memcmp(iov[i].base, f->bytes + at, part))
			find("a frame of %u bytes came damaged: %s", f->len, hex(f->bytes, f->len));
	}
}

static int64_t watched_in(struct guise_link_port *port, const struct guise_iov *iov, uint32_t n)
{
	uint64_t dropped;
	int64_t got;

	account();
	got = real->in(port, iov, n);
	dropped = link->rx_malformed - seen_malformed;
	seen_malformed = link->rx_malformed;
	watch.malformed_in_backend += dropped;
	drained = got == -EAGAIN && !dropped;
	while (dropped--)
		meet(FATE_MALFORMED, VERDICT_EITHER, next_expected());
	if (got < 0) {
		if (got != -EAGAIN)
			find("the backend failed: %s", strerror((int)-got));
		return got;
	}
	handed_over = true;
	if (expected) {
		compare(iov, n, got);
	} else {
		uint8_t head[FRAME_VERDICT] = { 0 };

		memcpy(head, iov[0].base, FRAME_HDR);
		memcpy(head + FRAME_HDR, iov[1].base, sizeof(head) - FRAME_HDR);
		handed_verdict = frame_verdict(head, (uint64_t)got);
	}
	return got;
}

static int64_t watched_out(struct guise_link_port *port, const struct guise_iov *iov, uint32_t n)
{
	return real->out(port, iov, n);
}

static void watched_detach(struct guise_link_port *port)
{
	real->detach(port);
}

struct watch *watch_link(struct guise_stack *s, unsigned int index)
{
	link = &s->region->links[index];
	real = s->port[index].backend;
	between = *real;
	between.in = watched_in;
	between.out = watched_out;
	between.detach = watched_detach;
	s->port[index].backend = &between;
	seen_frames = link->rx_frames;
	seen_malformed = link->rx_malformed;
	return &watch;
}

void watch_expect(const struct frame *frames, uint32_t n)
{
	expected = frames;
	n_expected = n;
	done = 0;
}

bool watch_drained(void)
{
	bool was = drained;

	drained = false;
	return was;
}
