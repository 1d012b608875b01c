/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The contract between the port (linux/arch/guise) and the host side (lib/):
 * the layout of a region, and the few functions the port may call. Nothing
 * else crosses. Included by both sides, so it uses only fixed-width types.
 *
 * A region, at the same address `base` in every process that joined:
 *
 *	base + GUISE_OFF_OPS	struct guise_host_ops	private to each process
 *	base + GUISE_OFF_HEADER	struct guise_region	shared
 *	base + GUISE_OFF_SLOTS	struct guise_slot[]	shared
 *	base + GUISE_OFF_TEXT	the image's text and rodata, from its file
 *	base + GUISE_OFF_DATA	the image's data and bss	shared
 *	base + GUISE_OFF_ARENA	RAM: struct pages, slabs, kernel stacks; shared
 *
 * Each begins on a boundary of GUISE_HOST_PAGE_MAX, so that hosts with pages of
 * 4, 16 and 64 KiB can map it. The port's own pages have 4 KiB everywhere.
 *
 * The virtual CPU is one lock. Whoever holds it is the carrier: the one host
 * thread whose registers execute kernel contexts. Every kernel context that
 * is not executing is parked: its registers lie on its own stack in the
 * region, and any carrier may continue it, except that the context of a host
 * thread's own task is only ever continued by that host thread (it may touch
 * that process's memory).
 */
#ifndef GUISE_HOST_OPS_H
#define GUISE_HOST_OPS_H

#define GUISE_MAGIC 0x4753495545535447
#define GUISE_ABI   10 /* raise when anything in this file changes */

#define GUISE_HOST_PAGE_MAX 0x10000

#define GUISE_OFF_OPS    0x000000
#define GUISE_OFF_HEADER 0x010000
#define GUISE_OFF_SLOTS  0x040000
#define GUISE_OFF_TEXT   0x200000
#define GUISE_OFF_DATA   0x900000
#define GUISE_OFF_ARENA  0x1400000

#define GUISE_MAX_SLOTS     4096 /* host threads inside one stack */
#define GUISE_MAX_PROCS     1024 /* host processes that joined */
#define GUISE_FDMAP_CHUNKS  1024 /* of a process's table of descriptors ... */
#define GUISE_FDMAP_ENTRIES 1024 /* ... each of so many entries, with an inode for each */
#define GUISE_MAX_LINKS     16
#define GUISE_STACK_SIZE    32768 /* a kernel stack, bytes */

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
	/* The kernel panicked: text is the reason. Does not return. */
	void (*panic)(struct guise_host_ops *self, const char *text);
	void *stack; /* struct guise_stack, for lib/ only */
};

/* What a host thread asks of the port: slot->op. */
enum guise_op {
	GUISE_OP_NONE = 0,
	GUISE_OP_ATTACH = 1, /* make a task for this slot (args: see below) */
	GUISE_OP_CALL = 2,   /* system call slot->nr with slot->arg[] */
	GUISE_OP_EXIT = 3,   /* the host thread ends: its task exits */
};

/* Bits of region->irq_pending, set by anyone, consumed by the port. */
#define GUISE_IRQ_TIMER 0x1u /* next_event has passed */
#define GUISE_IRQ_RX    0x2u /* region->rx_pending names the links */
#define GUISE_IRQ_TX    0x4u /* region->tx_pending: queue may restart */
#define GUISE_IRQ_REAP  0x8u /* some process is marked dead */

/* slot->word, the futex word a host thread sleeps on. */
enum guise_word {
	GUISE_WORD_AWAY = 0,   /* in its program, or inside working */
	GUISE_WORD_SPIN = 1,   /* waits, polling the word */
	GUISE_WORD_FUTEX = 2,  /* waits in futex(2) on the word */
	GUISE_WORD_POLL = 3,   /* waits in ppoll(2): ring the bell */
	GUISE_WORD_KICKED = 4, /* told to come back */
};

/* slot->belled: kicked in ppoll. lib/region/bell.c */
enum {
	GUISE_BELLED = 1,    /* the bell rings until it has seen it */
	GUISE_BELL_LATE = 2, /* has not seen it for long: it will be rung anew */
};

/* slot->still: the tracer's word on a thread since it began to wait */
enum {
	GUISE_STILL = 1,     /* it was stopped: it cannot lead */
	GUISE_CONTINUED = 2, /* and goes on: some calls end by that */
};

/* One host thread. 256 bytes; index 0 is never used (0 means "nobody"). */
struct guise_slot {
	uint32_t word;      /* enum guise_word */
	uint32_t used;      /* proc + 1, from the first moment to the last; 0: free */
	uint32_t id;        /* own index */
	uint32_t proc;      /* index into region->procs */
	int32_t tid;        /* host thread id */
	uint32_t op;        /* enum guise_op */
	uint32_t run;       /* its task asks for the CPU */
	uint32_t done;      /* the port finished slot->op */
	uint32_t kicked;    /* its task was woken by another carrier */
	uint32_t kick_next; /* region->kick_head chain */
	uint32_t interrupt; /* a host signal or host fd wants its task out */
	uint32_t orphan;    /* its process died: any carrier may run the task */
	uint32_t signals;   /* bit n-1: raise host signal n on leaving */
	uint32_t restart;   /* result was ERESTARTSYS: see SA_RESTART */
	uint32_t waiting;   /* linked into region->wait_head */
	uint32_t wait_next, wait_prev;
	uint32_t belled;      /* see above */
	uint32_t attach_next; /* the port's list of slots that want a task */
	uint32_t waker_cpu;   /* host processor of the last kick, + 1 */
	uint64_t host_sp;     /* the carrier's own stack while inside */
	uint64_t task;        /* struct task_struct *, 0 before ATTACH */
	uint64_t nr;
	uint64_t arg[6];
	int64_t ret;
	uint32_t follows;    /* in the list of followers, or just entering or leaving it */
	uint32_t delivering; /* has wake-ups to make that nobody else knows of */
	uint32_t still;      /* see above */
	uint32_t pad0;
	uint64_t pad[6];
} __attribute__((aligned(64)));

/* One host process. */
struct guise_proc {
	uint32_t used;
	int32_t pid;         /* host pid */
	uint64_t start_time; /* field 22 of /proc/PID/stat: guards pid reuse */
	uint32_t dead;       /* set by the holder; consumed by the reaper */
	uint32_t threads;    /* slots in use */
	uint64_t leader;     /* struct task_struct * of the thread group leader */
	uint64_t fdmap;      /* host fd -> stack fd; see lib/region/fdmap.h */
	uint32_t untraced;   /* the holder is not its tracer */
	uint32_t marks_n;
	uint64_t marks;     /* struct guise_mark[]: what its program is to find; preload/process/exec.c */
	uint32_t ask;       /* futex: enum guise_ask; lib/region/ask.c */
	int32_t ask_about;  /* a pid, or 0: its own */
	int32_t ask_answer; /* 0 or -errno */
	uint32_t expected;  /* futex: the holder has not seen it yet; lib/region/heir.c */
};

/*
 * A descriptor that passes exec: the next program of the process finds it by its
 * placeholder's inode, whatever number that then has. An epoll has none, and
 * keeps its number.
 */
struct guise_mark {
	uint32_t inode;
	uint32_t number;
	uint32_t entry; /* of the table of descriptors */
	uint32_t found;
};

/* One link; written by whoever adds it, before the port sees LINK_ADD. */
struct guise_link {
	uint32_t used;
	uint32_t features; /* GUISE_LINK_* */
	uint32_t mtu;
	uint8_t mac[6];
	uint8_t end; /* pair: which end of the cable, 0 or 1 */
	uint8_t pad;
	char name[16];   /* interface name inside the stack */
	char kind[16];   /* backend: tap, pair, ... */
	uint32_t lost;   /* the backend failed for good: not polled any more */
	uint32_t reason; /* the backend's own, for its sentence on that */
	uint64_t rx_frames, rx_bytes, rx_malformed;
	uint64_t tx_frames, tx_bytes, tx_dropped;
};

/* What a process asks of the holder: proc->ask. */
enum guise_ask {
	GUISE_ASK_NOTHING = 0,
	GUISE_ASK_PREPARES = 1, /* somebody is about to ask */
	GUISE_ASK_TRACE = 2,    /* tracing is allowed now */
	GUISE_ASK_LET_GO = 3,   /* is to be traced no more */
	GUISE_ASK_ANSWERED = 4,
	GUISE_ASK_TELL = 5, /* of nobody: there is something new in outside[] */
};

/* A program that was started on the host's stack: guise cannot be part of it. */
struct guise_outside {
	uint32_t state; /* GUISE_OUTSIDE_FREE, ... */
	uint32_t why;   /* enum guise_outside_why */
	char program[120];
};

enum { GUISE_OUTSIDE_FREE, GUISE_OUTSIDE_WRITES, GUISE_OUTSIDE_NEW, GUISE_OUTSIDE_SAID };

enum guise_outside_why {
	GUISE_INSIDE,
	GUISE_OUTSIDE_STATIC,
	GUISE_OUTSIDE_GO,
	GUISE_OUTSIDE_PRIVILEGED,
	GUISE_OUTSIDE_MACHINE,
};

#define GUISE_MAX_OUTSIDE 16 /* said in one run */

#define GUISE_LINK_CSUM  0x1u /* backend takes NEEDS_CSUM frames */
#define GUISE_LINK_TSO   0x2u /* backend takes GSO frames */
#define GUISE_LINK_NOGRO 0x4u /* never merge received packets (delay box) */
#define GUISE_LINK_RAW   0x8u /* IP packets, without an Ethernet header */

#define GUISE_CLOCK_REAL 0u
#define GUISE_CLOCK_SIM  1u

/* The shared header. */
struct guise_region {
	uint64_t magic;
	uint32_t abi;
	uint32_t running; /* the port booted */
	uint64_t base, size;
	uint64_t ram, ram_size; /* the arena */
	uint8_t build_id[20];
	uint8_t pad0[4];
	char name[64];     /* of the stack, for messages */
	char cmdline[512]; /* kernel command line */

	/* The virtual CPU. */
	uint32_t lock __attribute__((aligned(64))); /* lib/region/vcpu.c */
	uint32_t waiting;                           /* threads that wait for it, ... */
	uint32_t starving;                          /* ... and of them those who are next */
	uint32_t carrier;                           /* slot that holds it */
	uint32_t dead;                              /* the stack is lost: calls give ENETDOWN */
	uint32_t irq_pending;                       /* GUISE_IRQ_* */
	uint32_t rx_pending;                        /* bit per link */
	uint32_t tx_pending;
	uint32_t kick_head;  /* slots kicked since the last unlock */
	uint32_t tx_blocked; /* bit per link: it waits for POLLOUT */
	uint32_t tx_held;    /* bit per link: frames wait for the next unlock */
	uint32_t entered;    /* the carrier is inside the image */
	uint32_t finished;   /* sections that the holder finished for a dead member */
	uint32_t calls;      /* of whoever, while others wait for the lock */
	uint64_t redo;       /* stack pointer of the call of a host service that is under way */

	/* Waiting: leader, followers, pump; lib/region/wait.c */
	uint64_t next_event __attribute__((aligned(64))); /* ns, ~0 = none */
	uint64_t leader_until;                            /* when the leader will look again */
	uint32_t leader;                                  /* slot that watches devices and timers */
	uint32_t wait_head;                               /* followers */
	uint32_t bell_pending; /* slots with GUISE_BELLED; lib/region/bell.c */
	uint32_t pump_word;    /* lib/region/pump.c */
	uint32_t pump_slot;
	uint32_t pump_alive;
	uint32_t online;     /* simulated time: threads in their program */
	uint32_t activity;   /* counts waits; the pump stands by while it moves */
	uint64_t bell_again; /* ns, when the bell is rung anew for the late, ~0 = nobody is */
	uint32_t leader_tx;  /* of tx_blocked, what the leader knows of */
	uint32_t ring;       /* futex: something is asked of the holder; lib/region/ask.c */
	uint64_t bell_since; /* ns, the first look in vain at this ring */
	uint64_t bell_pause; /* ns, until it was last rung anew */
	uint32_t bell_vain;  /* looks at this ring by those whom it was not for */
	uint32_t bell_late;  /* slots with GUISE_BELL_LATE */

	/* Clock. */
	uint32_t clock_mode; /* GUISE_CLOCK_* */
	uint32_t pad1;
	uint64_t sim_now, sim_epoch; /* ns; wall time = sim_epoch + sim_now */
	uint64_t seed, seed_state;

	/* Counters for the holder's summary. */
	uint64_t escaped;   /* sockets of the host that members had at their end */
	uint64_t untrapped; /* processes and threads whose raw system calls are not seen */
	uint64_t untraced;  /* members that the holder could not trace */
	uint64_t sockets;   /* private sockets made */
	uint64_t waits, kicks, leads, pump_turns;

	struct guise_outside outside[GUISE_MAX_OUTSIDE]; /* preload/process/outside.c */
	struct guise_link links[GUISE_MAX_LINKS];
	struct guise_proc procs[GUISE_MAX_PROCS];
};

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
	uint64_t redo;                 /* where a call of a host service is made anew ... */
	uint64_t leave_load;           /* ... and where the way out is read; isa_*.S */
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
#define GUISE_NR_FORK        2058 /* (place, marks, n, fd): see kernel/heir.c */
#define GUISE_NR_END         2059

#endif
