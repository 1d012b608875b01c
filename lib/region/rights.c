// SPDX-License-Identifier: GPL-2.0-only
/* See rights.h. */
#include "region/rights.h"

#include "host/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define STATUS_BYTES (2 * GUISE_RIGHTS_BYTES)
#define MAP_BYTES    512

/* Lines of status that are compared; those of users and groups only where they bind. */
static const struct {
	const char *name;
	bool binds;  /* not who may take each user and group */
	bool always; /* each kernel that guise runs on has it */
} compared[] = {
	{ "Uid:", true, true },       { "Gid:", true, true },
	{ "Groups:", true, true },    { "CapInh:", false, true },
	{ "CapPrm:", false, true },   { "CapBnd:", false, true },
	{ "CapAmb:", false, true },   { "NoNewPrivs:", false, false },
	{ "Seccomp:", false, false }, { "Seccomp_filters:", false, false },
};

static const char *find_line(const char *status, const char *name)
{
	size_t length = strlen(name);

	for (const char *at = status; at; at = strchr(at, '\n')) {
		at += *at == '\n';
		if (!strncmp(at, name, length))
			return at;
	}
	return NULL;
}

static bool read_four(const char *status, const char *name, uint32_t number[4])
{
	const char *at = find_line(status, name);

	return at && sscanf(at + strlen(name), "%u %u %u %u", &number[0], &number[1], &number[2],
			    &number[3]) == 4;
}

static uint64_t read_set(const char *status, const char *name)
{
	const char *at = find_line(status, name);

	return at ? strtoull(at + strlen(name), NULL, 16) : 0;
}

bool guise_rights_parse(struct guise_rights *rights, const char *status)
{
	const uint64_t takes = 1ull << CAP_SETUID | 1ull << CAP_SETGID;
	rights->length = 0;
	rights->has_users = read_four(status, "Uid:", rights->user) &&
			    read_four(status, "Gid:", rights->group);
	rights->effective = read_set(status, "CapEff:");
	rights->takes_users = (read_set(status, "CapPrm:") & takes) == takes;
	for (size_t i = 0; i < sizeof(compared) / sizeof(compared[0]); i++) {
		const char *line = find_line(status, compared[i].name);
		size_t length = line ? strcspn(line, "\n") + 1 : 0;

		if ((!line && compared[i].always) ||
		    length > sizeof(rights->lines) - rights->length) {
			rights->length = 0;
			return false;
		}
		if (!line || (rights->takes_users && compared[i].binds))
			continue;
		memcpy(rights->lines + rights->length, line, length - 1);
		rights->length += length;
		rights->lines[rights->length - 1] = '\n';
	}
	return true;
}

/* The number of bytes, terminated; or -errno. */
static long read_file(const char *path, char *text, size_t room)
{
	long fd = host_sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC), n;
	size_t have = 0;

	if (fd < 0)
		return fd;
	while ((n = host_sys(SYS_read, fd, text + have, room - 1 - have)) > 0)
		have += (size_t)n;
	host_sys(SYS_close, fd);
	text[have] = '\0';
	return n < 0 ? n : (long)have;
}

bool guise_rights_read(pid_t pid, struct guise_rights *rights)
{
	char path[64], of[16] = "self", status[STATUS_BYTES];
	struct stat st;
	bool parsed;
	long n;

	memset(rights, 0, sizeof(*rights));
	if (pid)
		snprintf(of, sizeof(of), "%d", (int)pid);
	/* Without a security module it is empty, or not to be read. */
	snprintf(path, sizeof(path), "/proc/%s/attr/current", of);
	if (read_file(path, rights->label, sizeof(rights->label)) < 0)
		rights->label[0] = '\0';
	snprintf(path, sizeof(path), "/proc/%s/status", of);
	n = read_file(path, status, sizeof(status));
	parsed = n > 0 && guise_rights_parse(rights, status);
	if (n >= STATUS_BYTES - 1) /* it may be longer */
		parsed = false;
	snprintf(path, sizeof(path), "/proc/%s/ns/user", of);
	n = host_sys(SYS_newfstatat, AT_FDCWD, path, &st, 0);
	rights->namespace = n ? 0 : st.st_ino;
	if (parsed && (!n || n == -ENOENT)) /* a kernel without user namespaces has none */
		return true;
	rights->length = 0;
	return false;
}

/* They are few; and qsort(3) may allocate. */
static void sort(gid_t *group, unsigned int n)
{
	for (unsigned int i = 1; i < n; i++)
		for (unsigned int k = i; k && group[k - 1] > group[k]; k--) {
			gid_t larger = group[k - 1];

			group[k - 1] = group[k];
			group[k] = larger;
		}
}

/* The first line of a name counts: so those that change stand before the process's own. */
bool guise_rights_as(struct guise_rights *rights, uid_t uid, gid_t gid, const gid_t *group,
		     unsigned int groups)
{
	char text[2 * STATUS_BYTES];
	gid_t sorted[groups + 1];
	int n;

	if (!guise_rights_read(0, rights))
		return false;
	memcpy(sorted, group, groups * sizeof(*group));
	sort(sorted, groups);
	n = snprintf(text, STATUS_BYTES,
		     "Uid:\t%u\t%u\t%u\t%u\nGid:\t%u\t%u\t%u\t%u\nCapPrm:\t%016x\n"
		     "CapEff:\t%016x\nCapAmb:\t%016x\nGroups:\t",
		     uid, uid, uid, uid, gid, gid, gid, gid, 0, 0, 0);
	for (unsigned int i = 0; i < groups && n < STATUS_BYTES - 32; i++)
		n += snprintf(text + n, 32, "%s%u", i ? " " : "", sorted[i]);
	n += snprintf(text + n, 32, " \n");
	return read_file("/proc/self/status", text + n, sizeof(text) - (size_t)n) > 0 &&
	       guise_rights_parse(rights, text);
}

/* The numbers of users of a namespace, and where they lead: a text that nobody hides. */
static bool read_map(const char *of, char text[MAP_BYTES])
{
	char path[48];

	snprintf(path, sizeof(path), "/proc/%s/uid_map", of);
	return read_file(path, text, MAP_BYTES) > 0;
}

/* Which one it is may be hidden, as that of a process with more rights than this one. */
bool guise_rights_here(pid_t pid, const struct guise_rights *rights)
{
	char own[MAP_BYTES], others[MAP_BYTES], of[16];
	struct stat st;

	if (host_sys(SYS_newfstatat, AT_FDCWD, "/proc/self/ns/user", &st, 0))
		return true; /* there are none */
	if (rights->namespace)
		return rights->namespace == st.st_ino;
	snprintf(of, sizeof(of), "%d", (int)pid);
	return read_map("self", own) && read_map(of, others) && !strcmp(own, others);
}

bool guise_rights_same(const struct guise_rights *a, const struct guise_rights *b)
{
	return a->length && a->length == b->length && !memcmp(a->lines, b->lines, a->length) &&
	       a->namespace == b->namespace && a->takes_users == b->takes_users &&
	       !strcmp(a->label, b->label);
}
