// SPDX-License-Identifier: GPL-2.0-only
/* Options are read where they are whole, and what is cut or no TCP is left alone. */
#include "flows.h"

#include "test/tap.h"

#include <stdlib.h>

struct packet {
	uint8_t bytes[200];
	size_t n;
};

/* Over IPv4, from 192.0.2.1:1000 to 192.0.2.2:80, or back. */
static struct packet make(bool back, uint8_t flags, const char *options, size_t n, size_t data)
{
	static const uint8_t addresses[2][4] = { { 192, 0, 2, 1 }, { 192, 0, 2, 2 } };
	struct packet p = { .n = 40 + n };
	uint8_t *t = p.bytes + 20;

	p.bytes[0] = 0x45;
	p.bytes[3] = (uint8_t)(40 + n + data);
	p.bytes[9] = 6;
	memcpy(p.bytes + 12, addresses[back], 4);
	memcpy(p.bytes + 16, addresses[!back], 4);
	memcpy(t + (back ? 2 : 0), "\x03\xe8", 2);
	memcpy(t + (back ? 0 : 2), "\0\x50", 2);
	t[12] = (uint8_t)((20 + n) / 4 << 4);
	t[13] = flags;
	memcpy(t + 20, options, n);
	return p;
}

/* On a copy that ends where the packet does, for sanitizers. */
static bool reads(const struct packet *p, size_t n, struct segment *s)
{
	uint8_t *copy = malloc(n + !n);
	bool good;

	memcpy(copy, p->bytes, n);
	good = segment_read(s, copy, n);
	free(copy);
	return good;
}

#define MAKE(back, flags, options, data) make(back, flags, options, sizeof(options) - 1, data)

#define CAPABLE  "\1\1\1\1\x1e\x04\x01\x01"
#define KEY      "\x1e\x0c\x01\x01\1\2\3\4\5\6\7\x08"
#define OLD      "\x1e\x0c\x00\x01\1\2\3\4\5\6\7\x08"
#define JOIN     "\x1e\x0c\x10\x00tokennce"
#define DSS      "\x1e\x14\x20\5ackndatasubf\0\x64\0\0"
#define INFINITE "\x1e\x14\x20\5ackndatasubf\0\0\0\0"
#define FAIL     "\x1e\x0c\x60\0dataseqn"
#define RESET    "\x1e\x04\x80\x06"

static void options(void)
{
	struct segment s;
	struct packet p = MAKE(false, TCP_SYN, CAPABLE, 0);
	bool well = true;

	tap(reads(&p, p.n, &s) && s.has == 1 << MP_CAPABLE && s.version == 1 && !s.key && !s.data &&
		    s.from.port == 1000 && s.to.port == 80,
	    "a SYN of version 1");
	for (size_t n = 0; n < p.n; n++)
		well &= n < 40 ? !reads(&p, n, &s) : reads(&p, n, &s) && !s.has;
	tap(well, "a packet cut at any place");
	p = MAKE(true, TCP_SYN | TCP_ACK, OLD, 0);
	tap(reads(&p, p.n, &s) && !s.version && s.key == 0x0102030405060708,
	    "version 0, with a key");
	p = MAKE(false, TCP_ACK, DSS, 100);
	tap(reads(&p, p.n, &s) && s.has == 1 << MP_DSS && s.data, "a mapping");
	p = MAKE(false, TCP_ACK, INFINITE, 100);
	tap(reads(&p, p.n, &s) && s.has == (1 << MP_DSS | 1 << MP_INFINITE), "an infinite mapping");
	p = MAKE(false, TCP_RST, RESET, 0);
	tap(reads(&p, p.n, &s) && s.has == 1 << MP_TCPRST && s.reason == 6, "a reason");
	p = MAKE(false, TCP_ACK, "\x1e\0\x20\x05", 0);
	tap(reads(&p, p.n, &s) && !s.has, "an option without a length ends the options");
	p.bytes[7] = 1;
	tap(!reads(&p, p.n, &s), "a later fragment has no header of TCP");
	p.bytes[7] = 0;
	p.bytes[9] = 17;
	tap(!reads(&p, p.n, &s), "UDP is not TCP");
}

static struct flows flows;

static void see(struct packet p)
{
	struct segment s;

	if (segment_read(&s, p.bytes, p.n))
		flows_see(&flows, &s);
}

static const struct flow *the_flow(void)
{
	static const struct address one = { 4, { 192, 0, 2, 1 }, 1000 },
				    other = { 4, { 192, 0, 2, 2 }, 80 };

	return flows_find(&flows, &other, &one);
}

static void connections(void)
{
	const struct flow *f;

	see(MAKE(false, TCP_ACK, DSS, 100));
	tap(!the_flow(), "what began before is not known");
	see(MAKE(false, TCP_SYN, CAPABLE, 0));
	see(MAKE(false, TCP_SYN, CAPABLE, 0));
	see(MAKE(false, TCP_SYN, "", 0));
	see(MAKE(true, TCP_SYN | TCP_ACK, KEY, 0));
	f = the_flow();
	tap(f && f->syn.with == 2 && f->syn.without == 1 && f->syn.capable && f->answer.capable &&
		    f->answer.version == 1 && f->answer.key,
	    "a handshake with repetitions");
	see(MAKE(false, TCP_ACK, DSS, 100));
	see(MAKE(true, TCP_ACK, "", 100));
	see(MAKE(true, TCP_ACK, FAIL, 0));
	see(MAKE(true, TCP_RST, RESET, 0));
	f = the_flow();
	tap(f->out.has == 1 << MP_DSS && f->out.mapped == 1 && !f->out.unmapped &&
		    f->in.has == (1 << MP_FAIL | 1 << MP_TCPRST) && f->in.unmapped == 1 &&
		    f->in.reset && f->in.reason == 6,
	    "each direction for itself");
	see(MAKE(false, TCP_SYN, JOIN, 0));
	f = the_flow();
	tap(f->syn.with == 1 && f->syn.join && !f->syn.capable && !f->in.has,
	    "the ports once more");
	for (unsigned int i = 0; i < 3 * FLOWS; i++) {
		struct packet p = MAKE(false, TCP_SYN, CAPABLE, 0);

		p.bytes[12] = (uint8_t)(i >> 8);
		p.bytes[15] = (uint8_t)i;
		see(p);
	}
	tap(!the_flow(), "a flood takes the place of what was quiet");
	see(MAKE(false, TCP_SYN, CAPABLE, 0));
	tap(the_flow(), "and there is room again");
}

int main(void)
{
	options();
	connections();
	return tap_end();
}
