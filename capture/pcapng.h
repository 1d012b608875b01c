/* SPDX-License-Identifier: GPL-2.0-only */
/* Writes packets as pcapng, the format that tcpdump and Wireshark read. */
#ifndef GUISE_CAPTURE_PCAPNG_H
#define GUISE_CAPTURE_PCAPNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PCAPNG_INTERFACES 64
#define PCAPNG_BUFFER     (1u << 20)
#define PCAPNG_LONGEST    (256u << 10) /* of a packet; what is longer is cut */

/* Types of link, as tcpdump.org registers them. */
#define PCAPNG_ETHERNET 1
#define PCAPNG_RAW_IP   101

enum pcapng_direction { PCAPNG_IN = 1, PCAPNG_OUT = 2 };

struct pcapng {
	int fd;
	size_t used;
	int index[PCAPNG_INTERFACES]; /* interfaces of the stack, in the file's order */
	unsigned int interfaces;
	uint8_t buffer[PCAPNG_BUFFER];
};

struct pcapng_packet {
	unsigned int interface; /* what pcapng_interface() gave */
	uint64_t time;          /* ns since 1970 */
	const void *data;
	uint32_t length; /* of data */
	uint32_t whole;  /* of the packet, where data was cut */
	enum pcapng_direction direction;
};

/* All of them: 0 or -errno, of what had to be written on the way. */
int pcapng_begin(struct pcapng *p, int fd);
/* The number of an interface in the file, which is described there with its first packet;
 * -ENOSPC beyond PCAPNG_INTERFACES. */
int pcapng_interface(struct pcapng *p, int index, const char *name, uint16_t link);
bool pcapng_knows(const struct pcapng *p, int index);
int pcapng_packet(struct pcapng *p, const struct pcapng_packet *packet);
/* How many packets there were no room for, as far as is known now. */
int pcapng_lost(struct pcapng *p, uint64_t time, uint64_t lost);
/* What was written so far is in the file. */
int pcapng_flush(struct pcapng *p);

#endif
