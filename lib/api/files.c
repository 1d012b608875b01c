// SPDX-License-Identifier: GPL-2.0-only
/* Descriptors and files of a stack: read, write, close, and a whole file at once. */
#include "api/error.h"
#include "guise/guise.h"
#include "guise/syscall.h"
#include "region/stack.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

int guise_close(struct guise_stack *s, int fd)
{
	return (int)guise_result("close", guise_call(s, GUISE_NR_close, fd, 0, 0, 0, 0, 0));
}

ssize_t guise_read(struct guise_stack *s, int fd, void *buf, size_t len)
{
	return guise_result("read",
			    guise_call(s, GUISE_NR_read, fd, (long)buf, (long)len, 0, 0, 0));
}

ssize_t guise_write(struct guise_stack *s, int fd, const void *buf, size_t len)
{
	return guise_result("write",
			    guise_call(s, GUISE_NR_write, fd, (long)buf, (long)len, 0, 0, 0));
}

ssize_t guise_read_file(struct guise_stack *s, const char *path, char *buf, size_t size)
{
	size_t have = 0;
	ssize_t n = 0;
	int fd;

	if (!size)
		return guise_fail(EINVAL, "read %s: no room for the terminating zero", path);
	fd = (int)guise_call(s, GUISE_NR_openat, AT_FDCWD, (long)path, O_RDONLY, 0, 0, 0);
	if (fd < 0)
		return guise_fail(-fd, "open %s in the stack: %s", path, strerror(-fd));
	/* A file of /proc hands out a part at a time; only a 0 is its end. */
	while (have < size) {
		n = guise_read(s, fd, buf + have, size - have);
		if (n <= 0)
			break;
		have += (size_t)n;
	}
	guise_call(s, GUISE_NR_close, fd, 0, 0, 0, 0, 0);
	if (n < 0)
		return guise_fail((int)-n, "read %s in the stack: %s", path, strerror((int)-n));
	if (have == size)
		return guise_fail(EOVERFLOW,
				  "read %s in the stack: longer than the buffer's %zu "
				  "bytes",
				  path, size - 1);
	buf[have] = '\0';
	return (ssize_t)have;
}
