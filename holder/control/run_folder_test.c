// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a holder removes at its end is its own: a folder that another user has put in the place of
 * the runtime folder, or made its own, is left as it is.
 */
#include "holder/control/run_folder.h"

#include "test/tap.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define STRANGER      65534
#define CANNOT_RUN    77
#define SOCKET        "7.sock"
#define NAME          "web.stack"
#define MADE_BY_GUISE 01700

static char top[] = "/tmp/guise-folder-XXXXXX";

/* A path in a folder of the test's. */
static const char *at(const char *folder, const char *name)
{
	static char path[8][PATH_MAX];
	static int next;

	next = (next + 1) % 8;
	snprintf(path[next], sizeof(path[next]), "%s/%s/%s", top, folder, name);
	return path[next];
}

static void make(const char *folder)
{
	int fd;

	if (mkdir(at(folder, ""), 0700) || chmod(at(folder, ""), MADE_BY_GUISE) ||
	    symlink(SOCKET, at(folder, NAME)))
		exit(1);
	fd = open(at(folder, SOCKET), O_CREAT | O_WRONLY, 0600);
	if (fd < 0)
		exit(1);
	close(fd);
}

static bool is_whole(const char *folder)
{
	struct stat st;

	return !lstat(at(folder, SOCKET), &st) && !lstat(at(folder, NAME), &st);
}

static void clear(const char *folder)
{
	unlink(at(folder, SOCKET));
	unlink(at(folder, NAME));
	rmdir(at(folder, ""));
}

static void free_run(void)
{
	run_folder_free(at("run", SOCKET), at("run", NAME));
}

int main(void)
{
	if (geteuid()) {
		printf("# giving a folder to another user takes root\n");
		return CANNOT_RUN;
	}
	if (!mkdtemp(top))
		return 1;

	make("run");
	free_run();
	tap(access(at("run", ""), F_OK), "what is the holder's own is removed, and the folder");

	make("run");
	unlink(at("run", NAME));
	if (symlink("8.sock", at("run", NAME)))
		return 1;
	free_run();
	tap(access(at("run", SOCKET), F_OK), "the socket is removed");
	tap(!unlink(at("run", NAME)), "a name that another stack has by now is left");
	clear("run");

	make("run");
	if (chown(at("run", ""), STRANGER, STRANGER))
		return 1;
	free_run();
	tap(is_whole("run"), "a folder of another user is left as it is");
	clear("run");

	make("other");
	if (symlink("other", at(".", "run")))
		return 1;
	free_run();
	tap(is_whole("other"), "a link to another folder is not followed");
	unlink(at(".", "run"));
	clear("other");

	rmdir(top);
	return tap_end();
}
