// SPDX-License-Identifier: GPL-2.0-only
/*
 * Frames in a stream: whole and in order however the stream is cut, and
 * what can be no frame is passed over, or ends it.
 */
#include "link/framing.h"

#include "link/frame.h"
#include "test/tap.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct guise_framing *fresh(void)
{
	struct guise_framing *f = calloc(1, sizeof(*f));

	if (!f)
		abort();
	return f;
}

static uint8_t byte_at(uint32_t length, uint32_t i)
{
	return (uint8_t)(length * 31 + i * 7 + (i >> 8));
}

/* The frame as it stands in a stream. */
static uint32_t encode(uint8_t *to, uint32_t length)
{
	guise_framing_head(to, length);
	for (uint32_t i = 0; i < length; i++)
		to[GUISE_FRAMING_HEAD + i] = byte_at(length, i);
	return GUISE_FRAMING_HEAD + length;
}

/* Gives the reader so many bytes; false when there is no room for them. */
static bool feed(struct guise_framing *f, const uint8_t *from, uint32_t bytes)
{
	struct guise_iov room = guise_framing_room(f);

	if (room.len < bytes)
		return false;
	memcpy(room.base, from, bytes);
	guise_framing_came(f, bytes);
	return true;
}

/* The next frame, in three pieces; checks its header and its bytes. */
static int64_t next(struct guise_framing *f)
{
	static uint8_t buf[GUISE_FRAME_MAX + 1];
	struct guise_iov iov[3] = { { buf, 5 },
				    { buf + 5, 100 },
				    { buf + 105, sizeof(buf) - 105 } };
	int64_t ret;

	memset(buf, 0xee, sizeof(buf));
	ret = guise_framing_get(f, iov, 3);
	if (ret < 0)
		return ret;
	for (uint32_t i = 0; i < GUISE_FRAME_HDR; i++)
		if (buf[i])
			return -EIO;
	ret -= (int64_t)GUISE_FRAME_HDR;
	for (uint32_t i = 0; i < ret; i++)
		if (buf[GUISE_FRAME_HDR + i] != byte_at((uint32_t)ret, i))
			return -EIO;
	return ret;
}

static void cut_anywhere(void)
{
	static const uint32_t sizes[] = { 14, 60, 1514, 65535, 14, 9014, 65535, 15 };
	static uint8_t stream[4 * 65535];
	uint32_t total = 0, at, i;
	bool good = true;

	for (i = 0; i < 8; i++)
		total += encode(stream + total, sizes[i]);
	for (uint32_t step = 1; good && step < 200000; step = step * 3 + 1) {
		struct guise_framing *f = fresh();

		for (at = i = 0; good && at < total;) {
			uint32_t part = total - at < step ? total - at : step;
			struct guise_iov room = guise_framing_room(f);
			int64_t ret;

			if (part > room.len)
				part = (uint32_t)room.len;
			good = part && feed(f, stream + at, part);
			at += part;
			while (good && (ret = next(f)) != -EAGAIN)
				good = i < 8 && ret == sizes[i++];
		}
		good = good && i == 8 && !f->is.have;
		free(f);
	}
	tap(good, "frames come out whole and in order, however the stream is cut");
}

static void bad_lengths(void)
{
	static const uint32_t bad[] = { 0, 1, 13, 65536, GUISE_FRAMING_SKIP };
	static uint8_t stream[GUISE_FRAMING_SKIP + 1024];

	for (uint32_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct guise_framing *f = fresh();
		uint32_t total = encode(stream, bad[i]), at = 0;
		int malformed = 0, frames = 0;

		total += encode(stream + total, 64);
		while (at < total) {
			uint32_t part = total - at < 50000 ? total - at : 50000;
			int64_t ret;

			feed(f, stream + at, part);
			at += part;
			while ((ret = next(f)) != -EAGAIN) {
				malformed += ret == -EBADMSG;
				frames += ret == 64;
			}
		}
		tap(malformed == 1 && frames == 1,
		    "a frame of %u bytes is counted once and passed over, the next one is delivered",
		    bad[i]);
		free(f);
	}
}

static void out_of_step(void)
{
	struct guise_framing *f = fresh();
	uint8_t stream[128];

	encode(stream, 64);
	feed(f, (const uint8_t *)"GET / HTTP/1.0\r\n", 16);
	tap(next(f) == -EPROTO && f->bad == 0x47455420, "what is no frame at all ends the stream");
	feed(f, stream, 68);
	tap(next(f) == -EPROTO, "for good");
	free(f);

	f = fresh();
	guise_framing_head(stream, GUISE_FRAMING_SKIP + 1);
	feed(f, stream, 4);
	tap(next(f) == -EPROTO && f->bad == GUISE_FRAMING_SKIP + 1,
	    "and so does a length over 1 MiB");
	free(f);
}

static void too_long_for_the_reader(void)
{
	struct guise_framing *f = fresh();
	uint8_t stream[2048], buf[100];
	struct guise_iov iov = { buf, sizeof(buf) };
	uint32_t total = encode(stream, 1000);

	feed(f, stream, total);
	total = encode(stream, 64);
	feed(f, stream, total);
	tap(guise_framing_get(f, &iov, 1) == -EBADMSG && next(f) == 64,
	    "a frame longer than the reader's buffer is passed over");
	free(f);
}

/* A frame with its header, in pieces. */
static int64_t put(struct guise_framing *f, uint32_t length, uint32_t sent)
{
	static uint8_t hdr[GUISE_FRAME_HDR], frame[65536 + 16];
	struct guise_iov iov[3] = { { hdr, sizeof(hdr) } };

	for (uint32_t i = 0; i < length; i++)
		frame[i] = byte_at(length, i);
	iov[1] = (struct guise_iov){ frame, length / 3 };
	iov[2] = (struct guise_iov){ frame + length / 3, length - length / 3 };
	return guise_framing_put(f, iov, 3, sent);
}

static void out(void)
{
	struct guise_framing *f = fresh(), *in = fresh();
	uint32_t n = 0, got = 0;
	struct guise_iov due;
	bool good = true;

	tap(put(f, 13, 0) == -EMSGSIZE && put(f, 65536, 0) == -EMSGSIZE && !f->is.have,
	    "frames of 13 and of 65536 bytes are not sent");
	while (put(f, 65535, 0) == (int64_t)GUISE_FRAME_HDR + 65535)
		n++;
	tap(n == 3 && put(f, 65535, 0) == -EAGAIN, "there is room for some of the longest");
	/* A slow peer takes odd parts, while there is more to come. */
	for (uint32_t i = 0; good && got < n + 20;) {
		if (i < 20 && put(f, 1500, 0) > 0)
			i++;
		due = guise_framing_due(f);
		if (due.len > 7777)
			due.len = 7777;
		good = due.len && feed(in, due.base, (uint32_t)due.len);
		guise_framing_gone(f, (uint32_t)due.len);
		for (int64_t ret; good && (ret = next(in)) != -EAGAIN; got++)
			good = ret == (got < n ? 65535 : 1500);
	}
	tap(good && !f->is.have && !in->is.have,
	    "what a slow peer takes bit by bit arrives in order");

	for (uint32_t sent = 0; good && sent < 68; sent++) {
		uint8_t whole[68];

		encode(whole, 64);
		good = feed(in, whole, sent) && put(f, 64, sent) > 0;
		due = guise_framing_due(f);
		good = good && due.len == 68 - sent && feed(in, due.base, (uint32_t)due.len) &&
		       next(in) == 64;
		guise_framing_gone(f, (uint32_t)due.len);
	}
	tap(good, "the rest of a frame of which some was sent already");
	free(f);
	free(in);
}

static void writes(void)
{
	static const uint32_t sizes[] = { 60, 9014, 60, 20000, 65535, 1514, 40000, 14 };
	static const uint32_t expected[] = { 72 + 9014 + 64 + 20004 - 4, 65539, 1518, 40004, 18 };
	struct guise_framing *f = fresh();
	struct guise_iov due;
	bool good = true;

	for (uint32_t i = 0; i < 8; i++)
		good = good && put(f, sizes[i], 0) > 0;
	for (uint32_t i = 0; i < 5; i++) {
		due = guise_framing_due(f);
		good = good && due.len == expected[i];
		guise_framing_gone(f, (uint32_t)due.len);
	}
	tap(good && !f->is.have, "frames are written whole, and only so many at once");

	put(f, 65535, 30000);
	put(f, 1000, 0);
	due = guise_framing_due(f);
	good = due.len == 65539 - 30000;
	guise_framing_gone(f, 10000);
	put(f, 1000, 0);
	due = guise_framing_due(f);
	good = good && due.len == 65539 - 40000 + 2 * 1004;
	guise_framing_gone(f, 65539 - 40000 + 4);
	due = guise_framing_due(f);
	tap(good && due.len == 2 * 1004 - 4, "what is left of one, and more");
	free(f);
}

/* ---- killed in here ---------------------------------------------------------------------- */

#define KILLS 100

/* Whether the bytes of f that are to be written are whole frames of put()'s. */
static bool is_whole(struct guise_framing *f)
{
	const uint8_t *end = f->data + f->is.at + f->is.have, *p = f->data + f->is.at + f->is.skip;

	while (p < end) {
		uint32_t length = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 |
				  (uint32_t)p[2] << 8 | p[3];

		if (length > GUISE_FRAMING_MOST || p + GUISE_FRAMING_HEAD + length > end)
			return false;
		for (uint32_t i = 0; i < length; i++)
			if (p[GUISE_FRAMING_HEAD + i] != byte_at(length, i))
				return false;
		p += GUISE_FRAMING_HEAD + length;
	}
	return p == end;
}

static void write_always(struct guise_framing *f)
{
	for (uint32_t i = 0;; i++) {
		struct guise_iov due;

		while (put(f, 14 + i * 997 % 3000, 0) == -EAGAIN) {
			due = guise_framing_due(f);
			guise_framing_gone(f, (uint32_t)due.len / 2);
		}
	}
}

/* The buffer is shared; another process goes on with it. */
static void killed(void)
{
	struct guise_framing *f =
		mmap(NULL, sizeof(*f), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int whole = 0;

	fflush(stdout);
	for (int i = 0; i < KILLS; i++) {
		const struct timespec moment = { 0, 100000 + i * 7919 % 500000 };
		pid_t pid = fork();

		if (!pid)
			write_always(f);
		nanosleep(&moment, NULL);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		whole += is_whole(f);
	}
	tap(whole == KILLS, "whoever is killed leaves whole frames, %d times of %d", whole, KILLS);
	munmap(f, sizeof(*f));
}

int main(void)
{
	cut_anywhere();
	bad_lengths();
	out_of_step();
	too_long_for_the_reader();
	out();
	writes();
	killed();
	return tap_end();
}
