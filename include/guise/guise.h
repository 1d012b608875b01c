/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * libguise: a Linux network stack of your own.
 *
 * Every function that can fail returns a negative errno (or a NULL pointer
 * with the errno in *err where a pointer is returned); guise_error() then has
 * a sentence for people, per thread. Functions are thread-safe unless they
 * say otherwise. Blocking functions block the calling thread only.
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

/* The sentence that belongs to this thread's last failure; never NULL. */
GUISE_API const char *guise_error(void);

/* "0.1.0", and once this process has a stack "0.1.0 (Linux 6.12.117-guise)" */
GUISE_API const char *guise_version(void);

/* ---- life ------------------------------------------------------------- */

struct guise_options {
	size_t size;         /* sizeof(struct guise_options), set by GUISE_OPTIONS_INIT */
	const char *name;    /* for messages; default "guise" */
	const char *image;   /* kernel image; default: beside the library, or $GUISE_KERNEL */
	uint64_t memory;     /* bytes of RAM, default 256 MiB, at least 32 MiB */
	const char *cmdline; /* appended to the kernel command line */
	int simulated;       /* 1: time jumps to the next event when nobody has work */
	uint64_t seed;       /* simulated: all randomness */
	int no_pump;    /* 1: no pump thread; devices and timers only run while a thread waits */
	int console_fd; /* kernel messages; -1 (default): dropped below warning, else stderr */
	int index;      /* -1 (default): any free base address; else 0..63 */
};

#define GUISE_OPTIONS_INIT { .size = sizeof(struct guise_options), .console_fd = -1, .index = -1 }

/*
 * Creates a stack in this process and boots it: lo is up. NULL on failure.
 * The process may hold several stacks.
 */
GUISE_API struct guise_stack *guise_create(const struct guise_options *opt, int *err);

/*
 * Joins the stack of a holder. ticket is the inherited descriptor that is
 * the right to join (its number stands in $GUISE_STACK); -1 reads that.
 */
GUISE_API struct guise_stack *guise_join(int ticket, int *err);

/* Leaves: this process's sockets close as if it had exited. If this process
 * created the stack, the stack ends. No other thread may be inside. */
GUISE_API void guise_leave(struct guise_stack *s);

/* ---- calls ------------------------------------------------------------ */

/*
 * The direct system call: nr is a number of asm-generic/unistd.h, the same on
 * every processor (GUISE_NR_x in guise/syscall.h). Descriptors are the
 * stack's own, not the host's. -errno on failure; -ENETDOWN when the stack
 * is lost.
 */
GUISE_API long guise_call(struct guise_stack *s, long nr, long a, long b, long c, long d, long e,
			  long f);

/*
 * As guise_call, but while the call sleeps, the n host descriptors in hostfds
 * are waited for as well. When one of them is ready first (revents filled),
 * the call is interrupted (-EINTR, or its result if it had one) and
 * *host_ready is the number of ready ones, else 0; -1 when the call did not have to
 * wait, so that nobody looked at them.
 */
GUISE_API long guise_call_polling(struct guise_stack *s, struct pollfd *hostfds, unsigned int n,
				  int *host_ready, long nr, long a, long b, long c, long d, long e,
				  long f);

/* A thread that will wait elsewhere (pthread_join) says so, or a simulated
 * stack's time would stand still; and says when it is back. */
GUISE_API void guise_offline(struct guise_stack *s);
GUISE_API void guise_online(struct guise_stack *s);

/* Nanoseconds of the stack's monotonic clock (simulated: since creation). */
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
 *	"stream:PATH"	a Unix stream socket on which a program waits that speaks passt's and
 *			QEMU's framing
 *	"stream:fd=N"	a connected one
 *	"passt:PATH"	the same with passt itself, which ends with the stack
 *	"passt:fd=N"
 *	"pair:fd=MEMORY:BELL0:BELL1:END"
 *			an end of a cable to another stack, as guise_pair() makes them
 * followed by ",mac=02:00:00:00:00:01", ",mtu=1500", ",offload=off" (each
 * frame one packet on the wire: no TSO, no GRO). Of descriptors guise takes a
 * copy: yours may be closed. Returns the interface index.
 */
GUISE_API int guise_link_add(struct guise_stack *s, const char *name, const char *spec);
GUISE_API int guise_link_del(struct guise_stack *s, const char *name);

/* Joins two stacks of this process by a cable: interface `name` in each. */
GUISE_API int guise_pair(struct guise_stack *a, const char *name_a, struct guise_stack *b,
			 const char *name_b);

/* ---- configuration (inside the stack, by its own netlink) --------------- */

/* "192.0.2.2/24", "2001:db8::2/64" (no duplicate address detection) */
GUISE_API int guise_addr_add(struct guise_stack *s, const char *dev, const char *addr);
/* up: 1 or 0 */
GUISE_API int guise_link_set(struct guise_stack *s, const char *dev, int up);
GUISE_API int guise_link_mtu(struct guise_stack *s, const char *dev, int mtu);
/* Segmentation (TSO, GSO) and merging of received packets (GRO). Off, each packet
 * of the stack is one on the wire: what netem needs to lose single packets. */
GUISE_API int guise_link_offload(struct guise_stack *s, const char *dev, int on);
/* dst "default", "10.0.0.0/8"; via and dev may be NULL, not both; table 0: main */
GUISE_API int guise_route_add(struct guise_stack *s, const char *dst, const char *via,
			      const char *dev, unsigned int table);
/* spec as tc prints it: "netem delay 20ms loss 0.2% rate 100mbit limit 1000
 * seed 7", "fq", "fq_codel", "tbf rate 10mbit burst 32kb latency 50ms",
 * "pfifo limit 100", "none"; replaces the root qdisc */
GUISE_API int guise_qdisc_set(struct guise_stack *s, const char *dev, const char *spec);
/* key "net.ipv4.tcp_congestion_control"; dots or slashes */
GUISE_API int guise_sysctl_set(struct guise_stack *s, const char *key, const char *value);
/* value without its newline; the length, or -errno */
GUISE_API int guise_sysctl_get(struct guise_stack *s, const char *key, char *value, size_t size);
/* a MPTCP endpoint: flags any of "signal", "subflow", "backup", "fullmesh" */
GUISE_API int guise_mptcp_endpoint(struct guise_stack *s, const char *addr, const char *dev,
				   const char *flags);
/* A file of the stack's /proc or /sys, whole and terminated; its length. */
GUISE_API ssize_t guise_read_file(struct guise_stack *s, const char *path, char *buf, size_t size);

/* Network namespaces inside the stack: a new one, as a stack descriptor; this
 * thread then works in it. 0 with fd -1: back to the stack's first one. */
GUISE_API int guise_netns_new(struct guise_stack *s);
GUISE_API int guise_netns_enter(struct guise_stack *s, int fd);
/* A veth cable between two namespaces (stack descriptors; -1: the first). */
GUISE_API int guise_veth_add(struct guise_stack *s, int ns_a, const char *name_a, int ns_b,
			     const char *name_b);

#ifdef __cplusplus
}
#endif
#endif
