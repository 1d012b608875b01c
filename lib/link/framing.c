// SPDX-License-Identifier: GPL-2.0-only
/*
 * Frames in a byte stream. Each buffer is linear: when there is no room behind the data,
 * the data is copied to the front. That is done only if the copy does not overlap its
 * source, so that it can be made again if the thread is killed while it copies. There is at
 * most one copy of a part of a frame for each read, because nothing is read while a whole
 * frame is in the buffer.
 */
#include "link/framing.h"

#include "link/frame.h"

#include <errno.h>
#include <string.h>

static void set(struct guise_framing *f, struct guise_framing_place is)
{
	_Static_assert(sizeof(is) == sizeof(uint64_t), "one word");

	__atomic_store(&f->is, &is, __ATOMIC_RELEASE);
}

static void to_front(struct guise_framing *f)
{
	struct guise_framing_place is = f->is;

	if (!is.at || is.have > is.at)
		return;
	memcpy(f->data, f->data + is.at, is.have);
	is.at = 0;
	set(f, is);
}

static struct guise_framing_place without(struct guise_framing_place is, uint32_t bytes)
{
	is.have -= bytes;
	is.at = is.have ? is.at + bytes : 0;
	return is;
}

void guise_framing_begin(struct guise_framing *f)
{
	struct guise_framing_place is = f->is;

	is.under_way = 1;
	set(f, is);
}

struct guise_iov guise_framing_room(struct guise_framing *f)
{
	uint32_t end;

	to_front(f);
	end = (uint32_t)(f->is.at + f->is.have);
	return (struct guise_iov){ f->data + end, GUISE_FRAMING_BYTES - end };
}

void guise_framing_came(struct guise_framing *f, uint32_t bytes)
{
	struct guise_framing_place is = f->is;

	is.have += bytes;
	is.under_way = 0;
	set(f, is);
}

static uint32_t get_length(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Skips the bytes of a bad frame that have come. */
static struct guise_framing_place skip_some(struct guise_framing_place is)
{
	uint32_t part = (uint32_t)(is.skip < is.have ? is.skip : is.have);

	is.skip -= part;
	return without(is, part);
}

/* Writes an empty header and the frame to the pieces; false when these are too short. */
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
	struct guise_framing_place is;
	uint32_t length;
	bool whole;

	if (f->bad)
		return -EPROTO;
	is = skip_some(f->is);
	set(f, is);
	if (is.skip || is.have < GUISE_FRAMING_HEAD)
		return -EAGAIN;
	length = get_length(f->data + is.at);
	if (length > GUISE_FRAMING_SKIP) {
		f->bad = length;
		return -EPROTO;
	}
	if (length < GUISE_FRAMING_LEAST || length > GUISE_FRAMING_MOST) {
		is = without(is, GUISE_FRAMING_HEAD);
		is.skip = length;
		set(f, skip_some(is));
		return -EBADMSG;
	}
	if (is.have < GUISE_FRAMING_HEAD + length)
		return -EAGAIN;
	whole = scatter(iov, n, f->data + is.at + GUISE_FRAMING_HEAD, length);
	set(f, without(is, GUISE_FRAMING_HEAD + length));
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

/* Copies bytes, without the first *sent, which were sent already. Returns the end of the copy. */
static uint8_t *append(uint8_t *to, const uint8_t *from, uint64_t bytes, uint32_t *sent)
{
	uint32_t gone = *sent < bytes ? *sent : (uint32_t)bytes;

	*sent -= gone;
	memcpy(to, from + gone, bytes - gone);
	return to + (bytes - gone);
}

int64_t guise_framing_put(struct guise_framing *f, const struct guise_iov *iov, uint32_t n,
			  uint32_t sent)
{
	uint32_t length = guise_framing_length(iov, n), all = length + GUISE_FRAMING_HEAD;
	uint8_t head[GUISE_FRAMING_HEAD], *to;
	struct guise_framing_place is;

	if (!length)
		return -EMSGSIZE;
	if (f->is.at + f->is.have + all > GUISE_FRAMING_BYTES)
		to_front(f);
	is = f->is;
	if (is.at + is.have + all > GUISE_FRAMING_BYTES)
		return -EAGAIN;
	to = f->data + is.at + is.have;
	is.have += all - sent;
	if (sent)
		is.skip = all - sent;
	is.under_way = 0;
	guise_framing_head(head, length);
	to = append(to, head, sizeof(head), &sent);
	for (uint32_t i = 1; i < n; i++)
		to = append(to, iov[i].base, iov[i].len, &sent);
	set(f, is);
	return (int64_t)(GUISE_FRAME_HDR + length);
}

struct guise_iov guise_framing_due(struct guise_framing *f)
{
	const struct guise_framing_place is = f->is;
	uint32_t due = (uint32_t)is.skip;

	while (due < is.have) {
		uint32_t frame = GUISE_FRAMING_HEAD + get_length(f->data + is.at + due);

		if (due && due + frame > GUISE_FRAMING_WRITE)
			break;
		due += frame;
	}
	return (struct guise_iov){ f->data + is.at, due };
}

void guise_framing_gone(struct guise_framing *f, uint32_t bytes)
{
	struct guise_framing_place is = f->is;

	while (bytes > is.skip) {
		bytes -= (uint32_t)is.skip;
		is = without(is, (uint32_t)is.skip);
		is.skip = GUISE_FRAMING_HEAD + get_length(f->data + is.at);
	}
	is.skip -= bytes;
	is.under_way = 0;
	set(f, without(is, bytes));
}
