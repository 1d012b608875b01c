/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the files of the preload library share.
 *
 * A hook has the name of libc's call. It asks stack_fd() whether the descriptor is the
 * host's or the stack's. A host descriptor goes to libc's own function, HOST(name)(...),
 * so that the call keeps its cancellation point and all that libc does beside the system
 * call; a descriptor of the stack goes to guise_call(). Hooks are called early (by
 * constructors, from inside malloc), in signal handlers, in vfork children and beside all
 * other threads. So nothing here may allocate memory or take a lock on the way to a host
 * call; elsewhere the rules of lib/host/locks.c and memory.c hold.
 */
#ifndef GUISE_PRELOAD_H
#define GUISE_PRELOAD_H

#include "guise/guise.h"
#include "guise/syscall.h"
#include "preload/originals.h"
#include "region/fdmap.h"

#include <limits.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#define HOOK __attribute__((visibility("default")))
/* Another name that libc has for the same call. */
#define SAME_AS(call) __attribute__((alias(#call), copy(call)))
#define likely(x)     __builtin_expect(!!(x), 1)
#define unlikely(x)   __builtin_expect(!!(x), 0)

struct preload {
	struct guise_fdmap *map;   /* never NULL: an empty one before joining */
	struct guise_stack *stack; /* NULL: not on a stack, or not since fork */
	bool sandboxed;            /* this process, or an ancestor that it was forked from */
	bool prepared;             /* the table is in the region, with the descriptors it needs */
	pid_t pid;                 /* of the process that joined */
	int placeholder;           /* a placeholder of no private socket, see epoll.c */
	int ticket;                /* the right to join; -1: none, do nothing */
	int nudge, stack_nudge;    /* always readable, see epoll.c */
	int place;                 /* where posix_spawn's child finds its place, see spawn.c; -1 */
	int own_low;               /* guise's own are not lower than this; INT32_MAX: none */
};

extern struct preload preload __attribute__((visibility("hidden")));
/* The table of a process without private descriptors. */
extern struct guise_fdmap preload_nothing __attribute__((visibility("hidden")));

/* start.c: joining, forking, and what is guise's own */

/* The stack, joined if that has not been done; NULL: this program has none. */
struct guise_stack *preload_stack(void);
/* Whether this program is to run on a stack, joined or not. */
bool preload_on_stack(void);
/* True in a vfork child: memory is the parent's, the descriptors are not. */
bool preload_borrowed(void);
/* Whether fd is one of guise's own, that the program must not touch. */
bool preload_own_fd(int fd);
/* To be called when guise's own have become more. */
void preload_own_fds_changed(void);
/* The lowest of guise's own descriptors >= fd; -1 if none. */
int preload_next_own_fd(int fd);
/* fd is one of guise's own: the first number above it that is none, or a later one of them. */
int preload_end_of_own_row(int fd);
/* Calls one() for each open descriptor of the host's that is not guise's own. False where /proc
 * cannot be read: a sandbox, whose filter may end the process for any other question. */
bool preload_each_descriptor(void (*one)(int fd, void *data), void *data);
/* One line on standard error: "guise: PROGRAM: ...". */
void preload_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ending.c: before this process or its program ends, other threads and all */
void preload_leave_quietly(void);

/*
 * tracing.c. A program that gains privileges when it is executed (setuid) gets none while the
 * holder traces this process. So before such an exec the holder is asked to let go of it.
 * inside: the program is to be on the stack; if it cannot be, the user is told.
 */

/* Before this process executes the file; or the program that execvp() would find. */
void preload_let_go_to_execute(int dir, const char *path, int flags, bool inside);
void preload_let_go_to_search(const char *name, bool inside);
/* Before posix_spawn: the holder does not trace the child, so only the telling is done. */
void preload_look_at_spawned(const char *name, bool search, bool inside);
/* The path of the program that execvp() would find; NULL if there is none. */
const char *preload_find_program(const char *name, char path[PATH_MAX]);
#define PRELOAD_HEAD 4096
/* Reads the beginning of a file; its length, or 0 if the file cannot be read. */
size_t preload_read_head(const char *path, char head[PRELOAD_HEAD]);
/*
 * capabilities.c: whether the program has no other privileges than a stack gives to all. loader
 * is what to execute in its place.
 */
bool preload_loads_without_capabilities(const char *path, char loader[PATH_MAX]);
/* After joining: the holder lets go for good if this program has a leak sanitizer. */
void preload_let_go_to_find_leaks(void);
/* After an exec that failed. */
void preload_trace_again(void);

/* outside.c: programs that guise cannot be part of are noted when they are started. */

/* The program in that file is about to be started: notes it if guise cannot be part of it. */
void preload_outside_file(const char *path);
/* The same for a program that is known to be outside, and why. */
void preload_outside(const char *path, uint32_t why);
/* To be called before either of them; and after, when the program was not started after all. */
void preload_outside_first(void);
void preload_outside_not_after_all(void);
/* When this process has joined: reads what the user wants to be told. */
void preload_outside_begin(void);
/* environment.c: the path of this library */
const char *preload_library(void);
/* valgrind.c: whether Valgrind runs this program */
bool preload_on_valgrind(void);
/* tracing.c: the program wants another one to trace it */
void preload_let_go(void);

/* ending.c: before a filter for system calls is installed */
void preload_sandbox(void);

/* table.c: what private descriptors need; 0 or -errno */

/* Memory for the table of a process that has not joined. */
extern const struct guise_fdmap_memory preload_local __attribute__((visibility("hidden")));
/* Makes the table in the region, before the first private descriptor. The process has joined. */
int preload_prepare(void);
/* Room for an entry of the table, and the entry. */
int preload_map_room(int fd);
int preload_map_set(int fd, uint32_t entry, uint32_t inode);

/* placeholder.c: what holds the numbers of private descriptors */

/* Makes a placeholder with the lowest free number: the number, or -errno. */
int preload_reserve(bool cloexec);
/* Keeps the placeholder fd for later use: its private descriptor is being closed, and no other
 * process or descriptor has it. */
void preload_placeholder_keep(int fd);
/* Closes fd if it is a placeholder that is kept. */
void preload_placeholder_drop(int fd);
/* In a forked child: what was kept is the parent's. */
void preload_placeholders_forked(void);
#define PRELOAD_PLACEHOLDERS_KEPT 16
/* The descriptor of the kept placeholder i, or -1. */
int preload_placeholder_kept(unsigned int i);

/* escaped.c: when the process has joined: the host sockets that it has now have not escaped */
void preload_escaped_begin(void);

/* The inode of fd, if it is a socket of the host; 0 else. */
uint32_t preload_inode(int fd);

/* fork.c */

/* What fork needs before and afterwards, in the parent and in the child. */
void preload_fork_prepare(void);
void preload_fork_parent(void);
void preload_fork_child(void);
/* clone(2) or clone3(2) by number, when the child gets memory of its own. */
long preload_raw_fork(long nr, const long arguments[5]);
/* Whether clone3(2) with these arguments makes such a child, by returning twice. */
bool preload_clone3_forks(long arguments, long size);
/* Whether it makes a child in this memory and on this thread's stack, as vfork(2) does. */
bool preload_clone3_vforks(long arguments, long size);
/* When the process has joined: from now on a child that guise did not see begin is noticed. */
void preload_watch_unseen(void);

/* environment.c */

/* Remembers this library's name, and what else of the environment programs must not lose. */
void preload_exec_begin(void);
/* spawn.c: the number at which posix_spawn's children find their place; -1: none. Made when it is
 * first needed. */
int preload_spawn_place(void);
/* passing.c: in the new program. Takes over the private sockets that the one before left to it. */
void preload_inherit(void);

/* identity.c: the users, groups or capabilities of this thread are others, or of all threads. */
void preload_identity_changed(bool all);
/* mapping.c: this process is about to give up the region, and keeps its packet rings. */
void preload_rings_stay(void);
/* Whether it has mapped any. */
bool preload_has_rings(void);

/*
 * rights.c: rights that are given up, and the region with them. The rights are noted before a call
 * that may change them, and compared after it.
 */
void preload_rights_note(void);
void preload_rights_compare(void);
/* The process gives up rights: it is served from now on. */
void preload_give_up(void);
/* It is served, and has the user of its stack now: a member if it has all its rights. */
void preload_rise(void);

/* namespace.c: this process has entered namespaces of these kinds (CLONE_NEW...). */
void preload_entered_namespaces(uint64_t kinds);

/* shell.c: the shell behind a stream of popen() that is being closed, or 0; and its status */
pid_t preload_popened(FILE *stream);
int preload_pclose_wait(pid_t pid);
void preload_shell_forked(void);

/* completion.c: in a forked child there are no requests */
void preload_completion_forked(void);

/* epoll.c: in a forked child no thread waits yet */
void preload_epoll_forked(void);

/* descriptor.c: numbers */

/* Closes what stands behind fd in the stack; its number stays. 0, or close's error. */
long preload_forget(int fd);
/* Notes that the placeholder of the private descriptor fd may be open elsewhere, too, or is not
 * as it was made: it is not used again. */
void preload_mark_shared(int fd);
/* Puts a descriptor of the stack behind a reserved number: the number. On
 * failure both are closed: -errno. */
int preload_install(int fd, int sfd, uint32_t flags);
/* Gives back a number that was reserved. */
void preload_unreserve(int fd);
/* What a call on a descriptor that was the parent's before fork returns: -1 with EBADF. */
int preload_stale(int fd);

/* stdio.c */

/* Makes the streams that may take the place of stdin, stdout and stderr. */
void preload_stdio_begin(void);
/* To be called when the number 0, 1 or 2 becomes private, or is private no longer. */
void preload_stdio_number(int fd, bool private);
/* The flags of open() that fopen() with that mode uses. */
int preload_open_flags(const char *mode);

/* How many of stdin, stdout and stderr are streams over private sockets now. */
extern int preload_following __attribute__((visibility("hidden")));
/* The stream that has taken the place of libc's own stream f; f if there is none. */
FILE *preload_stand_in(FILE *f);

/* rights.c: private sockets in messages of the host's sockets */
void preload_rights_sending(const struct msghdr *m);
void preload_rights_not_sent(const struct msghdr *m);
void preload_rights_received(const struct msghdr *m, int flags);

/* epoll.c: the table's entry of fd, for a call that waits for the descriptor itself or gives it
 * another number. An epoll gets its private half first if it has none. */
uint32_t preload_epoll_whole(int fd);

#define ON_HOST  -1 /* the host's alone */
#define IS_STALE -2 /* the parent's, before fork */

/* The stack's descriptor behind fd, or ON_HOST or IS_STALE. */
static inline int stack_fd(int fd)
{
	uint32_t entry = guise_fdmap_get(preload.map, fd);

	if ((int32_t)entry < 0)
		return (int)(entry & GUISE_FD_STACK);
	return unlikely(entry & GUISE_FD_STALE) ? IS_STALE : ON_HOST;
}

/*
 * The rule of every hook on one descriptor: the host's goes to libc's call of
 * the same name with the same arguments, the parent's from before fork fails
 * with EBADF, the stack's goes on below.
 */
#define HOST_UNLESS_PRIVATE(sfd, fd, name, ...)                                 \
	do {                                                                    \
		if ((sfd) < 0)                                                  \
			return (sfd) == ON_HOST ? HOST(name)(fd, ##__VA_ARGS__) \
						: preload_stale(fd);            \
	} while (0)

/* As libc returns it: -1 and errno. */
static inline long libc_result(long ret)
{
	if (unlikely((unsigned long)ret > -4096UL)) {
		errno = (int)-ret;
		return -1;
	}
	return ret;
}

/* A call on the stack's descriptor sfd that does not wait. */
static inline long inside(long nr, int sfd, long b, long c, long d, long e, long f)
{
	return libc_result(guise_call(preload.stack, nr, sfd, b, c, d, e, f));
}

#endif
