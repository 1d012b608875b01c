// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the processes that map a region give up: the carrier and the servants.
 *
 * They handle what comes from a network, and carry a kernel whose memory the stack's programs can
 * write. Whoever makes one of them run its own code should have what the stack's user has already,
 * and less. In order:
 *
 *	1 begin		done by the warden (warden/warden.c) when it forks: of its descriptors
 *			there are those of the plan, and two channels to the warden
 *	2 namespaces	of mounts, IPC and the host's name. Root makes them as they are; another
 *			user needs a user namespace for that, in which only this user exists. So
 *			it may trace none of the user's processes outside, either. The network
 *			namespace stays: relays connect to the host. So does that of pids: the
 *			host's kernel would not say any more which process sent a message
 *	3 root		an empty folder that nobody can write, in place of the host's files
 *	4 user		the stack's: its groups, then its ids, in all their forms
 *	5 capabilities	all are dropped from all sets, the bounding set too; and root's ids mean
 *			nothing (securebits)
 *	6 privileges	no program that is executed gives new ones (no_new_privs). Processes that
 *			have no more rights than this one by now may not look into it (it is not
 *			dumpable). The carrier dies with its warden
 *	7 calls		when the stack is built: a filter (seccomp) of the system calls that are
 *			needed from then on. Others fail with EPERM. None opens a file, makes
 *			memory executable, executes a program, or touches another process
 *
 * On a host that does not allow 2, 3 or 7 the rest is done, and what is left is reported
 * (enum isolation_left). 4 to 6 must succeed.
 *
 * Limits: the network namespace is the host's. A filter sees numbers, not what pointers lead to.
 */
#include "holder/isolation.h"

#include "host/sys.h"
#include "region/stack.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <pwd.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <unistd.h>

void isolation_self(struct isolation_user *u)
{
	gid_t group[ISOLATION_GROUPS];
	int n = getgroups(ISOLATION_GROUPS, group);

	u->uid = geteuid();
	u->gid = getegid();
	u->groups = n > 0 ? (unsigned int)n : 0;
	memcpy(u->group, group, u->groups * sizeof(*group));
}

/* By its name, or else by its number; NULL: there is none. */
static const struct passwd *find_user(const char *name)
{
	const struct passwd *pw = getpwnam(name);
	unsigned long number;
	char *end;

	if (pw || *name < '0' || *name > '9')
		return pw;
	number = strtoul(name, &end, 10);
	return *end || number >= UINT32_MAX ? NULL : getpwuid((uid_t)number);
}

int isolation_named(struct isolation_user *u, const char *name)
{
	int groups = ISOLATION_GROUPS;
	const struct passwd *pw = find_user(name);

	if (!pw)
		return guise_fail(ENOENT, "user: this host has no user \"%s\"", name);
	if (geteuid()) {
		isolation_self(u);
		if (pw->pw_uid == u->uid)
			return 0;
		return guise_fail(EPERM,
				  "user: only root may start a stack that belongs to another user "
				  "(%s); run guise as %s%s",
				  name, name, pw->pw_uid ? ", or as root" : "");
	}
	u->uid = pw->pw_uid;
	u->gid = pw->pw_gid;
	if (getgrouplist(pw->pw_name, pw->pw_gid, u->group, &groups) < 0)
		return guise_fail(E2BIG, "user: %s is in more than %d groups", name,
				  ISOLATION_GROUPS);
	u->groups = (unsigned int)groups;
	return 0;
}

void isolation_write(const struct isolation_user *u, char *text, size_t size)
{
	size_t n = (size_t)snprintf(text, size, "%u:%u", u->uid, u->gid);

	for (unsigned int i = 0; i < u->groups && n < size; i++)
		n += (size_t)snprintf(text + n, size - n, "%c%u", i ? ',' : ':', u->group[i]);
}

bool isolation_read(struct isolation_user *u, const char *text)
{
	unsigned int group;
	int n = 0, more;

	memset(u, 0, sizeof(*u));
	if (sscanf(text, "%u:%u%n", &u->uid, &u->gid, &n) != 2)
		return false;
	for (; u->groups < ISOLATION_GROUPS; n += more)
		if (sscanf(text + n, "%*1[:,]%u%n", &group, &more) == 1)
			u->group[u->groups++] = group;
		else
			break;
	return !text[n];
}

/* ---- 2 and 3: namespaces, and the root ------------------------------------------------ */

static bool write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : write(fd, text, strlen(text));

	if (fd >= 0)
		close(fd);
	return n == (ssize_t)strlen(text);
}

/* In a new user namespace: the one user that there is keeps its numbers. */
static void map_ids(uid_t uid, gid_t gid)
{
	char map[64];

	write_file("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "%u %u 1\n", gid, gid);
	write_file("/proc/self/gid_map", map);
	snprintf(map, sizeof(map), "%u %u 1\n", uid, uid);
	write_file("/proc/self/uid_map", map);
}

/* maps: a namespace of one user will do: this process does not become another one. Root, who is
 * nobody in such a namespace without CAP_SETFCAP, does not make one. */
static bool leave_namespaces(bool maps)
{
	const int spaces = CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS;
	const uid_t uid = geteuid();
	const gid_t gid = getegid();

	if (!unshare(spaces))
		return true;
	if (!maps || unshare(spaces | CLONE_NEWUSER))
		return false;
	map_ids(uid, gid);
	return true;
}

/* Any folder will do: it is covered. */
static bool leave_root(void)
{
	static const char *const places[] = { "/tmp", "/run", "/dev", "/proc" };
	const unsigned long flags = MS_NODEV | MS_NOEXEC | MS_NOSUID | MS_RDONLY;

	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return false;
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		if (mount("guise", places[i], "tmpfs", flags, "nr_inodes=2,size=4k,mode=555"))
			continue;
		if (chdir(places[i]))
			return false;
		/* The old root comes to lie above the new one, and is taken away there. The first
		 * root of a machine stays; without capabilities nobody goes back to it. */
		if (!host_sys(SYS_pivot_root, ".", "."))
			return !umount2(".", MNT_DETACH) && !chdir("/");
		return !chroot(".");
	}
	return false;
}

/* ---- 4 to 6: the user, and its rights --------------------------------------------------- */

static int become(const struct isolation_user *u)
{
	if (geteuid() == u->uid && getuid() == u->uid && getegid() == u->gid && getgid() == u->gid)
		return 0; /* with the groups of whoever has started it */
	if (setgroups(u->groups, u->group) || setresgid(u->gid, u->gid, u->gid) ||
	    setresuid(u->uid, u->uid, u->uid))
		return guise_fail(errno, "cannot become user %u: %s", u->uid, strerror(errno));
	return 0;
}

/* The bounding set and the bits take CAP_SETPCAP, and so come before the user. */
static void drop_for_programs(void)
{
	for (unsigned long c = 0; !prctl(PR_CAPBSET_DROP, c, 0, 0, 0); c++)
		;
	prctl(PR_SET_SECUREBITS,
	      SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
		      SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED,
	      0, 0, 0);
}

static int drop_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { 0 };

	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (host_sys(SYS_capset, &header, none))
		return guise_fail(EPERM, "the host's kernel does not let capabilities be dropped");
	return 0;
}

static int no_new_privileges(void)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return guise_fail(errno, "no_new_privs: %s", strerror(errno));
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	return 0;
}

int isolation_begin(const struct isolation_user *u, unsigned int *left)
{
	int err;

	*left = 0;
	if (!leave_namespaces(geteuid() && geteuid() == u->uid))
		*left |= ISOLATION_NAMESPACES | ISOLATION_ROOT;
	else if (!leave_root())
		*left |= ISOLATION_ROOT;
	drop_for_programs();
	err = become(u);
	if (!err)
		err = drop_capabilities();
	return err ? err : no_new_privileges();
}

/* ---- what is left ------------------------------------------------------------------------- */

void isolation_write_left(unsigned int left, FILE *out)
{
	static const char *const words[] = { "namespaces", "files", "calls" };
	const char *separator = "";

	fputs("\"unconfined\":[", out);
	for (unsigned int i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (left >> i & 1) {
			fprintf(out, "%s\"%s\"", separator, words[i]);
			separator = ",";
		}
	putc(']', out);
}

bool isolation_wanted(int argc, char **argv)
{
	return argc == 2 && !strcmp(argv[1], "--isolation");
}

int isolation_try(void)
{
	struct isolation_user self;
	unsigned int left;

	isolation_self(&self);
	if (isolation_begin(&self, &left)) {
		fprintf(stderr, "%s\n", guise_error());
		return 1;
	}
	isolation_seal(false, &left);
	putchar('{');
	isolation_write_left(left, stdout);
	puts("}");
	return 0;
}
