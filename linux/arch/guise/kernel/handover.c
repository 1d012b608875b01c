// SPDX-License-Identifier: GPL-2.0-only
/*
 * Files on their way from one process to another.
 *
 * A program sends a private socket over an AF_UNIX socket of the host; what
 * travels there is a descriptor that only marks it. The sender gives the file
 * to the port under the mark's number; whoever receives the mark takes it.
 * Nobody tells the port of a message that is thrown away unread, so a file that
 * nobody takes is dropped when its place is needed, oldest first.
 *
 * A socket has the inode number of the descriptor that stands for it on the host, so
 * that what lists sockets here (ss, /proc/net/tcp) names what /proc/PID/fd names
 * there.
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

/* A descriptor of the file that was given first; keep: it may be taken again. */
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

/* Inodes of sockets are in no table: a number is for those who look. */
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
