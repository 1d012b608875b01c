// SPDX-License-Identifier: GPL-2.0-only
/* Blocks are whole, aligned and say their length twice; interfaces are described once. */
#include "pcapng.h"

#include "test/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct pcapng writer;
static uint8_t file[2 << 20];

/* The blocks of a file by type, as many as fit; -1 if they are not well-formed. */
static int blocks(int fd, uint32_t *type, int most)
{
	ssize_t n = pread(fd, file, sizeof(file), 0);
	int found = 0;

	for (ssize_t at = 0; at < n; found++) {
		uint32_t length, again;

		memcpy(&length, file + at + 4, 4);
		if (length % 4 || length < 12 || at + length > n)
			return -1;
		memcpy(&again, file + at + length - 4, 4);
		if (again != length)
			return -1;
		if (found < most)
			memcpy(&type[found], file + at, 4);
		at += length;
	}
	return found;
}

static int packet(unsigned int interface, const void *data, uint32_t length)
{
	struct pcapng_packet p = { interface, 1700000000123456789ull, data, length, length,
				   PCAPNG_OUT };

	return pcapng_packet(&writer, &p);
}

int main(void)
{
	int fd = memfd_create("pcapng", 0), full = open("/dev/full", O_WRONLY);
	static uint8_t big[PCAPNG_LONGEST + 100];
	uint32_t type[8], n;
	int count = 0;

	tap(!pcapng_begin(&writer, fd) &&
		    pcapng_interface(&writer, 7, "eth0", PCAPNG_ETHERNET) == 0,
	    "a section and an interface");
	tap(pcapng_interface(&writer, 7, "eth0", PCAPNG_ETHERNET) == 0 && pcapng_knows(&writer, 7),
	    "an interface is described once");
	tap(pcapng_interface(&writer, 9, "tun0", PCAPNG_RAW_IP) == 1 && !pcapng_knows(&writer, 8),
	    "a second one");
	tap(!packet(0, "abcde", 5) && !packet(1, "", 0), "packets");
	tap(!pcapng_lost(&writer, 1, 3) && !pcapng_flush(&writer), "the end");
	tap(blocks(fd, type, 8) == 6 && type[0] == 0x0a0d0d0a && type[1] == 1 && type[2] == 1 &&
		    type[3] == 6 && type[4] == 6 && type[5] == 5,
	    "the blocks in their order, each well-formed");

	tap(!packet(0, big, sizeof(big)) && !pcapng_flush(&writer) && blocks(fd, type, 8) == 7,
	    "what is too long is cut");
	for (int i = 0; i < 20; i++)
		count |= packet(0, big, 100000);
	tap(!count && !pcapng_flush(&writer), "more than the buffer holds is written on the way");
	n = 0;
	for (int i = 2; i < PCAPNG_INTERFACES; i++)
		n += pcapng_interface(&writer, 100 + i, "x", PCAPNG_ETHERNET) == i;
	tap(n == PCAPNG_INTERFACES - 2 &&
		    pcapng_interface(&writer, 1, "y", PCAPNG_ETHERNET) == -ENOSPC,
	    "no more interfaces than there is room for");

	tap(!pcapng_begin(&writer, full) && pcapng_flush(&writer) == -ENOSPC,
	    "a full disk is told");
	return tap_end();
}
