// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rings of packet sockets (PACKET_RX_RING, packet(7)) for served programs, which have none of the
 * region's memory, where the rings lie. The program maps a copy of its ring, memory that it shares
 * with its servant alone. The servant copies what came before and after each call of the program:
 * a program that reads a ring waits by a call, poll(2), when it finds nothing.
 *
 * A ring has units, blocks (TPACKET_V3) or frames, which are filled in turn. The status of each
 * says whose it is. A unit that the stack has filled is copied, its status last. It stays the
 * program's in the stack's ring as well until the program has given back the copy. So poll(2)
 * says of the ring what is true of the copy.
 *
 * All of the copy may change at any moment, by a program with other rights. Of it only the status
 * is read here, and it means one thing: the unit is given back.
 *
 * Limits: GUISE_MIRRORS rings at a time. A program that looks at its ring again and again without a
 * call sees nothing new. There is no ring to send by.
 */
#include "served/mirror.h"

#include "host/fd.h"
#include "host/locks.h"
#include "host/memory.h"
#include "host/sys.h"
#include "region/call.h"

#include "guise/syscall.h"

#include <errno.h>
#include <linux/if_packet.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#define GUISE_MIRRORS 16

struct piece {
	uint64_t address, bytes, frame;
};

struct mirror {
	int sfd; /* of its own: the ring outlives the program's descriptor */
	char *copy;
	size_t bytes, block, unit, units;
	size_t status, width; /* where the status of a unit is, and its bytes */
	uint64_t given, back; /* units that the program got, and gave back, ever */
	char **blocks;        /* in the region */
	size_t room;          /* for so many of them */
};

static struct mirror *mirrors[GUISE_MIRRORS];
static uint32_t there; /* how many there are: none costs a call nothing */

static uint64_t status_of(const struct mirror *m, const char *unit)
{
	return m->width == sizeof(uint32_t)
		       ? __atomic_load_n((const uint32_t *)(unit + m->status), __ATOMIC_ACQUIRE)
		       : __atomic_load_n((const uint64_t *)(unit + m->status), __ATOMIC_ACQUIRE);
}

static void set_status(const struct mirror *m, char *unit, uint64_t status)
{
	if (m->width == sizeof(uint32_t))
		__atomic_store_n((uint32_t *)(unit + m->status), (uint32_t)status,
				 __ATOMIC_RELEASE);
	else
		__atomic_store_n((uint64_t *)(unit + m->status), status, __ATOMIC_RELEASE);
}

static size_t offset(const struct mirror *m, uint64_t number, size_t *block)
{
	size_t in_block = m->block / m->unit, i = number % m->units;

	*block = i / in_block;
	return i % in_block * m->unit;
}

static char *theirs(const struct mirror *m, uint64_t number)
{
	size_t block, at = offset(m, number, &block);

	return m->copy + block * m->block + at;
}

static char *stacks(const struct mirror *m, uint64_t number)
{
	size_t block, at = offset(m, number, &block);

	return m->blocks[block] + at;
}

static void turn(struct mirror *m)
{
	size_t after = m->status + m->width;

	for (; m->back < m->given; m->back++) {
		if (status_of(m, theirs(m, m->back)) != TP_STATUS_KERNEL)
			break;
		set_status(m, stacks(m, m->back), TP_STATUS_KERNEL);
	}
	for (; m->given - m->back < m->units; m->given++) {
		char *from = stacks(m, m->given), *to = theirs(m, m->given);
		uint64_t status = status_of(m, from);

		if (!(status & TP_STATUS_USER))
			break;
		memcpy(to, from, m->status);
		memcpy(to + after, from + after, m->unit - after);
		set_status(m, to, status);
	}
}

void guise_mirrors_turn(void)
{
	if (!__atomic_load_n(&there, __ATOMIC_ACQUIRE))
		return;
	guise_own_lock(GUISE_LOCK_MIRRORS);
	for (int i = 0; i < GUISE_MIRRORS; i++)
		if (mirrors[i])
			turn(mirrors[i]);
	guise_own_unlock(GUISE_LOCK_MIRRORS);
}

static bool grow(struct mirror *m)
{
	size_t room = m->room ? 2 * m->room : 512;
	char **more = guise_pages(room * sizeof(*more));

	if (!more)
		return false;
	if (m->room) {
		memcpy(more, m->blocks, m->room * sizeof(*more));
		guise_pages_free(m->blocks, m->room * sizeof(*more));
	}
	m->blocks = more;
	m->room = room;
	return true;
}

/* Where the units are. 0 or -errno. */
static int look(struct guise_stack *s, struct mirror *m)
{
	int version = TPACKET_V1;
	socklen_t length = sizeof(version);
	size_t n = 0;
	struct piece piece;
	long ret;

	ret = guise_call(s, GUISE_NR_getsockopt, m->sfd, SOL_PACKET, PACKET_VERSION, (long)&version,
			 (long)&length, 0);

	if (ret)
		return (int)ret;
	while ((ret = guise_call(s, GUISE_NR_RING, m->sfd, (long)n, (long)&piece, 0, 0, 0)) > 0) {
		if (n == m->room && !grow(m))
			return -ENOMEM;
		m->blocks[n++] = (char *)piece.address;
		m->block = piece.bytes;
		m->unit = version == TPACKET_V3 ? piece.bytes : piece.frame;
	}
	if (ret || !n)
		return ret ? (int)ret : -EINVAL;
	m->bytes = n * m->block;
	m->units = n * (m->block / m->unit);
	m->status = version == TPACKET_V3
			    ? offsetof(struct tpacket_block_desc, hdr.bh1.block_status)
			    : 0;
	m->width = version == TPACKET_V1 ? sizeof(unsigned long) : sizeof(uint32_t);
	return 0;
}

/* The copy, and nothing of the stack's. */
static void release(struct mirror *m)
{
	if (m->copy)
		host_sys(SYS_munmap, m->copy, m->bytes);
	if (m->blocks)
		guise_pages_free(m->blocks, m->room * sizeof(*m->blocks));
	guise_pages_free(m, sizeof(*m));
}

static void drop(struct guise_stack *s, struct mirror *m)
{
	if (m->sfd >= 0) {
		guise_call(s, GUISE_NR_RING_MAPPED, m->sfd, -1, 0, 0, 0, 0);
		guise_call(s, GUISE_NR_close, m->sfd, 0, 0, 0, 0, 0);
	}
	release(m);
}

/* The memory of the copy, and a descriptor of it; or -errno. */
static int make_copy(struct mirror *m)
{
	int fd = guise_fd_shared("guise-packets", m->bytes);
	long at =
		fd < 0 ? fd
		       : host_sys(SYS_mmap, 0, m->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (at >= 0) {
		m->copy = (char *)at;
		return fd;
	}
	if (fd >= 0)
		host_sys(SYS_close, fd);
	return (int)at;
}

static int enter(struct mirror *m)
{
	int number = 0;

	guise_own_lock(GUISE_LOCK_MIRRORS);
	while (number < GUISE_MIRRORS && mirrors[number])
		number++;
	if (number < GUISE_MIRRORS) {
		mirrors[number] = m;
		__atomic_add_fetch(&there, 1, __ATOMIC_RELEASE);
	}
	guise_own_unlock(GUISE_LOCK_MIRRORS);
	return number < GUISE_MIRRORS ? number : -ENOMEM;
}

int guise_mirror_make(struct guise_stack *s, int sfd, int *memory)
{
	struct mirror *m = guise_pages(sizeof(*m));
	int ret;

	if (!m)
		return -ENOMEM;
	ret = m->sfd = (int)guise_call(s, GUISE_NR_dup, sfd, 0, 0, 0, 0, 0);
	if (ret >= 0)
		ret = (int)guise_call(s, GUISE_NR_RING_MAPPED, m->sfd, 1, 0, 0, 0, 0);
	if (!ret)
		ret = look(s, m);
	if (!ret)
		ret = *memory = make_copy(m);
	if (ret >= 0) {
		ret = enter(m);
		if (ret >= 0)
			return ret;
		host_sys(SYS_close, *memory);
	}
	drop(s, m);
	return ret;
}

void guise_mirror_free(struct guise_stack *s, int number)
{
	struct mirror *m = NULL;

	if (number < 0 || number >= GUISE_MIRRORS)
		return;
	guise_own_lock(GUISE_LOCK_MIRRORS);
	if (mirrors[number]) {
		m = mirrors[number];
		mirrors[number] = NULL;
		__atomic_sub_fetch(&there, 1, __ATOMIC_RELEASE);
	}
	guise_own_unlock(GUISE_LOCK_MIRRORS);
	if (m)
		drop(s, m);
}

void guise_mirrors_forget(void)
{
	for (int i = 0; i < GUISE_MIRRORS; i++)
		if (mirrors[i])
			release(mirrors[i]);
	memset(mirrors, 0, sizeof(mirrors));
	there = 0;
}
