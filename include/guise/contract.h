/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The contract between the port (linux/arch/guise) and the host side (lib/): the few
 * functions that the port may call, what the host side needs to know of an image, and
 * the numbers and bits that both sides use. The memory that both see is in
 * guise/layout.h. The two sides share nothing else. Both include this file, so it uses
 * only types of fixed width.
 *
 * The virtual CPU is one lock. The host thread that holds it is the carrier: its
 * processor runs the code of the kernel. Every kernel context that does not run is
 * parked: its registers lie on its own stack in the region. Any carrier may continue a
 * parked context, except the context of a shadow task: that one uses the memory of a
 * member, and only the member's own thread continues it.
 */
#ifndef GUISE_CONTRACT_H
#define GUISE_CONTRACT_H

#define GUISE_MAGIC 0x4753495545535447
#define GUISE_ABI   22 /* raise when anything in this file or in layout.h changes */

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
 * The host services. Each process has one table (self) for each of its stacks. The port
 * calls them while the carrier holds the virtual CPU. None of them may call the port, and
 * none may block.
 */
struct guise_host_ops {
	/* Nanoseconds of CLOCK_MONOTONIC (0) or CLOCK_REALTIME (1); in simulated time,
	 * of the stack's own clock. */
	uint64_t (*clock)(struct guise_host_ops *self, uint32_t which);
	/* Console text, not terminated. */
	void (*console)(struct guise_host_ops *self, const char *text, uint64_t len);
	/* Random bytes: getrandom, or the stack's seeded stream. */
	void (*entropy)(struct guise_host_ops *self, void *buf, uint64_t len);
	/*
	 * Sends one frame on a link: iov[0] is a struct virtio_net_hdr_v1 (12 bytes), the
	 * others are the Ethernet frame (an IP packet if the link is GUISE_LINK_RAW).
	 * Returns how many bytes were taken, or -EAGAIN (no room: the port stops the
	 * device's queue until GUISE_IRQ_TX), or another negative errno (the frame is
	 * dropped and counted).
	 */
	int64_t (*frame_out)(struct guise_host_ops *self, uint32_t link,
			     const struct guise_iov *iov, uint32_t n);
	/* Receives one frame, in the same form. Returns how many bytes were written, or
	 * -EAGAIN when there is no frame. */
	int64_t (*frame_in)(struct guise_host_ops *self, uint32_t link, const struct guise_iov *iov,
			    uint32_t n);
	/* The number of the host's processor that this thread runs on; 0 in simulated time. */
	uint32_t (*processor)(struct guise_host_ops *self);
	/* The image panicked: text is the reason. Does not return. */
	void (*panic)(struct guise_host_ops *self, const char *text);
	void *stack; /* struct guise_stack, for lib/ only */
};

/* What a host thread requests from the port: slot->op. */
enum guise_op {
	GUISE_OP_NONE = 0,
	GUISE_OP_ATTACH = 1, /* make a shadow task; arguments as of GUISE_NR_IDENTIFY */
	GUISE_OP_CALL = 2,   /* make system call slot->nr with slot->arg[] */
	GUISE_OP_EXIT = 3,   /* the host thread ends: end its shadow task */
};

/* Bits of vcpu->irq_pending. Any member sets them; the port clears them. */
#define GUISE_IRQ_TIMER 0x1u /* next_event has passed */
#define GUISE_IRQ_RX    0x2u /* frames have come: vcpu->rx_pending says on which links */
#define GUISE_IRQ_TX    0x4u /* room for frames: vcpu->tx_pending says on which links */
#define GUISE_IRQ_REAP  0x8u /* a process is marked as dead */

/* What a backend takes and gives: link->features. */
#define GUISE_LINK_CSUM  0x1u /* it takes frames without a checksum (NEEDS_CSUM) */
#define GUISE_LINK_TSO   0x2u /* it takes frames that are to be segmented (GSO) */
#define GUISE_LINK_NOGRO 0x4u /* received packets are never merged (guise path) */
#define GUISE_LINK_RAW   0x8u /* IP packets, without an Ethernet header */

/* region->privileges: what a program may do on the stack */
#define GUISE_PRIVILEGES_ALL  0u /* everything */
#define GUISE_PRIVILEGES_HOST 1u /* what its capabilities on the host allow */
#define GUISE_PRIVILEGES_KEPT 2u /* everything until the stack has been set up, then as HOST */

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
	/*
	 * Addresses of instructions (isa_*.S) for lib/region/finish.c: where it makes the
	 * call of a host service again, and where it has the stack pointer of the carrier
	 * read again. Before the end of each a register may hold what was read there.
	 */
	uint64_t redo, redo_end;
	uint64_t leave_load, leave_load_end;
	uint64_t adopt; /* void adopt(uint64_t *host_sp, void (*go)(void)) */
	uint64_t text_end;
	uint64_t refuse;        /* uint32_t: while set, no copies to and from programs */
	uint64_t constants_end; /* from GUISE_OFF_DATA to here all is constant after the boot */
	/* The rest is written by the port's C code, not by the link script. */
	char release[64]; /* "6.12.117-guise" */
	/* sizeof() in the image: finds a change that was made without raising GUISE_ABI. */
	uint32_t region_size, slot_size, ops_size, proc_size;
};

#endif /* !__ASSEMBLY__ */

/*
 * System calls of the port beyond Linux's own. Linux's own have the numbers
 * of asm-generic/unistd.h on every processor.
 */
#define GUISE_NR_BASE      2048
#define GUISE_NR_LINK_ADD  2048 /* (link index) -> ifindex */
#define GUISE_NR_LINK_DEL  2049 /* (link index) */
#define GUISE_NR_ALLOC     2050 /* (bytes) -> region address, zeroed */
#define GUISE_NR_FREE      2051 /* (address, bytes) */
#define GUISE_NR_NETNS_NEW 2052 /* () -> fd of a new network namespace */
#define GUISE_NR_GIVE      2053 /* (fd, mark, host fd): keeps the file for a GUISE_NR_TAKE */
#define GUISE_NR_TAKE      2054 /* (mark, keep, host fd) -> fd. Host fd: see served/join.c */
#define GUISE_NR_INODE     2055 /* (fd, number): sets a socket's inode number */
#define GUISE_NR_RING      2056 /* (fd, block, u64 piece[3]) -> 1, or 0: no such block */
#define GUISE_NR_RING_MAPPED \
	2057 /* (fd, 1 or -1): a program has mapped, unmapped it; 0: and keeps it without rights */
#define GUISE_NR_FORK         2058 /* (place, marks, n, fd, slot): see kernel/heir.c */
#define GUISE_NR_IDENTIFY     2059 /* (ids, ids, ids, ids, capabilities, flags): identity.c */
#define GUISE_NR_LINK_CARRIER 2060 /* (link index, 1 or 0): its carrier is there, or lost */
#define GUISE_NR_END          2061

/*
 * GUISE_NR_IDENTIFY: the users, groups and capabilities of a thread. Each of the first four
 * arguments holds two ids, the second in its upper half: real and effective user, saved and
 * filesystem user, and the same of groups. The fifth holds the effective capabilities. The
 * flags say which of these are given; what is not given stays as it is.
 */
#define GUISE_IDENTITY_IDS          1u
#define GUISE_IDENTITY_CAPABILITIES 2u
#define GUISE_IDENTITY_ALL          4u /* they hold for all threads of the process */

#endif
