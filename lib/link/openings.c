// SPDX-License-Identifier: GPL-2.0-only
/* TCP connections that were opened lately; openings.h says what for. */
#include "link/openings.h"

#include <linux/if_ether.h>
#include <stdbool.h>
#include <stddef.h>

#define TCP_PROTOCOL 6
#define TCP_PORTS    4u
#define TCP_FLAGS    13u
#define TCP_SYN      0x02
#define TCP_ACK      0x10

/* FNV-1a with 64 bits: it is very unlikely that two connections have one key. */
static uint64_t add_bytes(uint64_t hash, const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		hash = (hash ^ bytes[i]) * 0x100000001b3ULL;
	return hash;
}

/* Finds the addresses and TCP's header; false if it is not TCP, or incomplete. */
static bool dissect(const uint8_t *frame, size_t len, size_t *addresses, size_t *size, size_t *tcp)
{
	unsigned int type;

	if (len < ETH_HLEN + 20)
		return false;
	type = (unsigned int)frame[12] << 8 | frame[13];
	if (type == ETH_P_IP) {
		*addresses = ETH_HLEN + 12;
		*size = 8;
		*tcp = ETH_HLEN + (frame[ETH_HLEN] & 0xfu) * 4;
		if (frame[ETH_HLEN + 9] != TCP_PROTOCOL)
			return false;
	} else if (type == ETH_P_IPV6) {
		*addresses = ETH_HLEN + 8;
		*size = 32;
		*tcp = ETH_HLEN + 40;
		if (frame[ETH_HLEN + 6] != TCP_PROTOCOL)
			return false;
	} else {
		return false;
	}
	return *tcp + TCP_FLAGS < len;
}

uint64_t guise_opening_key(const struct guise_iov *iov, uint32_t n)
{
	const uint8_t *frame;
	size_t addresses, size, tcp;
	uint64_t key = 0xcbf29ce484222325ULL;

	if (n < 2)
		return 0;
	frame = iov[1].base;
	if (!dissect(frame, iov[1].len, &addresses, &size, &tcp) ||
	    (frame[tcp + TCP_FLAGS] & (TCP_SYN | TCP_ACK)) != TCP_SYN)
		return 0;
	key = add_bytes(key, frame + addresses, size);
	key = add_bytes(key, frame + tcp, TCP_PORTS);
	return key ? key : 1;
}

uint64_t guise_openings_end(const struct guise_openings *o, uint64_t key)
{
	const struct guise_opening *row = o->row[key % GUISE_OPENINGS_ROWS];

	for (unsigned int i = 0; i < GUISE_OPENINGS_ROW; i++)
		if (row[i].key == key)
			return row[i].end;
	return 0;
}

void guise_openings_note(struct guise_openings *o, uint64_t key, uint64_t end)
{
	struct guise_opening *row = o->row[key % GUISE_OPENINGS_ROWS], *place = row;

	for (unsigned int i = 0; i < GUISE_OPENINGS_ROW; i++) {
		if (row[i].key == key) {
			place = row + i;
			break;
		}
		if (row[i].end < place->end)
			place = row + i;
	}
	*place = (struct guise_opening){ key, end };
}
