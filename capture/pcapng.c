// SPDX-License-Identifier: GPL-2.0-only
/*
 * pcapng (draft-ietf-opsawg-pcapng): a section header, a description of each
 * interface before its first packet, packets with nanoseconds and direction, and in the
 * end the number of those that were lost. Blocks have the host's byte order, which the
 * section header tells, and a length before and after; all is aligned to 4 bytes.
 *
 * Blocks are gathered and written whole, so that the reader of a pipe sees whole packets.
 */
#include "pcapng.h"

#include "host/sys.h"

#include <errno.h>
#include <string.h>

#define SECTION    0x0a0d0d0au
#define INTERFACE  1u
#define STATISTICS 5u
#define PACKET     6u

#define BYTE_ORDER_MAGIC 0x1a2b3c4du

#define OPTION_END      0
#define SECTION_APP     4
#define INTERFACE_NAME  2
#define INTERFACE_TIME  9
#define PACKET_FLAGS    2
#define STATISTICS_LOST 5

#define NANOSECONDS 9 /* 10 to the minus ninth */

static size_t padded(size_t n)
{
	return (n + 3) & ~(size_t)3;
}

static void put(struct pcapng *p, const void *data, size_t n)
{
	memcpy(p->buffer + p->used, data, n);
	memset(p->buffer + p->used + n, 0, padded(n) - n);
	p->used += padded(n);
}

static void put32(struct pcapng *p, uint32_t n)
{
	put(p, &n, sizeof(n));
}

static void put_time(struct pcapng *p, uint64_t time)
{
	put32(p, (uint32_t)(time >> 32));
	put32(p, (uint32_t)time);
}

static void put_option(struct pcapng *p, uint16_t code, const void *data, size_t n)
{
	uint16_t head[2] = { code, (uint16_t)n };

	put(p, head, sizeof(head));
	put(p, data, n);
}

/* Where the block begins that is now to be put, with so many bytes at most. */
static int begin_block(struct pcapng *p, uint32_t type, size_t most, size_t *start)
{
	int err = p->used + most + 32 > sizeof(p->buffer) ? pcapng_flush(p) : 0;

	*start = p->used;
	put32(p, type);
	put32(p, 0);
	return err;
}

static void end_block(struct pcapng *p, size_t start)
{
	uint32_t length = (uint32_t)(p->used - start) + 4;

	put32(p, length);
	memcpy(p->buffer + start + 4, &length, sizeof(length));
}

int pcapng_begin(struct pcapng *p, int fd)
{
	const uint16_t version[2] = { 1, 0 };
	const uint64_t unknown = UINT64_MAX; /* the section's length */
	static const char app[] = "guise capture";
	size_t start;
	int err;

	p->fd = fd;
	p->used = p->interfaces = 0;
	err = begin_block(p, SECTION, 64, &start);
	put32(p, BYTE_ORDER_MAGIC);
	put(p, version, sizeof(version));
	put(p, &unknown, sizeof(unknown));
	put_option(p, SECTION_APP, app, sizeof(app) - 1);
	put_option(p, OPTION_END, "", 0);
	end_block(p, start);
	return err;
}

static int number_of(const struct pcapng *p, int index)
{
	for (unsigned int i = 0; i < p->interfaces; i++)
		if (p->index[i] == index)
			return (int)i;
	return -ENOENT;
}

bool pcapng_knows(const struct pcapng *p, int index)
{
	return number_of(p, index) >= 0;
}

int pcapng_interface(struct pcapng *p, int index, const char *name, uint16_t link)
{
	const uint16_t head[2] = { link, 0 };
	const uint8_t resolution = NANOSECONDS;
	int number = number_of(p, index), err;
	size_t start;

	if (number >= 0)
		return number;
	if (p->interfaces == PCAPNG_INTERFACES)
		return -ENOSPC;
	err = begin_block(p, INTERFACE, 64 + strlen(name), &start);
	put(p, head, sizeof(head));
	put32(p, PCAPNG_LONGEST);
	put_option(p, INTERFACE_NAME, name, strlen(name));
	put_option(p, INTERFACE_TIME, &resolution, sizeof(resolution));
	put_option(p, OPTION_END, "", 0);
	end_block(p, start);
	p->index[p->interfaces] = index;
	return err ? err : (int)p->interfaces++;
}

int pcapng_packet(struct pcapng *p, const struct pcapng_packet *packet)
{
	uint32_t length = packet->length < PCAPNG_LONGEST ? packet->length : PCAPNG_LONGEST;
	uint32_t flags = packet->direction;
	size_t start;
	int err = begin_block(p, PACKET, length + 64, &start);

	put32(p, packet->interface);
	put_time(p, packet->time);
	put32(p, length);
	put32(p, packet->whole);
	put(p, packet->data, length);
	put_option(p, PACKET_FLAGS, &flags, sizeof(flags));
	put_option(p, OPTION_END, "", 0);
	end_block(p, start);
	return err;
}

int pcapng_lost(struct pcapng *p, uint64_t time, uint64_t lost)
{
	size_t start;
	int err;

	if (!p->interfaces)
		return 0;
	err = begin_block(p, STATISTICS, 64, &start);
	put32(p, 0);
	put_time(p, time);
	put_option(p, STATISTICS_LOST, &lost, sizeof(lost));
	put_option(p, OPTION_END, "", 0);
	end_block(p, start);
	return err;
}

int pcapng_flush(struct pcapng *p)
{
	size_t done = 0;

	while (done < p->used) {
		long n = host_sys(SYS_write, p->fd, p->buffer + done, p->used - done);

		if (n == -EINTR)
			continue;
		if (n < 0) {
			p->used = 0;
			return (int)n;
		}
		done += (size_t)n;
	}
	p->used = 0;
	return 0;
}
