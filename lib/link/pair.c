// SPDX-License-Identifier: GPL-2.0-only
/*
 * The pair backend: a link between two stacks, of one process or of two. It is a
 * memfd with a ring for each direction (ring.h), and an eventfd for each end, the
 * bell of that end. Frames keep their virtio-net header, so a segment of 64 KiB
 * needs two copies and, while both sides are busy, no system call.
 *
 * guise_pair() makes a pair between two stacks of this process. For two
 * processes, one of them makes the memfd and the bells (guise_cable_make) and both
 * open "pair:fd=MEM:BELL0:BELL1:END", END 0 in one and 1 in the other.
 *
 * Descriptors of an end: [0] its own bell, which is polled, [1] the other
 * end's, [2] the memory. Members find the number of their end in link->end.
 *
 * Limits: both ends run in real time (in simulated time one stack's clock would
 * move on while a frame is on its way in the other). If one end has offload=off,
 * set it on the other, too, because each end decides what it sends.
 */
#include "link/pair.h"
#include "guise/guise.h"
#include "host/memory.h"
#include "host/fd.h"
#include "host/sys.h"
#include "link/backends.h"
#include "link/frame.h"
#include "link/ring.h"
#include "region/stack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define CABLE_MAGIC 0x4775697365703031ULL
/* Malformed frames and bells in one call: many of them must not keep the virtual CPU. */
#define PAIR_SKIP 16

struct cable {
	uint64_t magic;
	struct guise_ring ring[2]; /* ring[e] is written by end e */
};

struct pair_end {
	struct cable *cable;
	struct guise_ring *tx, *rx;
	struct guise_region *region;
	struct guise_link *link;
};

static void ring_bell(int fd)
{
	uint64_t one = 1;

	/* Fails only when the counter is full, and then it is readable anyway. */
	host_sys(SYS_write, fd, &one, sizeof(one));
}

static int64_t pair_out(struct guise_link_port *port, const struct guise_iov *iov, uint32_t n)
{
	struct pair_end *e = port->state;
	int64_t ret = guise_ring_put(e->tx, iov, n);

	if (ret > 0 && guise_ring_must_wake(e->tx))
		ring_bell(port->fd[1]);
	return ret;
}

/* Nothing in the ring: true when the caller should look again at once. */
static bool pair_settle(struct pair_end *e, int bell)
{
	uint32_t state = __atomic_load_n(&e->rx->bell, __ATOMIC_SEQ_CST);
	uint64_t count;

	/*
	 * While this end was awake, its bell was not rung. Otherwise the bell is emptied, even
	 * if the ring says that it was not rung: a hostile end could keep this one awake for ever.
	 */
	if (state != GUISE_BELL_AWAKE) {
		if (host_sys(SYS_read, bell, &count, sizeof(count)) > 0) {
			__atomic_store_n(&e->rx->bell, GUISE_BELL_AWAKE, __ATOMIC_SEQ_CST);
			return true;
		}
		/* Not readable yet: the other end has set RUNG, and will ring now. */
		if (state == GUISE_BELL_RUNG)
			return false;
	}
	return guise_ring_sleep(e->rx);
}

/* Tells the port if the other end has reported that there is room again. */
static void pair_resume(struct pair_end *e)
{
	if (!guise_ring_resume(e->tx))
		return;
	__atomic_fetch_or(&e->region->vcpu->tx_pending, 1u << (e->link - e->region->links),
			  __ATOMIC_SEQ_CST);
	__atomic_fetch_or(&e->region->vcpu->irq_pending, GUISE_IRQ_TX, __ATOMIC_SEQ_CST);
}

static int64_t pair_in(struct guise_link_port *port, const struct guise_iov *iov, uint32_t n)
{
	struct pair_end *e = port->state;
	int64_t ret;
	int skipped;

	pair_resume(e);
	for (skipped = 0; skipped < PAIR_SKIP; skipped++) {
		ret = guise_ring_get(e->rx, iov, n);
		if (ret == -EAGAIN) {
			if (pair_settle(e, port->fd[0]))
				continue;
			/* The bell, which is empty now, may have been rung for this. */
			pair_resume(e);
			return -EAGAIN;
		}
		if (guise_ring_freed(e->rx) &&
		    __atomic_exchange_n(&e->tx->bell, GUISE_BELL_RUNG, __ATOMIC_SEQ_CST) !=
			    GUISE_BELL_RUNG)
			ring_bell(port->fd[1]);
		if (ret >= 0 && guise_frame_ok(iov[0].base, ret, GUISE_FRAME_ETHER))
			return ret;
		e->link->rx_malformed++;
	}
	/* There may be more frames, for which the other end will not ring: ring here. */
	if (__atomic_exchange_n(&e->rx->bell, GUISE_BELL_RUNG, __ATOMIC_SEQ_CST) != GUISE_BELL_RUNG)
		ring_bell(port->fd[0]);
	return -EAGAIN;
}

static int pair_attach(struct guise_stack *s, struct guise_link *link, struct guise_link_port *port)
{
	struct pair_end *e;
	struct stat st;
	long addr;

	if (host_sys(SYS_fstat, port->fd[2], &st) < 0 || st.st_size != sizeof(struct cable))
		return guise_fail(EINVAL, "pair: descriptor %d is not the memory of a cable",
				  port->fd[2]);
	addr = host_sys(SYS_mmap, 0, sizeof(struct cable), PROT_READ | PROT_WRITE, MAP_SHARED,
			port->fd[2], 0);
	if (addr < 0 && addr > -4096)
		return guise_fail((int)-addr, "pair: cannot map the cable's memory: %s",
				  strerrordesc_np((int)-addr));
	if (((struct cable *)addr)->magic != CABLE_MAGIC) {
		host_sys(SYS_munmap, addr, sizeof(struct cable));
		return guise_fail(EINVAL, "pair: descriptor %d is not the memory of a cable",
				  port->fd[2]);
	}
	e = guise_pages(sizeof(*e));
	if (!e) {
		host_sys(SYS_munmap, addr, sizeof(struct cable));
		return guise_fail(ENOMEM, "pair: out of memory");
	}
	e->cable = (struct cable *)addr;
	e->tx = &e->cable->ring[link->end & 1];
	e->rx = &e->cable->ring[!(link->end & 1)];
	e->region = s->region;
	e->link = link;
	port->state = e;
	return 0;
}

static int pair_open(struct guise_stack *s, struct guise_link *link, struct guise_link_port *port,
		     const char *spec)
{
	int memory, bell[2], err;
	unsigned int end;
	char rest;

	if (s->region->clock_mode == GUISE_CLOCK_SIM)
		return guise_fail(EINVAL,
				  "pair: a simulated stack cannot be cabled to another, their "
				  "times differ; use two namespaces of one stack (guise_veth_add)");
	if (sscanf(spec, "fd=%d:%d:%d:%u%c", &memory, &bell[0], &bell[1], &end, &rest) != 4 ||
	    end > 1)
		return guise_fail(EINVAL,
				  "pair: \"%s\": expected %s; "
				  "guise_pair() makes both ends at once",
				  spec, guise_link_forms(link->kind));
	for (int i = 0; i < 2; i++)
		if (host_sys(SYS_fcntl, bell[i], F_SETFL, O_NONBLOCK) < 0)
			return guise_fail(EBADF, "pair: descriptor %d is not open", bell[i]);

	port->fd[0] = guise_fd_copy(bell[end]);
	port->fd[1] = guise_fd_copy(bell[!end]);
	port->fd[2] = guise_fd_copy(memory);
	link->end = (uint8_t)end;
	if (!(link->features & GUISE_LINK_NOGRO))
		link->features |= GUISE_LINK_CSUM | GUISE_LINK_TSO;
	if (port->fd[0] < 0 || port->fd[1] < 0 || port->fd[2] < 0)
		err = guise_fail(EBADF, "pair: \"%s\": cannot copy these descriptors", spec);
	else
		err = pair_attach(s, link, port);
	for (int i = 0; i < GUISE_LINK_FDS && err; i++)
		if (port->fd[i] >= 0)
			host_sys(SYS_close, port->fd[i]);
	return err;
}

static void pair_detach(struct guise_link_port *port)
{
	struct pair_end *e = port->state;

	host_sys(SYS_munmap, e->cable, sizeof(*e->cable));
	guise_pages_free(e, sizeof(*e));
	port->state = NULL;
}

const struct guise_link_backend guise_link_pair = {
	.open = pair_open,
	.attach = pair_attach,
	.out = pair_out,
	.in = pair_in,
	.detach = pair_detach,
};

int guise_cable_make(int fd[3])
{
	uint64_t magic = CABLE_MAGIC;
	long ret;

	fd[1] = fd[2] = -1;
	ret = guise_fd_shared("guise-cable", sizeof(struct cable));
	fd[0] = (int)ret;
	if (ret < 0)
		goto fail;
	ret = host_sys(SYS_pwrite64, fd[0], &magic, sizeof(magic), 0);
	if (ret < 0)
		goto fail;
	for (int i = 1; i < 3; i++) {
		ret = host_sys(SYS_eventfd2, 0, EFD_CLOEXEC | EFD_NONBLOCK);
		fd[i] = (int)ret;
		if (ret < 0)
			goto fail;
	}
	return 0;

fail:
	for (int i = 0; i < 3; i++)
		if (fd[i] >= 0)
			host_sys(SYS_close, fd[i]);
	return guise_fail((int)-ret, "pair: cannot make a cable: %s", strerrordesc_np((int)-ret));
}

static int plug(struct guise_stack *s, const char *name, const int fd[3], int end)
{
	char spec[64];
	int ret;

	snprintf(spec, sizeof(spec), "pair:fd=%d:%d:%d:%d", fd[0], fd[1], fd[2], end);
	ret = guise_link_open(s, name, spec);
	return ret < 0 ? ret : 0;
}

int guise_pair(struct guise_stack *a, const char *name_a, struct guise_stack *b, const char *name_b)
{
	int fd[3], err;

	err = guise_cable_make(fd);
	if (err)
		return err;
	err = plug(a, name_a, fd, 0);
	if (!err) {
		err = plug(b, name_b, fd, 1);
		if (err)
			guise_link_del(a, name_a);
	}
	for (int i = 0; i < 3; i++)
		host_sys(SYS_close, fd[i]);
	return err;
}
