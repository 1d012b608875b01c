// SPDX-License-Identifier: GPL-2.0-only
/*
 * Where the kernel image is, and whose it may be: the image is code that this process will run.
 *
 * It lies beside this library, or beside the program that the library is part of, unless the
 * program (options.image) or its caller ($GUISE_KERNEL) names another one. There may be several
 * there: options.kernel says which. One that is named must
 * be the user's own, root's, or of whoever has guise itself, and no other user may write it.
 * Who may change one beside the library may change the library as well, so its owner is not asked
 * for.
 *
 * To a program that has more rights than its caller (setuid, setgid, capabilities of its file:
 * AT_SECURE) the caller's environment means nothing, as everywhere in guise (secure_getenv(3)).
 * Neither does the name by which it was called. Its own file may be a hard link that the caller
 * made; so whatever image such a program finds must be root's.
 *
 * The owner is asked of what was opened, since a name may lead to another file a moment later.
 */
#include "region/image.h"

#include "host/fd.h"
#include "host/sys.h"
#include "region/confined.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whether this code is part of the program itself, which then is what lies at base. */
static bool is_program(const void *base)
{
	const Elf64_Ehdr *eh = base;

	return (unsigned long)base + eh->e_phoff == getauxval(AT_PHDR);
}

/*
 * The file of this library, or of the program that it is part of. The name of a program is what
 * its caller says, and may be relative to another directory: the host's kernel knows the file.
 * Of a library the loader has the name; realpath() fails on ".." where a sandbox denies what it
 * asks: that name will do.
 */
static bool find_library(char *path, size_t size)
{
	Dl_info info;

	if (!dladdr((void *)&guise_region_map, &info))
		return false;
	if (is_program(info.dli_fbase)) {
		if (realpath("/proc/self/exe", path))
			return true;
		if (getauxval(AT_SECURE))
			return false;
	}
	if (info.dli_fname[0] == '/')
		return snprintf(path, size, "%s", info.dli_fname) < (int)size;
	return realpath(info.dli_fname, path) || realpath("/proc/self/exe", path);
}

/* Asked of what was opened: 0, or -errno with a sentence. */
static int check_owner(int fd, const char *path, const char *library)
{
	const bool secure = getauxval(AT_SECURE);
	struct stat st, guise;

	if (host_sys(SYS_fstat, fd, &st))
		return guise_fail(EIO, "the kernel image at %s cannot be examined", path);
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return guise_fail(
			EPERM,
			"other users may write the kernel image at %s (mode %o), so it is "
			"not used; chmod go-w forbids that",
			path, st.st_mode & 07777);
	if (!st.st_uid ||
	    (!secure && (st.st_uid == geteuid() ||
			 (library && !stat(library, &guise) && st.st_uid == guise.st_uid))))
		return 0;
	return guise_fail(EPERM,
			  "the kernel image at %s belongs to user %u, so it is not used; expected "
			  "one of %s",
			  path, st.st_uid, secure ? "root's" : "yours or root's");
}

int guise_image_find(const struct guise_options *opt, char *path, size_t size, bool *beside)
{
	const char *name = opt->image ? opt->image : secure_getenv("GUISE_KERNEL");
	const char *beside_name = opt->kernel ? opt->kernel : "guise-kernel";
	char library[PATH_MAX];
	bool found;
	int err = 0;
	long fd;

	if (guise_confined.on) {
		*beside = guise_confined.image_beside;
		snprintf(path, size, "%s", guise_confined.image_path);
		return guise_fd_copy(guise_confined.image);
	}
	found = find_library(library, sizeof(library));

	if (!name && strchr(beside_name, '/'))
		return guise_fail(EINVAL,
				  "%s is not the name of an image beside the library; "
				  "expected a name without /, or options.image",
				  beside_name);
	if (name) {
		if (!realpath(name, path))
			snprintf(path, size, "%s", name);
	} else {
		if (!found)
			return guise_fail(ENOENT,
					  "the host does not say where guise lies, and so "
					  "where its kernel image is (/proc is not mounted?)");
		if (snprintf(path, size, "%.*s/%s", (int)(strrchr(library, '/') - library), library,
			     beside_name) >= (int)size)
			return guise_fail(ENAMETOOLONG, "the name of the kernel image is too long");
	}
	fd = host_sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return guise_fail((int)-fd,
				  "no kernel image at %s: %s (set GUISE_KERNEL or options.image)",
				  path, strerror((int)-fd));
	*beside = !name;
	if (name || getauxval(AT_SECURE))
		err = check_owner((int)fd, path, found ? library : NULL);
	if (err) {
		host_sys(SYS_close, fd);
		return err;
	}
	return guise_fd_high((int)fd);
}
