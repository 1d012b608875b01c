// SPDX-License-Identifier: GPL-2.0-only
/*
 * mmap of a packet socket's rings (PACKET_RX_RING, PACKET_TX_RING; packet(7)), which
 * tcpdump and its like read. The ring's blocks lie in the region, wherever the port
 * found memory. So each is mapped a second time, one behind the other, where the
 * program wants them: mremap() of no bytes of a shared mapping doubles it.
 *
 * A mapping keeps a descriptor of the stack open, so that the ring outlives its socket as it
 * does in Linux. munmap() of the whole ring finds the mapping in a list and closes it; if only
 * a part is unmapped, the ring stays until the process ends. All other mappings go straight to
 * the host's kernel, because allocators are among the callers.
 *
 * A program that gives up the region (process/rights.c) keeps its rings, as tcpdump does that takes
 * another user after it has begun. Their memory is used for nothing else from then on, until the
 * stack ends.
 */
#include "preload/preload.h"

#include "guise/layout.h"
#include "host/sys.h"
#include "preload/locks.h"
#include "served/client.h"

#include <sys/mman.h>
#include <sys/stat.h>

/* More rings than these that a process maps at a time stay until it ends. */
#define RINGS 64

static struct ring {
	uint64_t at; /* 0: none */
	size_t length;
	int sfd; /* or its number at the servant */
} rings[RINGS];
static unsigned int mapped; /* none: munmap() does not look */

struct piece {
	uint64_t address, bytes, frame;
};

/* The ring's block of that number: 1 if there is one, 0, or -errno. */
static long block(int sfd, long number, struct piece *piece)
{
	return guise_call(preload.stack, GUISE_NR_RING, sfd, number, (long)piece, 0, 0, 0);
}

/* Lays all blocks over the range, which is mapped. */
static long lay(int sfd, long at)
{
	struct piece piece;
	long err, number;

	for (number = 0; (err = block(sfd, number, &piece)) > 0; number++) {
		long got = host_sys(SYS_mremap, piece.address, 0, piece.bytes,
				    MREMAP_MAYMOVE | MREMAP_FIXED, at);

		if (got < 0 && got > -4096)
			return got;
		at += (long)piece.bytes;
	}
	return err;
}

static void remember(long at, size_t length, int sfd)
{
	guise_own_lock(PRELOAD_LOCK_RINGS);
	for (unsigned int i = 0; i < RINGS; i++)
		if (!rings[i].at) {
			rings[i] = (struct ring){ (uint64_t)at, length, sfd };
			__atomic_add_fetch(&mapped, 1, __ATOMIC_RELAXED);
			break;
		}
	guise_own_unlock(PRELOAD_LOCK_RINGS);
}

/* The stack's descriptor that the mapping held, or -1. */
static int forget(uint64_t at, size_t length)
{
	int sfd = -1;

	guise_own_lock(PRELOAD_LOCK_RINGS);
	for (unsigned int i = 0; i < RINGS; i++)
		if (rings[i].at == at && rings[i].length == length) {
			rings[i].at = 0;
			sfd = rings[i].sfd;
			__atomic_sub_fetch(&mapped, 1, __ATOMIC_RELAXED);
			break;
		}
	guise_own_unlock(PRELOAD_LOCK_RINGS);
	return sfd;
}

bool preload_has_rings(void)
{
	return __atomic_load_n(&mapped, __ATOMIC_RELAXED);
}

void preload_rings_stay(void)
{
	guise_own_lock(PRELOAD_LOCK_RINGS);
	for (unsigned int i = 0; i < RINGS; i++)
		if (rings[i].at && rings[i].sfd >= 0) {
			guise_call(preload.stack, GUISE_NR_RING_MAPPED, rings[i].sfd, 0, 0, 0, 0,
				   0);
			rings[i].sfd = -1; /* no number of the servant's */
		}
	guise_own_unlock(PRELOAD_LOCK_RINGS);
}

/* A served program gets memory into which its servant copies what comes. */
static long map_copy(int sfd, void *address, size_t length, int protection, int flags, off_t offset)
{
	long fd, at = -EINVAL;
	struct stat st;
	int number;

	fd = guise_served_map(preload.stack, sfd, &number);
	if (fd < 0)
		return fd;
	if (!host_sys(SYS_fstat, fd, &st) && length == (size_t)st.st_size && !offset)
		at = host_sys(SYS_mmap, address, length, protection, flags, fd, 0);
	host_sys(SYS_close, fd);
	if (at < 0 && at > -4096)
		guise_served_unmap(preload.stack, number);
	else
		remember(at, length, number);
	return at;
}

static long map_ring(int sfd, void *address, size_t length, int protection, int flags, off_t offset)
{
	struct piece piece;
	long at, err, number;
	size_t all = 0;

	if (preload.stack->served)
		return map_copy(sfd, address, length, protection, flags, offset);
	for (number = 0; (err = block(sfd, number, &piece)) > 0; number++)
		all += piece.bytes;
	if (err)
		return err;
	if (!all || length != all || offset)
		return -EINVAL;
	flags = (flags & ~MAP_TYPE) | MAP_PRIVATE | MAP_ANONYMOUS;
	at = host_sys(SYS_mmap, address, length, PROT_NONE, flags, -1, 0);
	if (at < 0 && at > -4096)
		return at;
	err = lay(sfd, at);
	if (!err && protection != (PROT_READ | PROT_WRITE))
		err = host_sys(SYS_mprotect, at, length, protection);
	if (err) {
		host_sys(SYS_munmap, at, length);
		return err;
	}
	sfd = (int)guise_call(preload.stack, GUISE_NR_dup, sfd, 0, 0, 0, 0, 0);
	guise_call(preload.stack, GUISE_NR_RING_MAPPED, sfd, 1, 0, 0, 0, 0);
	remember(at, length, sfd);
	return at;
}

HOOK void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
	int sfd = flags & MAP_ANONYMOUS ? ON_HOST : stack_fd(fd);
	long at = sfd < 0 ? host_sys(SYS_mmap, address, length, protection, flags, fd, offset)
			  : map_ring(sfd, address, length, protection, flags, offset);

	return (void *)libc_result(at);
}

HOOK void *mmap64(void *address, size_t length, int protection, int flags, int fd, off64_t offset)
	SAME_AS(mmap);

HOOK int munmap(void *address, size_t length)
{
	int sfd = -1;
	long ret;

	/* Before another thread can map a ring there. */
	if (unlikely(__atomic_load_n(&mapped, __ATOMIC_RELAXED)) && !preload_borrowed())
		sfd = forget((uint64_t)address, length);
	ret = host_sys(SYS_munmap, address, length);
	if (sfd >= 0 && preload.stack->served) {
		guise_served_unmap(preload.stack, sfd);
	} else if (sfd >= 0) {
		guise_call(preload.stack, GUISE_NR_RING_MAPPED, sfd, -1, 0, 0, 0, 0);
		guise_call(preload.stack, GUISE_NR_close, sfd, 0, 0, 0, 0, 0);
	}
	return (int)libc_result(ret);
}
