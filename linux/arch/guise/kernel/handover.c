// SPDX-License-Identifier: GPL-2.0-only
/*
 * Files on their way from one process to another.
 *
 * When a program sends a private socket over an AF_UNIX socket of the host, the host
 * passes on its placeholder only. The sender also gives the file to the port, under a
 * number, the mark. The process that receives the placeholder takes the file by that
 * number.
 *
 * The port does not learn of a message that is discarded unread. So a file that no
 * process takes is dropped, oldest first, when its entry is needed for another one.
 *
 * A socket of the stack has the inode number of its placeholder on the host. So lists of
 * the stack's sockets (ss, /proc/net/tcp) have the numbers that /proc/PID/fd has on the
 * host.
 */
#include <linux/fdtable.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/net.h>
#include <net/sock.h>

#include <asm/guise.h>

#define PLACES 1024

static struct {
	struct file *file;
	u64 mark;
} handed[PLACES];
static unsigned int next_place;

long guise_give(u64 fd, u64 mark)
{
	struct file *file = fget(fd), *old;

	if (!file)
		return -EBADF;
	old = handed[next_place].file;
	handed[next_place].file = file;
	handed[next_place].mark = mark;
	next_place = (next_place + 1) % PLACES;
	if (old)
		fput(old);
	return 0;
}

/* A new descriptor of the file that was given under this mark: the oldest if there are
 * several. keep: the file may be taken again. */
long guise_take(u64 mark, u64 keep)
{
	unsigned int i, place;
	struct file *file;
	int fd;

	for (i = 0; i < PLACES; i++) {
		place = (next_place + i) % PLACES;
		if (handed[place].file && handed[place].mark == mark)
			break;
	}
	if (i == PLACES)
		return -ENOENT;
	fd = get_unused_fd_flags(0);
	if (fd < 0)
		return fd;
	file = handed[place].file;
	if (keep)
		get_file(file);
	else
		handed[place].file = NULL;
	fd_install(fd, file);
	return fd;
}

/* No table has the inodes of sockets, so that the number may change: it is only shown. */
long guise_set_inode(u64 fd, u64 number)
{
	struct file *file = fget(fd);
	struct socket *sock;

	if (!file)
		return -EBADF;
	sock = sock_from_file(file);
	if (sock)
		SOCK_INODE(sock)->i_ino = number;
	fput(file);
	return sock ? 0 : -ENOTSOCK;
}
