// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sysctls: files below the stack's /proc/sys. For a key that does not exist the error
 * names similar ones, from the deepest folder of its path that exists.
 */
#include "guise/syscall.h"
#include "region/stack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define ROOT  "/proc/sys/"
#define NAMES 3 /* suggestions */
/* asm-generic/fcntl.h, which the port has on every processor; a host's may differ. */
#define STACK_O_DIRECTORY 0200000

/* The kernel's own layout of a directory entry; libc's has another name. */
struct entry {
	uint64_t ino;
	int64_t off;
	uint16_t reclen;
	uint8_t type;
	char name[];
};

/*
 * "net.ipv4.tcp_ecn" or "net/ipv4/tcp_ecn" to a path. As in sysctl(8), whichever of "." and
 * "/" comes first is the separator, and the other one stands for the first one inside a
 * name: net.ipv4.conf.eth0/1.forwarding is about the interface eth0.1.
 */
static int key_path(const char *key, char *path, size_t size)
{
	const char *first = strpbrk(key, "./");
	char swap = first ? *first : '.', *p;

	if (!strncmp(key, ROOT, strlen(ROOT))) {
		key += strlen(ROOT);
		swap = '/';
	}
	if (!*key || *key == '/' || *key == '.' ||
	    (size_t)snprintf(path, size, ROOT "%s", key) >= size)
		return guise_fail(EINVAL,
				  "sysctl \"%s\": expected a key such as "
				  "net.ipv4.tcp_congestion_control",
				  key);
	if (swap == '.')
		for (p = path + strlen(ROOT); *p; p++)
			*p = *p == '.' ? '/' : *p == '/' ? '.' : *p;
	if (strstr(path, "/../") || strstr(path, "//"))
		return guise_fail(EINVAL, "sysctl \"%s\": an empty part in the key", key);
	return 0;
}

/* How many letters must change to make one of the other. */
static unsigned int distance(const char *a, const char *b)
{
	unsigned int row[65], diagonal, up, i, j;
	size_t la = strlen(a), lb = strlen(b);

	if (la >= 64 || lb >= 64)
		return 64;
	for (j = 0; j <= lb; j++)
		row[j] = j;
	for (i = 1; i <= la; i++) {
		diagonal = row[0];
		row[0] = i;
		for (j = 1; j <= lb; j++) {
			up = row[j];
			row[j] = diagonal + (a[i - 1] != b[j - 1]);
			if (row[j] > up + 1)
				row[j] = up + 1;
			if (row[j] > row[j - 1] + 1)
				row[j] = row[j - 1] + 1;
			diagonal = up;
		}
	}
	return row[lb];
}

struct nearest {
	char name[NAMES][64];
	unsigned int score[NAMES];
	int n;
};

static void consider(struct nearest *best, const char *wanted, const char *name)
{
	unsigned int score = distance(wanted, name);
	int at;

	/* A name that begins with the wanted one is nearer than its distance says. */
	if (!strncmp(name, wanted, strlen(wanted)))
		score /= 4;
	if (strlen(name) >= sizeof(best->name[0]))
		return;
	for (at = best->n; at > 0 && best->score[at - 1] > score; at--)
		if (at < NAMES) {
			strcpy(best->name[at], best->name[at - 1]);
			best->score[at] = best->score[at - 1];
		}
	if (at == NAMES)
		return;
	strcpy(best->name[at], name);
	best->score[at] = score;
	if (best->n < NAMES)
		best->n++;
}

static int scan(struct guise_stack *s, int dir, const char *wanted, struct nearest *best)
{
	char buf[2048] __attribute__((aligned(8)));
	const struct entry *e;
	long n, at;

	for (;;) {
		n = guise_call(s, GUISE_NR_getdents64, dir, (long)buf, sizeof(buf), 0, 0, 0);
		if (n <= 0)
			return (int)n;
		for (at = 0; at < n; at += e->reclen) {
			e = (const struct entry *)(buf + at);
			if (e->name[0] != '.')
				consider(best, wanted, e->name);
		}
	}
}

/* The sentence for a key that does not exist; -ENOENT. */
static int no_such_key(struct guise_stack *s, const char *key, char *path)
{
	char *slash, *wanted, *p;
	char list[256] = "";
	struct nearest best = { .n = 0 };
	size_t len = 0;
	int dir = -1;

	/* The deepest folder there is, and the part that is not in it. */
	for (;;) {
		slash = strrchr(path, '/');
		*slash = '\0';
		dir = (int)guise_call(s, GUISE_NR_openat, AT_FDCWD, (long)path,
				      O_RDONLY | STACK_O_DIRECTORY | O_CLOEXEC, 0, 0, 0);
		if (dir >= 0 || strlen(path) < strlen(ROOT))
			break;
	}
	if (dir < 0)
		return guise_fail(ENOENT, "sysctl %s: the stack has no %s", key, ROOT);
	wanted = slash + 1;
	scan(s, dir, wanted, &best);
	guise_call(s, GUISE_NR_close, dir, 0, 0, 0, 0, 0);

	p = strlen(path) < strlen(ROOT) ? path + strlen(path) : path + strlen(ROOT);
	for (char *c = p; *c; c++)
		*c = *c == '/' ? '.' : *c == '.' ? '/' : *c;
	for (int i = 0; i < best.n && len < sizeof(list); i++)
		len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%s%s%s", i ? ", " : "",
					p, *p ? "." : "", best.name[i]);
	return guise_fail(ENOENT, "sysctl %s: the stack has no such key%s%s", key,
			  best.n ? "; the nearest are " : "", list);
}

static int refused(const char *key, int err)
{
	return err == EISDIR ? guise_fail(err, "sysctl %s: is a folder, not a key", key)
			     : guise_fail(err, "sysctl %s: %s", key, strerror(err));
}

static int open_key(struct guise_stack *s, const char *key, int flags)
{
	char path[256];
	int fd, err;

	err = key_path(key, path, sizeof(path));
	if (err)
		return err;
	fd = (int)guise_call(s, GUISE_NR_openat, AT_FDCWD, (long)path, flags | O_CLOEXEC, 0, 0, 0);
	if (fd >= 0)
		return fd;
	if (fd == -ENOENT || fd == -ENOTDIR)
		return no_such_key(s, key, path);
	if (fd == -EACCES)
		return guise_fail(EACCES, "sysctl %s: can only be %s", key,
				  flags == O_RDONLY ? "written" : "read");
	return refused(key, -fd);
}

/* " (it is X)" or, for the congestion control, what would be valid. */
static void explain(struct guise_stack *s, const char *key, char *text, size_t size)
{
	char now[256];
	const char *what = "it is";

	text[0] = '\0';
	if (strstr(key, "congestion_control")) {
		key = "net.ipv4.tcp_available_congestion_control";
		what = "valid are";
	}
	if (guise_sysctl_get(s, key, now, sizeof(now)) >= 0)
		snprintf(text, size, " (%s %s)", what, now);
}

int guise_sysctl_set(struct guise_stack *s, const char *key, const char *value)
{
	char more[320];
	int fd = open_key(s, key, O_WRONLY);
	long ret;

	if (fd < 0)
		return fd;
	ret = guise_call(s, GUISE_NR_write, fd, (long)value, (long)strlen(value), 0, 0, 0);
	guise_call(s, GUISE_NR_close, fd, 0, 0, 0, 0, 0);
	if (ret >= 0)
		return 0;
	explain(s, key, more, sizeof(more));
	return guise_fail((int)-ret, "sysctl %s: the stack does not take \"%s\": %s%s", key, value,
			  strerror((int)-ret), more);
}

int guise_sysctl_get(struct guise_stack *s, const char *key, char *value, size_t size)
{
	int fd = open_key(s, key, O_RDONLY);
	long n;

	if (fd < 0)
		return fd;
	/* A key is read by one call: a second read would begin from the start. */
	n = guise_call(s, GUISE_NR_read, fd, (long)value, (long)size - 1, 0, 0, 0);
	guise_call(s, GUISE_NR_close, fd, 0, 0, 0, 0, 0);
	if (n < 0)
		return refused(key, (int)-n);
	while (n > 0 && value[n - 1] == '\n')
		n--;
	value[n] = '\0';
	return (int)n;
}
