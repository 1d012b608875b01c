// SPDX-License-Identifier: GPL-2.0-only
/*
 * Frames in a byte stream. Each buffer is linear: what is left is moved to the
 * front when there is no room behind it. That is one part of a frame for each
 * read, for nothing is read while a whole frame is still there.
 */
#include "link/framing.h"

#include "link/frame.h"

#include <errno.h>
#include <string.h>

static void to_front(struct guise_framing *f)
{
	if (f->at)
		memmove(f->data, f->data + f->at, f->have);
	f->at = 0;
}

static void take(struct guise_framing *f, uint32_t bytes)
{
	f->have -= bytes;
	f->at = f->have ? f->at + bytes : 0;
}

struct guise_iov guise_framing_room(struct guise_framing *f)
{
	to_front(f);
	return (struct guise_iov){ f->data + f->have, GUISE_FRAMING_BYTES - f->have };
}

void guise_framing_came(struct guise_framing *f, uint32_t bytes)
{
	f->have += bytes;
}

static uint32_t get_length(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* What is there of a bad frame is passed over. */
static void skip_some(struct guise_framing *f)
{
	uint32_t part = f->skip < f->have ? f->skip : f->have;

	f->skip -= part;
	take(f, part);
}

/* An empty header and the frame, over all pieces; false when they are too short. */
static bool scatter(const struct guise_iov *iov, uint32_t n, const uint8_t *from, uint32_t length)
{
	static const uint8_t header[GUISE_FRAME_HDR];
	uint64_t left = sizeof(header), at = 0;

	for (uint32_t i = 0; i < n && (left || length); i++) {
		uint64_t room = iov[i].len, part;

		at = left < room ? left : room;
		memcpy(iov[i].base, header, at);
		left -= at;
		part = length < room - at ? length : room - at;
		memcpy((uint8_t *)iov[i].base + at, from, part);
		from += part;
		length -= (uint32_t)part;
	}
	return !left && !length;
}

int64_t guise_framing_get(struct guise_framing *f, const struct guise_iov *iov, uint32_t n)
{
	uint32_t length;
	bool whole;

	if (f->bad)
		return -EPROTO;
	skip_some(f);
	if (f->skip || f->have < GUISE_FRAMING_HEAD)
		return -EAGAIN;
	length = get_length(f->data + f->at);
	if (length > GUISE_FRAMING_SKIP) {
		f->bad = length;
		return -EPROTO;
	}
	if (length < GUISE_FRAMING_LEAST || length > GUISE_FRAMING_MOST) {
		take(f, GUISE_FRAMING_HEAD);
		f->skip = length;
		skip_some(f);
		return -EBADMSG;
	}
	if (f->have < GUISE_FRAMING_HEAD + length)
		return -EAGAIN;
	whole = scatter(iov, n, f->data + f->at + GUISE_FRAMING_HEAD, length);
	take(f, GUISE_FRAMING_HEAD + length);
	return whole ? (int64_t)(GUISE_FRAME_HDR + length) : -EBADMSG;
}

uint32_t guise_framing_length(const struct guise_iov *iov, uint32_t n)
{
	uint64_t total = 0;

	for (uint32_t i = 1; i < n; i++)
		total += iov[i].len;
	if (total < GUISE_FRAMING_LEAST || total > GUISE_FRAMING_MOST)
		return 0;
	return (uint32_t)total;
}

/* Appends bytes, but for those of the first *sent that are gone already. */
static void append(struct guise_framing *f, const uint8_t *from, uint64_t bytes, uint32_t *sent)
{
	uint32_t gone = *sent < bytes ? *sent : (uint32_t)bytes;

	*sent -= gone;
	memcpy(f->data + f->at + f->have, from + gone, bytes - gone);
	f->have += (uint32_t)(bytes - gone);
}

int64_t guise_framing_put(struct guise_framing *f, const struct guise_iov *iov, uint32_t n,
			  uint32_t sent)
{
	uint32_t length = guise_framing_length(iov, n);
	uint8_t head[GUISE_FRAMING_HEAD];

	if (!length)
		return -EMSGSIZE;
	if (f->have + length + sizeof(head) > GUISE_FRAMING_BYTES)
		return -EAGAIN;
	if (f->at + f->have + length + sizeof(head) > GUISE_FRAMING_BYTES)
		to_front(f);
	if (sent)
		f->skip = length + (uint32_t)sizeof(head) - sent;
	guise_framing_head(head, length);
	append(f, head, sizeof(head), &sent);
	for (uint32_t i = 1; i < n; i++)
		append(f, iov[i].base, iov[i].len, &sent);
	return (int64_t)(GUISE_FRAME_HDR + length);
}

struct guise_iov guise_framing_due(struct guise_framing *f)
{
	uint32_t due = f->skip;

	while (due < f->have) {
		uint32_t frame = GUISE_FRAMING_HEAD + get_length(f->data + f->at + due);

		if (due && due + frame > GUISE_FRAMING_WRITE)
			break;
		due += frame;
	}
	return (struct guise_iov){ f->data + f->at, due };
}

void guise_framing_gone(struct guise_framing *f, uint32_t bytes)
{
	while (bytes > f->skip) {
		bytes -= f->skip;
		take(f, f->skip);
		f->skip = GUISE_FRAMING_HEAD + get_length(f->data + f->at);
	}
	f->skip -= bytes;
	take(f, bytes);
}
