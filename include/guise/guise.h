/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * libguise: a Linux network stack of your own.
 *
 * A function that fails returns a negative errno; one that returns a pointer returns NULL
 * and sets *err. guise_error() then returns a sentence that says what failed. Functions are
 * thread-safe unless their comment says otherwise. A function that blocks blocks the calling
 * thread only.
 */
#ifndef GUISE_GUISE_H
#define GUISE_GUISE_H

#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GUISE_API __attribute__((visibility("default")))

struct guise_stack;

/* A sentence on the last failure in the calling thread; never NULL. */
GUISE_API const char *guise_error(void);

/* "0.1.0", or "0.1.0 (Linux 6.12.117-guise)" when this process has a stack */
GUISE_API const char *guise_version(void);

/* ---- creating, joining and leaving a stack ---------------------------- */

/* The image must be of root, the user, or whoever has the library, and nobody else may write it. */
struct guise_options {
	size_t size;         /* sizeof(struct guise_options), set by GUISE_OPTIONS_INIT */
	const char *name;    /* for messages; default "guise" */
	const char *image;   /* kernel image; default: beside the library, or $GUISE_KERNEL */
	uint64_t memory;     /* bytes of RAM, default 256 MiB, at least 32 MiB */
	const char *cmdline; /* appended to the kernel command line */
	int simulated;       /* 1: the clock moves to the next event when no thread has work */
	uint64_t seed;       /* of all randomness, if simulated */
	int no_pump;    /* 1: no pump thread; devices and timers only run while a thread waits */
	int console_fd; /* kernel messages (errors; more by loglevel=7 in cmdline); -1: stderr */
	int index;      /* -1 (default): any free base address; else 0..63, one of 64 known */
	const char *kernel; /* which image beside the library; default: "guise-kernel" */
};

#define GUISE_OPTIONS_INIT { .size = sizeof(struct guise_options), .console_fd = -1, .index = -1 }

/*
 * Creates a stack in this process and boots it. lo is up then. NULL on failure.
 * A process may have several stacks.
 */
GUISE_API struct guise_stack *guise_create(const struct guise_options *opt, int *err);

/*
 * Joins the stack of a holder. ticket is the descriptor that gives the right to join, which
 * this process inherited; -1: the one whose number is in $GUISE_STACK.
 */
GUISE_API struct guise_stack *guise_join(int ticket, int *err);

/* Leaves a stack: this process's sockets in it close as if the process had exited. If this
 * process created the stack, the stack ends. No other thread may be in a call of it. */
GUISE_API void guise_leave(struct guise_stack *s);

/* ---- calls ------------------------------------------------------------ */

/*
 * Makes a system call in the stack. nr is a number of asm-generic/unistd.h, the same on
 * every processor (GUISE_NR_x in guise/syscall.h). Descriptors are the stack's, not the
 * host's. Returns -errno on failure, -ENETDOWN when the stack is lost.
 */
GUISE_API long guise_call(struct guise_stack *s, long nr, long a, long b, long c, long d, long e,
			  long f);

/*
 * As guise_call; while the call waits, it waits for the n host descriptors in hostfds, too.
 * If some of these are ready first, their revents are set, *host_ready is their number, and
 * the call is interrupted (-EINTR, or its result if it had one). Otherwise *host_ready is 0,
 * or -1 if the call did not wait, so that the host descriptors were not polled.
 */
GUISE_API long guise_call_polling(struct guise_stack *s, struct pollfd *hostfds, unsigned int n,
				  int *host_ready, long nr, long a, long b, long c, long d, long e,
				  long f);

/* In simulated time: before a thread waits outside the stack (pthread_join), and after that.
 * The clock does not move while a thread is online and has not gone to sleep in the stack. */
GUISE_API void guise_offline(struct guise_stack *s);
GUISE_API void guise_online(struct guise_stack *s);

/* Nanoseconds of the stack's monotonic clock (in simulated time: since its creation). */
GUISE_API uint64_t guise_clock(struct guise_stack *s);

/* ---- sockets: as in the manual pages, but -errno instead of errno ------- */

GUISE_API int guise_socket(struct guise_stack *s, int domain, int type, int protocol);
GUISE_API int guise_bind(struct guise_stack *s, int fd, const struct sockaddr *a, socklen_t len);
GUISE_API int guise_connect(struct guise_stack *s, int fd, const struct sockaddr *a, socklen_t len);
GUISE_API int guise_listen(struct guise_stack *s, int fd, int backlog);
GUISE_API int guise_accept4(struct guise_stack *s, int fd, struct sockaddr *a, socklen_t *len,
			    int flags);
GUISE_API int guise_shutdown(struct guise_stack *s, int fd, int how);
GUISE_API int guise_close(struct guise_stack *s, int fd);
GUISE_API ssize_t guise_read(struct guise_stack *s, int fd, void *buf, size_t len);
GUISE_API ssize_t guise_write(struct guise_stack *s, int fd, const void *buf, size_t len);
GUISE_API ssize_t guise_sendto(struct guise_stack *s, int fd, const void *buf, size_t len,
			       int flags, const struct sockaddr *a, socklen_t alen);
GUISE_API ssize_t guise_recvfrom(struct guise_stack *s, int fd, void *buf, size_t len, int flags,
				 struct sockaddr *a, socklen_t *alen);
GUISE_API ssize_t guise_sendmsg(struct guise_stack *s, int fd, const struct msghdr *m, int flags);
GUISE_API ssize_t guise_recvmsg(struct guise_stack *s, int fd, struct msghdr *m, int flags);
GUISE_API int guise_setsockopt(struct guise_stack *s, int fd, int level, int name, const void *v,
			       socklen_t len);
GUISE_API int guise_getsockopt(struct guise_stack *s, int fd, int level, int name, void *v,
			       socklen_t *len);
GUISE_API int guise_getsockname(struct guise_stack *s, int fd, struct sockaddr *a, socklen_t *len);
GUISE_API int guise_getpeername(struct guise_stack *s, int fd, struct sockaddr *a, socklen_t *len);
GUISE_API int guise_poll(struct guise_stack *s, struct pollfd *fds, unsigned int n, int timeout_ms);
GUISE_API int guise_epoll_create(struct guise_stack *s, int flags);
GUISE_API int guise_epoll_ctl(struct guise_stack *s, int ep, int op, int fd,
			      struct epoll_event *ev);
GUISE_API int guise_epoll_wait(struct guise_stack *s, int ep, struct epoll_event *ev, int max,
			       int timeout_ms);
GUISE_API int guise_nanosleep(struct guise_stack *s, uint64_t ns);

/* ---- links ------------------------------------------------------------ */

/*
 * Adds a network interface `name` to the stack. spec says what its other end is:
 *	"tap:IFNAME"	a tap device of the host, made if it does not exist
 *	"tap:fd=N"	an open tap descriptor (IFF_TAP | IFF_NO_PI | IFF_VNET_HDR)
 *	"tun:IFNAME"	the same without Ethernet (IFF_TUN)
 *	"tun:fd=N"
 *	"packet:IFNAME"	an interface of the host, with or without Ethernet, by a packet socket; the
 *			host's own stack goes on receiving, too, and would answer for its addresses
 *	"packet:fd=N"	such a socket (SOCK_RAW), bound to an interface, with a filter of yours
 *	"stream:PATH"	a Unix stream socket on which a program listens that uses the framing
 *			of passt and QEMU
 *	"stream:fd=N"	a connected one
 *	"passt:PATH"	the same with passt itself, which ends with the stack
 *	"passt:fd=N"
 *	"pair:fd=MEMORY:BELL0:BELL1:END"
 *			an end of a pair, which connects two stacks; guise_pair() makes both
 * It may be followed by ",mac=02:00:00:00:00:01", ",mtu=1500", ",offload=off" (each frame is
 * one packet on the wire: no TSO, no GRO). guise takes a copy of each descriptor: you may
 * close yours. Returns the interface index.
 */
GUISE_API int guise_link_add(struct guise_stack *s, const char *name, const char *spec);
GUISE_API int guise_link_del(struct guise_stack *s, const char *name);

/* Connects two stacks of this process by a pair: interface name_a in a, name_b in b. */
GUISE_API int guise_pair(struct guise_stack *a, const char *name_a, struct guise_stack *b,
			 const char *name_b);

/* ---- configuration (inside the stack, by its own netlink) --------------- */

/* "192.0.2.2/24", "2001:db8::2/64" (no duplicate address detection) */
GUISE_API int guise_addr_add(struct guise_stack *s, const char *dev, const char *addr);
/* up: 1 or 0 */
GUISE_API int guise_link_set(struct guise_stack *s, const char *dev, int up);
GUISE_API int guise_link_mtu(struct guise_stack *s, const char *dev, int mtu);
/* Switches segmentation (TSO, GSO) and the merging of received packets (GRO). When off, each
 * packet of the stack is one on the wire: netem needs that to lose single packets. */
GUISE_API int guise_link_offload(struct guise_stack *s, const char *dev, int on);
/* dst "default", "10.0.0.0/8"; via and dev may be NULL, not both; table 0: main */
GUISE_API int guise_route_add(struct guise_stack *s, const char *dst, const char *via,
			      const char *dev, unsigned int table);
/* spec as tc prints it: "netem delay 20ms loss 0.2% rate 100mbit limit 1000
 * seed 7", "fq", "fq_codel", "tbf rate 10mbit burst 32kb latency 50ms",
 * "pfifo limit 100", "none". Replaces the root qdisc. */
GUISE_API int guise_qdisc_set(struct guise_stack *s, const char *dev, const char *spec);
/* key "net.ipv4.tcp_congestion_control", with dots or slashes */
GUISE_API int guise_sysctl_set(struct guise_stack *s, const char *key, const char *value);
/* Stores the value without its newline. Returns its length, or -errno. */
GUISE_API int guise_sysctl_get(struct guise_stack *s, const char *key, char *value, size_t size);
/* Adds an MPTCP endpoint. flags: any of "signal", "subflow", "backup", "fullmesh". */
GUISE_API int guise_mptcp_endpoint(struct guise_stack *s, const char *addr, const char *dev,
				   const char *flags);
/* Reads a whole file of the stack's /proc or /sys and adds a zero byte. Returns its length. */
GUISE_API ssize_t guise_read_file(struct guise_stack *s, const char *path, char *buf, size_t size);

/* Network namespaces inside the stack. guise_netns_new() makes one in which lo is up, and
 * returns a descriptor of the stack; the calling thread stays where it is.
 * guise_netns_enter() moves the calling thread into the namespace of fd, or, if fd is -1,
 * into the stack's first one. */
GUISE_API int guise_netns_new(struct guise_stack *s);
GUISE_API int guise_netns_enter(struct guise_stack *s, int fd);
/* A veth pair between two namespaces (descriptors of the stack; -1: the first). */
GUISE_API int guise_veth_add(struct guise_stack *s, int ns_a, const char *name_a, int ns_b,
			     const char *name_b);

#ifdef __cplusplus
}
#endif
#endif
