// SPDX-License-Identifier: GPL-2.0-only
/* Opening /etc/resolv.conf, which is not the host's own file when that would not work. */
#include "case.h"

int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dir, const char *path, int flags);
int __openat64_2(int dir, const char *path, int flags);

#define PATH "/etc/resolv.conf"

/* What a descriptor for reading has, and that the number is the lowest. */
static void look(const char *what, int fd, int lowest)
{
	char text[4096] = "", *line, *rest = text;

	MUST(fd >= 0);
	printf("%s\n", what);
	SHOW(fd == lowest);
	SHOW(fcntl(fd, F_GETFD));
	SHOW(fcntl(fd, F_GETFL) & O_ACCMODE);
	MUST(read(fd, text, sizeof(text) - 1) > 0);
	while ((line = strsep(&rest, "\n")))
		if (*line && *line != '#')
			puts(line);
	SHOW(write(fd, "x", 1));
	SHOW(lseek(fd, 0, SEEK_SET));
	close(fd);
}

static int lowest_fd(void)
{
	int fd = dup(0);

	close(fd);
	return fd;
}

CASE(resolv_conf_forms)
{
	int lowest = lowest_fd();
	FILE *f;

	look("open", open(PATH, O_RDONLY), lowest);
	look("open64", open64(PATH, O_RDONLY | O_CLOEXEC), lowest);
	look("openat", openat(AT_FDCWD, PATH, O_RDONLY), lowest);
	look("openat64", openat64(7, PATH, O_RDONLY | O_CLOEXEC), lowest);
	look("__open_2", __open_2(PATH, O_RDONLY), lowest);
	look("__open64_2", __open64_2(PATH, O_RDONLY), lowest);
	look("__openat_2", __openat_2(AT_FDCWD, PATH, O_RDONLY), lowest);
	look("__openat64_2", __openat64_2(AT_FDCWD, PATH, O_RDONLY), lowest);
	f = fopen(PATH, "r");
	MUST(f);
	look("fopen", fileno(f), lowest);
	fclose(f);
	f = fopen64(PATH, "re");
	MUST(f);
	look("fopen64", fileno(f), lowest);
	fclose(f);
}

/* Everything else is the host's. */
CASE(other_files)
{
	char text[8] = "";
	int fd = open("/dev/null", O_RDWR);

	SHOW(fd >= 0);
	SHOW(write(fd, "x", 1));
	SHOW(open("/etc/resolv.conf/nothing", O_RDONLY));
	SHOW(open(PATH, O_RDONLY | O_DIRECTORY));
	SHOW(open(NULL, O_RDONLY));
	SHOW(open((void *)8, O_RDONLY));
	SHOW(fopen("/nothing", "r") == NULL);
	fd = openat(AT_FDCWD, "/proc/self/comm", O_RDONLY);
	SHOW(read(fd, text, 5));
	puts(text);
}
