// SPDX-License-Identifier: GPL-2.0-only
/*
 * Programs whose file gives them capabilities of the network and no other, as ping's does. The
 * loader of such a program reads no LD_PRELOAD, unless root starts it, so it would be on the
 * host's stack; and on its own stack it needs none of them, for there everybody has them. So
 * the loader is executed as the program, with the file for an argument: it has no capabilities
 * itself, and loads what it is told. The program finds the file's path in argv[0], and the
 * host has the loader's name for its process.
 *
 * `guise run` does the same for what it is given (cmd/guise/program.go, whose test compares the
 * two lists).
 */
#include "preload/preload.h"

#include "host/probe.h"
#include "host/sys.h"
#include "region/stack.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOR_NETWORK                                                             \
	(1u << CAP_NET_RAW | 1u << CAP_NET_ADMIN | 1u << CAP_NET_BIND_SERVICE | \
	 1u << CAP_NET_BROADCAST)

/* What the kernel keeps with the file: VFS_CAP_REVISION_2 and _3 begin in the same way. */
static bool gains_network_alone(const char *path)
{
	char bytes[64];
	struct vfs_cap_data caps;
	long n = host_sys(SYS_getxattr, path, "security.capability", bytes, sizeof(bytes));

	if (n < (long)sizeof(caps))
		return false;
	memcpy(&caps, bytes, sizeof(caps));
	return !(caps.data[0].permitted & ~FOR_NETWORK) && !caps.data[1].permitted;
}

/* The loader that the file names for itself. */
static bool read_loader(const char *path, char loader[PATH_MAX])
{
	char head[PRELOAD_HEAD];
	size_t end = preload_read_head(path, head);
	ElfW(Ehdr) e;
	ElfW(Phdr) p;

	if (end < sizeof(e) || memcmp(head, ELFMAG, SELFMAG))
		return false;
	memcpy(&e, head, sizeof(e));
	for (unsigned int i = 0; i < e.e_phnum; i++) {
		size_t at = e.e_phoff + i * sizeof(p);

		if (at > end || end - at < sizeof(p))
			return false;
		memcpy(&p, head + at, sizeof(p));
		if (p.p_type != PT_INTERP)
			continue;
		if (p.p_offset > end || end - p.p_offset < p.p_filesz || !p.p_filesz)
			return false;
		memcpy(loader, head + p.p_offset, p.p_filesz);
		loader[p.p_filesz - 1] = '\0';
		return true;
	}
	return false;
}

bool preload_loads_without_capabilities(const char *path, char loader[PATH_MAX])
{
	struct stat st;

	/* In a sandbox the look at a file may be what ends the program. */
	if (!host_sys(SYS_geteuid) || preload.sandboxed ||
	    host_sys(SYS_prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
		return false;
	return !guise_readable(path, 1) && strchr(path, '/') &&
	       !host_sys(SYS_newfstatat, AT_FDCWD, path, &st, 0) && S_ISREG(st.st_mode) &&
	       !(st.st_mode & (S_ISUID | S_ISGID)) && gains_network_alone(path) &&
	       !host_sys(SYS_faccessat, AT_FDCWD, path, X_OK) && read_loader(path, loader);
}
