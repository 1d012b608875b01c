// SPDX-License-Identifier: GPL-2.0-only
/* A SYN is known again by its addresses and ports, and by nothing else. */
#include "link/openings.h"

#include "test/tap.h"

#include <stdlib.h>
#include <string.h>

#define SYN 0x02
#define ACK 0x10
#define FIN 0x01

static uint8_t frame[128];

/* A frame of TCP, whose pieces are the header's and the frame's first `len` bytes. */
static uint64_t key_of(bool six, unsigned int port, uint8_t flags, uint32_t len)
{
	struct guise_iov iov[2] = { { NULL, 12 }, { frame, len } };
	uint8_t *ip = frame + 14, *tcp;

	memset(frame, 0, sizeof(frame));
	frame[12] = six ? 0x86 : 0x08;
	frame[13] = six ? 0xdd : 0x00;
	if (six) {
		ip[6] = 6;
		memset(ip + 8, 0xfd, 32);
		tcp = ip + 40;
	} else {
		ip[0] = 0x46; /* with options */
		ip[9] = 6;
		memset(ip + 12, 10, 8);
		tcp = ip + 24;
	}
	tcp[0] = (uint8_t)(port >> 8);
	tcp[1] = (uint8_t)port;
	tcp[13] = flags;
	return guise_opening_key(iov, 2);
}

static void what_opens(void)
{
	uint8_t udp[60] = { [12] = 8, [14] = 0x45, [23] = 17, [47] = SYN };
	struct guise_iov iov[2] = { { NULL, 12 }, { udp, sizeof(udp) } };
	bool good = true;

	for (int six = 0; six < 2; six++) {
		uint64_t key = key_of(six, 1000, SYN, 120);

		good = good && key && key == key_of(six, 1000, SYN | 0xc0, 120); /* ECN */
		good = good && key != key_of(six, 1001, SYN, 120);
		good = good && key != key_of(!six, 1000, SYN, 120);
		good = good && !key_of(six, 1000, SYN | ACK, 120);
		good = good && !key_of(six, 1000, ACK, 120) && !key_of(six, 1000, FIN | ACK, 120);
	}
	tap(good, "a SYN has its connection's key, and no other frame has one");
	good = !guise_opening_key(iov, 2) && !guise_opening_key(iov, 1);
	for (uint32_t len = 0; len < 14 + 24 + 14; len++)
		good = good && !key_of(false, 1000, SYN, len);
	for (uint32_t len = 0; len < 14 + 40 + 14; len++)
		good = good && !key_of(true, 1000, SYN, len);
	good = good && key_of(false, 1000, SYN, 14 + 24 + 14);
	tap(good, "what is no TCP, or is cut short, has none");
}

static void what_is_kept(void)
{
	struct guise_openings *o = calloc(1, sizeof(*o));
	unsigned int known = 0;
	bool good;

	if (!o)
		abort();
	good = !guise_openings_end(o, 7);
	guise_openings_note(o, 7, 100);
	good = good && guise_openings_end(o, 7) == 100;
	guise_openings_note(o, 7, 300);
	good = good && guise_openings_end(o, 7) == 300;
	tap(good, "the end of a connection's last SYN is known");
	for (unsigned int i = 1; i <= GUISE_OPENINGS_ROW; i++)
		guise_openings_note(o, 7 + (uint64_t)i * GUISE_OPENINGS_ROWS, 300 + i);
	for (unsigned int i = 1; i <= GUISE_OPENINGS_ROW; i++)
		known += guise_openings_end(o, 7 + (uint64_t)i * GUISE_OPENINGS_ROWS) == 300 + i;
	tap(known == GUISE_OPENINGS_ROW && !guise_openings_end(o, 7), "the oldest gives way");
	memset(o, 0, sizeof(*o));
	known = 0;
	for (unsigned int port = 1; port <= 2000; port++)
		guise_openings_note(o, key_of(false, port, SYN, 120), port);
	for (unsigned int port = 1; port <= 2000; port++)
		known += guise_openings_end(o, key_of(false, port, SYN, 120)) == port;
	tap(known == 2000, "2000 connections that open at once are known: %u", known);
	free(o);
}

int main(void)
{
	what_opens();
	what_is_kept();
	return tap_end();
}
