/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The parts of a region: the memory that all members of a stack share, at the same
 * address `base` in every process that joined:
 *
 *	base + GUISE_OFF_OPS	struct guise_host_ops	private to each process
 *	base + GUISE_OFF_HEADER	struct guise_region	shared
 *	base + GUISE_OFF_SLOTS	struct guise_slot[]	shared
 *	base + GUISE_OFF_TEXT	the image's text and rodata, from its file
 *	base + GUISE_OFF_DATA	the image's data and bss; shared. Constants with pointers are first,
 *				and only read once the kernel has booted
 *	base + GUISE_OFF_ARENA	RAM: struct pages, slabs, kernel stacks; shared
 *	base + size - monitor_size	records of the monitor, from a memory file of their own
 *
 * Each begins on a boundary of GUISE_HOST_PAGE_MAX, so that hosts with pages of
 * 4, 16 and 64 KiB can map it. The port's own pages have 4 KiB everywhere.
 *
 * The port uses some of these fields. Those that only lib/ uses are here, too, because all
 * members must agree on where they are; lib/region/state.h says what their values mean.
 */
#ifndef GUISE_LAYOUT_H
#define GUISE_LAYOUT_H

#include <guise/contract.h>

#define GUISE_HOST_PAGE_MAX  0x10000
#define GUISE_HOST_PAGE_HUGE 0x200000 /* of a host with pages of 4 KiB; lib/region/huge.c */

#define GUISE_OFF_OPS    0x000000
#define GUISE_OFF_HEADER 0x010000
#define GUISE_OFF_SLOTS  0x040000
#define GUISE_OFF_TEXT   0x200000
#define GUISE_OFF_DATA   0xc00000
#define GUISE_OFF_ARENA  0x1800000

#define GUISE_MAX_SLOTS  4096 /* host threads inside one stack */
#define GUISE_MAX_PROCS  1024 /* host processes that joined */
#define GUISE_MAX_LINKS  16
#define GUISE_VCPUS      1
#define GUISE_BELLS      192   /* at most; each wakes threads that sleep in ppoll(2) */
#define GUISE_STACK_SIZE 32768 /* a kernel stack, bytes */

#ifndef __ASSEMBLY__

/* One host thread. 256 bytes; index 0 is never used (where a slot is named, 0 is none). */
struct guise_slot {
	uint32_t word;      /* enum guise_word */
	uint32_t used;      /* proc + 1 while any other field may be in use; 0: free */
	uint32_t id;        /* own index */
	uint32_t proc;      /* index into region->procs */
	int32_t tid;        /* host thread id */
	uint32_t op;        /* enum guise_op */
	uint32_t run;       /* slot->op is to be done */
	uint32_t done;      /* the port has done slot->op */
	uint32_t kicked;    /* another carrier has woken its task */
	uint32_t kick_next; /* the next slot of the list at vcpu->kick_head */
	uint32_t interrupt; /* a signal or a ready descriptor of the host ends its call */
	uint32_t orphan;    /* its process is dead: any carrier may run the task */
	uint32_t cpu;       /* host processor that the thread last woke on, + 1 */
	uint32_t restart;   /* the call is repeated if its handlers have SA_RESTART */
	uint32_t waiting;   /* not counted in region->online */
	uint32_t wait_next, wait_prev;
	uint32_t belled;      /* kicked in ppoll: see state.h */
	uint32_t attach_next; /* the port's list of slots that need a task */
	uint32_t waker_cpu;   /* host processor that last kicked it, + 1 */
	uint64_t host_sp;     /* the thread's own stack pointer, while it is the carrier */
	uint64_t task;        /* struct task_struct *, 0 before ATTACH */
	uint64_t nr;
	uint64_t arg[6];
	int64_t ret;
	uint32_t follows;    /* in the list of followers, or just entering or leaving it */
	uint32_t delivering; /* it alone knows of wake-ups that it still has to make */
	uint32_t still;      /* see state.h */
	uint32_t bell;       /* which of vcpu->bell it sleeps on, or slept on last */
	uint64_t signals;    /* bit n-1: raise signal n of the host when the thread leaves */
	uint32_t renew;      /* users of its process have changed: kernel/identity.c */
	uint32_t has_bell;   /* it sleeps on that bell, or has not looked since */
	/* Of a servant: its call may only use memory in here. The program's addresses from
	 * window_from on are at window_at; 0 bytes: all of the process's memory, as it is. */
	uint64_t window_size, window_from, window_at;
	uint64_t inside; /* in its process: says whether the thread is inside; lib/region/gate.c */
	uint64_t pad;
} __attribute__((aligned(64)));

/*
 * The table of descriptors, at proc->fdmap: pointers to chunks. lib/region/fdmap.h has the
 * rules; when a process forks, the port copies the table. An entry is 0 for a descriptor
 * that is the host's alone; otherwise it has flags and the stack's descriptor. PRIVATE is
 * the sign bit, so that the test for it, which is made at each call, is one comparison.
 */
#define GUISE_FD_PRIVATE 0x80000000u /* a socket of the stack */
#define GUISE_FD_EPOLL   0x40000000u /* an epoll of the host, which may have the next three */
#define GUISE_FD_HALF    0x20000000u /* ... an epoll of the stack, too: GUISE_FD_STACK */
#define GUISE_FD_HOSTED  0x10000000u /* ... descriptors of the host in it, now or before */
#define GUISE_FD_NESTED  0x08000000u /* ... another epoll in it */
#define GUISE_FD_STALE   0x04000000u /* the parent's, from before a fork: not usable */
#define GUISE_FD_SHARED  0x02000000u /* other descriptors have its placeholder, or had */
#define GUISE_FD_FILE    0x01000000u /* private, and no socket: a file of the stack */
#define GUISE_FD_SPAWN   0x00800000u /* a spawned program may get it by another number */
#define GUISE_FD_STACK   0x000fffffu /* the stack's descriptor */

#define GUISE_FDMAP_CHUNK 1024 /* entries in a chunk, and chunks in a table */

/* Beside each entry of a private socket is the inode number of its placeholder: a socket
 * whose number has changed is found by it. */
struct guise_fdmap_chunk {
	uint32_t entry[GUISE_FDMAP_CHUNK];
	uint32_t inode[GUISE_FDMAP_CHUNK];
};

struct guise_fdmap {
	struct guise_fdmap_chunk *chunk[GUISE_FDMAP_CHUNK];
};

#define GUISE_SERVES_NOBODY (-1)

/* One host process. */
struct guise_proc {
	uint32_t used;
	int32_t pid;         /* host pid */
	uint64_t start_time; /* field 22 of /proc/PID/stat: tells it from a later one of its pid */
	uint32_t dead;       /* set by the holder, for the reaper */
	uint32_t untraced;   /* why the holder is not its tracer, or 0 */
	uint64_t leader;     /* struct task_struct * of its leader task */
	uint64_t fdmap;      /* host fd -> stack fd; see lib/region/fdmap.h */
	uint64_t marks;      /* struct guise_mark[], for its program; preload/process/passing.c */
	uint32_t marks_n;
	uint32_t ask;         /* futex: enum guise_ask; lib/region/ask.c */
	int32_t ask_about;    /* a pid, or 0: its own; or what else is asked about */
	int32_t ask_answer;   /* 0 or -errno */
	uint32_t expected;    /* futex: the holder has not seen it yet; lib/region/heir.c */
	uint32_t first_slot;  /* of a process that was expected: its first thread's, or 0 */
	uint32_t uid, gid;    /* when it joined, as the host's kernel told the holder */
	uint64_t identity[6]; /* of a servant's program, as arguments of GUISE_NR_IDENTIFY */
	int32_t serves;       /* a servant: the pid of its program; GUISE_SERVES_NOBODY: none yet */
	uint32_t pad;
};

/*
 * A descriptor that passes an exec. The next program of the process finds it by the inode
 * number of its placeholder, whatever descriptor the placeholder then has. An epoll has no
 * placeholder, and keeps its number.
 */
struct guise_mark {
	uint32_t inode;
	uint32_t number;
	uint32_t entry; /* of the table of descriptors */
	uint32_t found;
};

/* One link; written by the process that adds it, before the port gets GUISE_NR_LINK_ADD. */
struct guise_link {
	uint32_t used;
	uint32_t features; /* GUISE_LINK_* */
	uint32_t mtu;
	uint8_t mac[6];
	uint8_t end; /* of a pair: which end this is, 0 or 1 */
	uint8_t pad;
	char name[16];   /* interface name inside the stack */
	char kind[16];   /* backend: tap, pair, ... */
	uint32_t lost;   /* the backend has failed for ever: no longer polled */
	uint32_t reason; /* why, as the backend numbers it: for its message */
	/* Another one for each link that is added, so that a process knows whether the descriptors
	 * that it has for this index are this link's; lib/region/additions.c */
	uint32_t generation;
	uint32_t pad2;
	uint64_t rx_frames, rx_bytes, rx_malformed;
	uint64_t tx_frames, tx_bytes, tx_dropped;
};

/* How to wake threads that sleep in ppoll(2): lib/region/bell.c. Times are ns of the
 * stack's clock. */
struct guise_bell {
	uint32_t pending;  /* slots with GUISE_BELLED */
	uint32_t late;     /* slots with GUISE_BELL_LATE */
	uint32_t vain;     /* how often it was rung again, while pending slots did not see it */
	uint32_t sleepers; /* slots that have it (slot->has_bell) */
	uint64_t since;    /* when it was first rung again */
	uint64_t pause;    /* before it was last rung for late slots */
	uint64_t again;    /* when it is next rung for late slots; ~0: there are none */
};

/*
 * A virtual CPU, and which threads wait for what happens on it. Threads that wait for the lock
 * look at its line again and again: what its owner writes stands in other lines, or each of
 * the owner's writes would have to fetch the line back from another processor.
 */
struct guise_vcpu {
	uint32_t lock __attribute__((aligned(64))); /* lib/region/vcpu.c */
	uint32_t waiting;                           /* threads that wait for it */
	uint32_t starving;                          /* how many of them starve */
	uint32_t napping;                           /* how many of the waiting threads nap, ... */
	uint32_t nap; /* ... on this futex; counts how many were woken */

	uint32_t carrier __attribute__((aligned(64))); /* slot that holds it */
	uint32_t irq_pending;                          /* GUISE_IRQ_* */
	uint32_t rx_pending;                           /* a bit for each link */
	uint32_t tx_pending;
	uint32_t kick_head;  /* list of slots kicked since the last unlock */
	uint32_t tx_blocked; /* a bit for each link: it waits for POLLOUT */
	uint32_t tx_held;    /* a bit for each link: frames wait for the next unlock */
	uint32_t entered;    /* the carrier is inside the image */
	uint32_t finished;   /* sections that the holder finished for dead members */
	uint32_t calls;      /* made by any thread while others wait for the lock */
	uint64_t redo;       /* stack pointer in the call of a host service; 0: there is none */

	/* Waiting: leader, followers, pump; lib/region/wait.c */
	uint64_t next_event __attribute__((aligned(64))); /* ns; ~0: none */
	uint64_t leader_until;    /* when the leader, or the pump for it, looks at the stack next */
	uint64_t pump_until;      /* when the pump looks at the stack next; 0: not standing by */
	uint64_t bell_again;      /* ns; the first of all bell[].again */
	uint32_t leader;          /* slot that watches devices and timers */
	uint32_t leader_tx;       /* the part of tx_blocked that the leader polls */
	uint32_t leader_timeless; /* the pump looks at the clock for the leader */
	uint32_t wait_head;       /* list of followers */
	uint32_t pump_word;       /* lib/region/pump.c */
	uint32_t pump_slot;
	uint32_t pump_alive;
	uint32_t activity; /* counts waits; the pump stands by while this changes */

	uint64_t bells_taken[GUISE_BELLS / 64]; /* a bit each: it has sleepers */
	struct guise_bell bell[GUISE_BELLS] __attribute__((aligned(64)));
};

/* What is counted for the holder's summary. */
enum guise_count {
	GUISE_COUNT_ESCAPED,   /* sockets that escaped */
	GUISE_COUNT_UNTRAPPED, /* processes and threads whose raw system calls are not seen */
	GUISE_COUNT_SOCKETS,   /* private sockets that were made */
	GUISE_COUNT_PROGRAMS,  /* programs that joined: counted at each exec, not at a fork */
	GUISE_COUNT_BY_ITSELF, /* programs that joined although GUISE_PRELOAD=off */
	GUISE_COUNTS,
};

/* The shared header. */
struct guise_region {
	uint64_t magic;
	uint32_t abi;
	uint32_t running; /* the port booted */
	uint64_t base, size;
	uint64_t monitor_size;  /* bytes at the end, of another memory file: guise/monitor.h */
	uint64_t ram, ram_size; /* the arena */
	char name[64];          /* of the stack, for messages */
	char cmdline[512];      /* kernel command line */

	struct guise_vcpu vcpu[GUISE_VCPUS];

	/* Read by all at each call, and hardly ever written. */
	uint32_t dead __attribute__((aligned(64))); /* the stack is lost: calls give ENETDOWN */
	uint32_t ask;            /* futex: a member asks the holder; lib/region/ask.c */
	uint32_t bells;          /* how many of vcpu->bell there are, ... */
	uint32_t bells_most;     /* ... and how many there may be */
	uint32_t clock_mode;     /* GUISE_CLOCK_* */
	uint32_t slots_end;      /* the highest slot that was ever used, + 1 */
	uint32_t privileges;     /* GUISE_PRIVILEGES_* */
	uint32_t links_now;      /* counts links that were added or removed */
	uint64_t user_namespace; /* of the ids of users: its inode, or 0 */
	uint64_t monitor_kinds;  /* a bit for each kind of event that is recorded */

	/* Written at each wait. */
	uint32_t online __attribute__((aligned(64))); /* simulated time: threads that do not wait */
	uint32_t pad2;
	uint64_t waits, kicks, pump_turns;

	uint64_t sim_now, sim_epoch; /* ns; wall time = sim_epoch + sim_now */
	uint64_t seed, seed_state;

	uint64_t count[GUISE_COUNTS]; /* for the holder's summary */
	struct guise_link links[GUISE_MAX_LINKS];
	struct guise_proc procs[GUISE_MAX_PROCS];
};

#endif /* !__ASSEMBLY__ */

#endif
