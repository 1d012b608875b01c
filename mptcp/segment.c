// SPDX-License-Identifier: GPL-2.0-only
#include "segment.h"

#include <netinet/in.h>
#include <string.h>

#define KIND_END   0
#define KIND_NOP   1
#define KIND_MPTCP 30

/* Flags of a DSS. */
#define DSS_ACK      0x01
#define DSS_ACK_LONG 0x02
#define DSS_MAP      0x04
#define DSS_MAP_LONG 0x08

const char *const segment_kinds[MP_KINDS] = { "mp_capable",  "mp_join",      "dss",
					      "add_addr",    "rm_addr",      "mp_prio",
					      "mp_fail",     "mp_fastclose", "mp_tcprst",
					      "infinite_map" };

static uint32_t get16(const uint8_t *b)
{
	return (uint32_t)b[0] << 8 | b[1];
}

static uint64_t get64(const uint8_t *b)
{
	uint64_t n = 0;

	for (int i = 0; i < 8; i++)
		n = n << 8 | b[i];
	return n;
}

static bool maps_all(const uint8_t *o, size_t length)
{
	size_t at = 4;

	if (length < 4 || !(o[3] & DSS_MAP))
		return false;
	if (o[3] & DSS_ACK)
		at += o[3] & DSS_ACK_LONG ? 8 : 4;
	at += o[3] & DSS_MAP_LONG ? 8 : 4;
	at += 4; /* the subflow's sequence number */
	return at + 2 <= length && !get16(o + at);
}

/* The option o, of a length that is there. */
static void read_mptcp(struct segment *s, const uint8_t *o, size_t length)
{
	unsigned int subtype;

	if (length < 3)
		return;
	subtype = o[2] >> 4;
	if (subtype >= MP_SUBTYPES)
		return;
	switch (subtype) {
	case MP_CAPABLE:
		if (length < 4)
			return;
		s->version = o[2] & 15;
		s->key = length >= 12 ? get64(o + 4) : 0;
		break;
	case MP_DSS:
		if (maps_all(o, length))
			s->has |= 1 << MP_INFINITE;
		break;
	case MP_TCPRST:
		if (length < 4)
			return;
		s->reason = o[3];
		break;
	default:
		break;
	}
	s->has |= (uint16_t)(1 << subtype);
}

static void read_options(struct segment *s, const uint8_t *o, size_t length)
{
	for (size_t at = 0; at < length;) {
		size_t size;

		if (o[at] == KIND_END)
			return;
		if (o[at] == KIND_NOP) {
			at++;
			continue;
		}
		if (at + 2 > length)
			return;
		size = o[at + 1];
		if (size < 2 || at + size > length)
			return;
		if (o[at] == KIND_MPTCP)
			read_mptcp(s, o + at, size);
		at += size;
	}
}

/* Where TCP begins, and in *end where the packet says that it ends; 0 for what is not TCP. */
static size_t read_ip(struct segment *s, const uint8_t *p, size_t length, size_t *end)
{
	size_t header;

	if (length >= 20 && p[0] >> 4 == 4) {
		header = (size_t)(p[0] & 15) * 4;
		/* Only a first fragment has TCP's header. */
		if (header < 20 || p[9] != IPPROTO_TCP || get16(p + 6) & 0x1fff)
			return 0;
		s->from.family = s->to.family = 4;
		memcpy(s->from.bytes, p + 12, 4);
		memcpy(s->to.bytes, p + 16, 4);
		*end = get16(p + 2);
	} else if (length >= 40 && p[0] >> 4 == 6) {
		header = 40;
		if (p[6] != IPPROTO_TCP)
			return 0;
		s->from.family = s->to.family = 6;
		memcpy(s->from.bytes, p + 8, 16);
		memcpy(s->to.bytes, p + 24, 16);
		*end = get16(p + 4) + 40;
	} else {
		return 0;
	}
	return header;
}

bool segment_read(struct segment *s, const uint8_t *packet, size_t length)
{
	size_t at, end, header;
	const uint8_t *t;

	memset(s, 0, sizeof(*s));
	at = read_ip(s, packet, length, &end);
	if (!at || at + 20 > length)
		return false;
	t = packet + at;
	s->from.port = (uint16_t)get16(t);
	s->to.port = (uint16_t)get16(t + 2);
	s->flags = t[13];
	header = (size_t)(t[12] >> 4) * 4;
	if (header < 20)
		return false;
	s->data = end > at + header;
	if (at + header > length)
		header = length - at;
	read_options(s, t + 20, header - 20);
	return true;
}
