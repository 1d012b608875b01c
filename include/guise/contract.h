/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The contract between the port (linux/arch/guise) and the host side (lib/): the few
 * functions that the port may call, what the host side needs to know of an image, and
 * the numbers and bits by which they speak. The memory that both see is in
 * guise/layout.h. Nothing else crosses. Included by both sides, so it uses only
 * fixed-width types.
 *
 * The virtual CPU is one lock. Whoever holds it is the carrier: the one host
 * thread whose registers execute kernel contexts. Every kernel context that
 * is not executing is parked: its registers lie on its own stack in the
 * region, and any carrier may continue it, except that the context of a host
 * thread's own task is only ever continued by that host thread (it may touch
 * that process's memory).
 */
#ifndef GUISE_CONTRACT_H
#define GUISE_CONTRACT_H

#define GUISE_MAGIC 0x4753495545535447
#define GUISE_ABI   16 /* raise when anything in this file or in layout.h changes */

#ifndef __ASSEMBLY__

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdint.h>
#endif

struct guise_iov {
	void *base;
	uint64_t len;
};

/*
 * Host services, one table per process and stack (self), called with the
 * virtual CPU held. None may call back into the port, and none may block.
 */
struct guise_host_ops {
	/* Nanoseconds of CLOCK_MONOTONIC (0) or CLOCK_REALTIME (1); for a
	 * simulated stack, of its own clock. */
	uint64_t (*clock)(struct guise_host_ops *self, uint32_t which);
	/* Console text, not terminated. */
	void (*console)(struct guise_host_ops *self, const char *text, uint64_t len);
	/* Random bytes: getrandom, or the stack's seeded stream. */
	void (*entropy)(struct guise_host_ops *self, void *buf, uint64_t len);
	/*
	 * One frame out on a link: iov[0] is a struct virtio_net_hdr_v1 (12
	 * bytes), the rest the Ethernet frame. Returns bytes taken, or
	 * -EAGAIN (try later: the port stops its queue until LINK_TX), or
	 * another negative errno (the frame is dropped and counted).
	 */
	int64_t (*frame_out)(struct guise_host_ops *self, uint32_t link,
			     const struct guise_iov *iov, uint32_t n);
	/* One frame in, same shape; bytes written, or -EAGAIN when empty. */
	int64_t (*frame_in)(struct guise_host_ops *self, uint32_t link, const struct guise_iov *iov,
			    uint32_t n);
	/* The host's processor that this thread is on; 0 for a simulated stack. */
	uint32_t (*processor)(struct guise_host_ops *self);
	/* The kernel panicked: text is the reason. Does not return. */
	void (*panic)(struct guise_host_ops *self, const char *text);
	void *stack; /* struct guise_stack, for lib/ only */
};

/* What a host thread asks of the port: slot->op. */
enum guise_op {
	GUISE_OP_NONE = 0,
	GUISE_OP_ATTACH = 1, /* make a task for this slot; arguments as of GUISE_NR_IDENTIFY */
	GUISE_OP_CALL = 2,   /* system call slot->nr with slot->arg[] */
	GUISE_OP_EXIT = 3,   /* the host thread ends: its task exits */
};

/* Bits of region->irq_pending, set by anyone, consumed by the port. */
#define GUISE_IRQ_TIMER 0x1u /* next_event has passed */
#define GUISE_IRQ_RX    0x2u /* region->rx_pending names the links */
#define GUISE_IRQ_TX    0x4u /* region->tx_pending: queue may restart */
#define GUISE_IRQ_REAP  0x8u /* some process is marked dead */

#define GUISE_LINK_CSUM  0x1u /* backend takes NEEDS_CSUM frames */
#define GUISE_LINK_TSO   0x2u /* backend takes GSO frames */
#define GUISE_LINK_NOGRO 0x4u /* never merge received packets (delay box) */
#define GUISE_LINK_RAW   0x8u /* IP packets, without an Ethernet header */

/* region->privileges: what a program may do on the stack */
#define GUISE_PRIVILEGES_ALL  0u /* everything */
#define GUISE_PRIVILEGES_HOST 1u /* what its capabilities on the host say */
#define GUISE_PRIVILEGES_KEPT 2u /* the same, once the stack is kept: until then it is set up */

#define GUISE_CLOCK_REAL 0u
#define GUISE_CLOCK_SIM  1u

/* At base + GUISE_OFF_TEXT: what the host side needs to know of an image. */
struct guise_image {
	uint64_t magic;
	uint32_t abi;
	uint32_t version; /* LINUX_VERSION_CODE */
	/* Offsets from base. */
	uint64_t boot;                 /* void boot(struct guise_slot *) */
	uint64_t resume;               /* void resume(struct guise_slot *) */
	uint64_t copy_start, copy_end; /* a fault in here ... */
	uint64_t copy_fixup;           /* ... continues there */
	uint64_t data_end;             /* end of bss */
	/* Instructions (isa_*.S): where a call of a host service is made anew, where the way
	 * out is read; up to each end a register may have what was read. */
	uint64_t redo, redo_end;
	uint64_t leave_load, leave_load_end;
	uint64_t adopt; /* void adopt(uint64_t *host_sp, void (*go)(void)) */
	uint64_t text_end;
	uint64_t refuse; /* uint32_t: while set, no copies to and from programs */
	/* From here on written by the port's C code, not by the link script. */
	char release[64]; /* "6.12.117-guise" */
	/* sizeof() as the image was built with: catches what GUISE_ABI forgot. */
	uint32_t region_size, slot_size, ops_size, proc_size;
};

#endif /* !__ASSEMBLY__ */

/*
 * System calls of the port beyond Linux's own. Linux's own have the numbers
 * of asm-generic/unistd.h on every processor.
 */
#define GUISE_NR_BASE        2048
#define GUISE_NR_LINK_ADD    2048 /* (link index) -> ifindex */
#define GUISE_NR_LINK_DEL    2049 /* (link index) */
#define GUISE_NR_ALLOC       2050 /* (bytes) -> region address, zeroed */
#define GUISE_NR_FREE        2051 /* (address, bytes) */
#define GUISE_NR_NETNS_NEW   2052 /* () -> fd of a new network namespace */
#define GUISE_NR_GIVE        2053 /* (fd, mark): to whoever takes it under that mark */
#define GUISE_NR_TAKE        2054 /* (mark, keep) -> fd */
#define GUISE_NR_INODE       2055 /* (fd, number): a socket's inode from now on */
#define GUISE_NR_RING        2056 /* (fd, block, u64 piece[2]) -> 1, or 0: no such block */
#define GUISE_NR_RING_MAPPED 2057 /* (fd, 1 or -1): a program has (un)mapped its blocks */
#define GUISE_NR_FORK        2058 /* (place, marks, n, fd, slot): see kernel/heir.c */
#define GUISE_NR_IDENTIFY    2059 /* (ids, ids, ids, ids, capabilities, flags): identity.c */
#define GUISE_NR_END         2060

/*
 * Whose a thread is. Its ids come in pairs, the second of each in the upper half: real and
 * effective user, saved user and that for files, and likewise of groups. Then the
 * capabilities that are effective, and flags: what is said. The rest stays as it is.
 */
#define GUISE_IDENTITY_IDS          1u
#define GUISE_IDENTITY_CAPABILITIES 2u
#define GUISE_IDENTITY_ALL          4u /* it is so of all threads of the process */

#endif
