// SPDX-License-Identifier: GPL-2.0-only
/*
 * The fuzzer of the stream link's framing (lib/link/framing.c), whose input is
 * whatever the process at the other end of a socket writes.
 *
 *	stream_fuzz [--turns N | --seconds S] [--seed N]
 *
 * A turn is a stream: frames of all lengths, some that can be none, some
 * garbage, cut anywhere, taken out into buffers of all shapes. All memory is
 * heap memory of its exact size, so that the address sanitizer sees every byte
 * that is touched beyond it. A model that reads the same stream in one piece
 * says what must come out, frame by frame and byte by byte. In the other
 * direction frames go in, a slow peer takes odd parts, and the model must read
 * from them what went in.
 */
#include "pieces.h"
#include "turns.h"

#include "link/frame.h"
#include "link/framing.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STREAM_MOST (4u << 20)

static uint64_t n_frames, n_malformed, n_ended, n_sent;
static uint8_t *stream;

static uint8_t byte_of(const struct pieces *p, uint64_t at)
{
	for (uint32_t i = 0; i < p->n; i++) {
		if (at < p->iov[i].len)
			return ((uint8_t *)p->iov[i].base)[at];
		at -= p->iov[i].len;
	}
	turns_fail("more bytes than the buffers hold", (int64_t)at);
	return 0;
}

static struct guise_framing *fresh(void)
{
	struct guise_framing *f = malloc(sizeof(*f));

	if (!f)
		abort();
	memset(f, 0xa5, sizeof(*f));
	f->is = (struct guise_framing_place){ 0 };
	f->bad = 0;
	return f;
}

static uint32_t random_length(struct rng *r)
{
	static const uint32_t odd[] = { 0,
					1,
					13,
					14,
					15,
					65534,
					65535,
					65536,
					65537,
					GUISE_FRAMING_BYTES - 4,
					GUISE_FRAMING_BYTES,
					GUISE_FRAMING_SKIP };

	if (rng_one_in(r, 4))
		return rng_pick(r, odd);
	return rng_one_in(r, 8) ? 14 + rng_below(r, 65522) : 14 + rng_below(r, 1501);
}

static uint32_t make_stream(struct rng *r)
{
	uint32_t total = 0, frames = 1 + rng_below(r, 40);

	while (frames-- && total < STREAM_MOST / 2) {
		uint32_t length = random_length(r);

		guise_framing_head(stream + total, length);
		total += GUISE_FRAMING_HEAD;
		memset(stream + total, (int)rng_below(r, 256), length);
		if (length > 8)
			memcpy(stream + total + rng_below(r, length - 7), &r->state, 8);
		total += length;
	}
	/* It ends with garbage, or in the middle of a frame, or whole. */
	if (rng_one_in(r, 3))
		for (uint32_t garbage = rng_below(r, 5000); garbage; garbage--)
			stream[total++] = (uint8_t)rng_below(r, 256);
	else if (rng_one_in(r, 2))
		total -= rng_below(r, total);
	return total;
}

/* What the model reads next: as guise_framing_get(), of a stream that is all there. */
static int64_t expected(uint32_t total, uint32_t *at)
{
	const uint8_t *p = stream + *at;
	uint32_t length;

	if (total - *at < GUISE_FRAMING_HEAD)
		return -EAGAIN;
	length = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
	if (length > GUISE_FRAMING_SKIP)
		return -EPROTO;
	if (length < GUISE_FRAMING_LEAST || length > GUISE_FRAMING_MOST) {
		*at += GUISE_FRAMING_HEAD;
		*at += length < total - *at ? length : total - *at;
		return -EBADMSG;
	}
	if (total - *at - GUISE_FRAMING_HEAD < length)
		return -EAGAIN;
	*at += GUISE_FRAMING_HEAD + length;
	return (int64_t)(GUISE_FRAME_HDR + length);
}

/* One frame out of f, which must be the model's next. True: there may be more. */
static bool take(struct guise_framing *f, struct rng *r, uint32_t total, uint32_t *model)
{
	uint64_t room = rng_one_in(r, 8) ? rng_below(r, 2000) : GUISE_FRAME_MAX + 1;
	uint32_t before = *model;
	struct pieces p;
	int64_t ret, due;

	pieces_make(&p, r, 0, room);
	ret = guise_framing_get(f, p.iov, p.n);
	if (ret == -EAGAIN) {
		pieces_free(&p);
		return false;
	}
	due = expected(total, model);
	if (due > (int64_t)room)
		due = -EBADMSG;
	if (ret != due)
		turns_fail("another frame comes out than went in", ret);
	for (int64_t i = 0; i < ret; i++) {
		uint8_t want = i < (int64_t)GUISE_FRAME_HDR ? 0
							    : stream[before + GUISE_FRAMING_HEAD +
								     (uint64_t)i - GUISE_FRAME_HDR];

		if (byte_of(&p, (uint64_t)i) != want)
			turns_fail("a frame comes out damaged", i);
	}
	n_frames += ret > 0;
	n_malformed += ret == -EBADMSG;
	n_ended += ret == -EPROTO;
	pieces_free(&p);
	return ret != -EPROTO;
}

static void turn_in(struct rng *r)
{
	struct guise_framing *f = fresh();
	uint32_t total = make_stream(r), fed = 0, model = 0;

	while (fed < total && !f->bad) {
		struct guise_iov room = guise_framing_room(f);
		uint32_t part = total - fed;

		if (!room.len)
			turns_fail("there is no room to read into", (int64_t)fed);
		if (part > room.len)
			part = (uint32_t)room.len;
		if (!rng_one_in(r, 4))
			part = 1 + rng_below(r, part < 3000 ? part : 3000);
		memcpy(room.base, stream + fed, part);
		guise_framing_came(f, part);
		fed += part;
		while (take(f, r, total, &model))
			;
	}
	if (!f->bad && expected(total, &model) != -EAGAIN)
		turns_fail("a whole frame is kept back", (int64_t)model);
	free(f);
}

static void turn_out(struct rng *r)
{
	struct guise_framing *out = fresh(), *in = fresh();
	uint32_t total = 0, put = 0, model = 0, frames = 1 + rng_below(r, 60);

	/* What is put in is noted in the stream, as the model will read it. */
	while (put < frames || out->is.have) {
		if (put < frames && !rng_one_in(r, 3)) {
			uint32_t length = random_length(r) % 70000;
			struct pieces p;
			int64_t ret;

			pieces_make(&p, r, 1, length);
			p.iov[0] = (struct guise_iov){ NULL, GUISE_FRAME_HDR };
			for (uint32_t i = 1; i < p.n; i++)
				memset(p.iov[i].base, (int)(put + i), p.iov[i].len);
			ret = guise_framing_put(out, p.iov, p.n, 0);
			if ((ret == -EMSGSIZE) != (length < 14 || length > 65535) ||
			    (ret != -EMSGSIZE && ret != -EAGAIN &&
			     ret != (int64_t)(GUISE_FRAME_HDR + length)))
				turns_fail("a put gives what it must not", ret);
			if (ret > 0 && total + length + 4 <= STREAM_MOST) {
				guise_framing_head(stream + total, length);
				total += GUISE_FRAMING_HEAD;
				for (uint32_t i = 1; i < p.n; i++) {
					memcpy(stream + total, p.iov[i].base, p.iov[i].len);
					total += (uint32_t)p.iov[i].len;
				}
				n_sent++;
			}
			put += ret != -EAGAIN;
			pieces_free(&p);
		} else {
			struct guise_iov due = guise_framing_due(out), room;
			uint32_t part = due.len ? 1 + rng_below(r, (uint32_t)due.len) : 0;

			room = guise_framing_room(in);
			if (part > room.len)
				part = (uint32_t)room.len;
			memcpy(room.base, due.base, part);
			guise_framing_gone(out, part);
			guise_framing_came(in, part);
			while (take(in, r, total, &model))
				;
		}
	}
	if (model != total || in->is.have)
		turns_fail("what went out does not arrive", (int64_t)(total - model));
	free(out);
	free(in);
}

static void begin(void)
{
	stream = malloc(STREAM_MOST + GUISE_FRAMING_SKIP + 70000);
	turns_need(stream, "no memory");
}

static void turn(struct rng *r, uint64_t number)
{
	if (number % 2)
		turn_out(r);
	else
		turn_in(r);
}

int main(int argc, char **argv)
{
	static const struct turns fuzzer = {
		.name = "stream",
		.where = "the framing",
		.begin = begin,
		.turn = turn,
		.sums = { { "frames", &n_frames },
			  { "sent", &n_sent },
			  { "malformed", &n_malformed },
			  { "ended", &n_ended } },
	};

	return turns_main(&fuzzer, argc, argv);
}
