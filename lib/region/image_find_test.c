// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whose kernel image is used: one of another user is not, whoever names it. To a program with more
 * rights than its caller neither the environment nor the name by which it was called says anything:
 * a copy of this program is made setuid, and called by a user who tries.
 */
#include "region/image.h"

#include "test/kernel.h"
#include "test/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#define STRANGER 65534
#define ASK      "ask" /* this program's argument: say what is found */

static char folder[] = "/tmp/guise-find-XXXXXX";

static const char *in_folder(const char *name)
{
	static char path[16][128];
	static int next;

	next = (next + 1) % 16;
	snprintf(path[next], sizeof(path[next]), "%s/%s", folder, name);
	return path[next];
}

/* What is found, or why nothing is. */
static int tell(void)
{
	struct guise_options opt = GUISE_OPTIONS_INIT;
	char path[PATH_MAX];
	bool beside;
	int fd = guise_image_find(&opt, path, sizeof(path), &beside);

	printf("%s", fd < 0 ? guise_error() : path);
	return 0;
}

static void write_file(const char *path, uid_t owner, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	if (fd < 0 || write(fd, "image", 5) != 5 || fchown(fd, owner, owner) || fchmod(fd, mode))
		exit(1);
	close(fd);
}

static void copy_self(const char *path)
{
	int from = open("/proc/self/exe", O_RDONLY), to = open(path, O_WRONLY | O_CREAT, 0700);
	char buffer[1 << 16];
	ssize_t n;

	while ((n = read(from, buffer, sizeof(buffer))) > 0)
		if (write(to, buffer, (size_t)n) != n)
			exit(1);
	close(from);
	if (to < 0 || n || fchmod(to, 04755) || close(to))
		exit(1);
}

/* What that program says, called by a stranger under that name with that variable. */
static const char *asked(const char *program, const char *name, const char *kernel)
{
	static char said[1024];
	char variable[PATH_MAX], *argv[] = { (char *)name, (char *)ASK, NULL };
	/* The sanitizer of leaks cannot do its work in a setuid program. */
	char *env[] = { (char *)"ASAN_OPTIONS=detect_leaks=0", kernel ? variable : NULL, NULL };
	int end[2], how;
	ssize_t n;
	pid_t pid;

	if (kernel)
		snprintf(variable, sizeof(variable), "GUISE_KERNEL=%s", kernel);
	if (pipe(end))
		exit(1);
	pid = fork();
	if (!pid) {
		dup2(end[1], 1);
		if (setgroups(0, NULL) || setgid(STRANGER) || setuid(STRANGER))
			_exit(1);
		execve(program, argv, env);
		_exit(1);
	}
	close(end[1]);
	for (size_t at = 0; (n = read(end[0], said + at, sizeof(said) - 1 - at)) > 0;)
		said[at += (size_t)n] = '\0';
	close(end[0]);
	waitpid(pid, &how, 0);
	return said;
}

static void check_named(void)
{
	struct guise_options opt = GUISE_OPTIONS_INIT;
	const char *mine = in_folder("mine"), *theirs = in_folder("theirs");
	char path[PATH_MAX];
	bool beside;
	int fd;

	write_file(mine, geteuid(), 0600);
	write_file(theirs, STRANGER, 0644);
	opt.image = mine;
	fd = guise_image_find(&opt, path, sizeof(path), &beside);
	tap(fd >= 0 && !beside && !strcmp(path, mine), "one of the user's own");
	close(fd);
	opt.image = theirs;
	tap_fails(guise_image_find(&opt, path, sizeof(path), &beside), EPERM,
		  "belongs to user 65534");
	setenv("GUISE_KERNEL", theirs, 1);
	opt.image = NULL;
	tap_fails(guise_image_find(&opt, path, sizeof(path), &beside), EPERM,
		  "belongs to user 65534");
	unsetenv("GUISE_KERNEL");
	opt.image = mine;
	for (int bit = 020; bit; bit = bit == 020 ? 02 : 0) {
		chmod(mine, (mode_t)(0600 | bit));
		tap_fails(guise_image_find(&opt, path, sizeof(path), &beside), EPERM,
			  "other users may write");
	}
}

/* One of several beside this program; never one elsewhere, whoever asks. */
static void check_beside(void)
{
	struct guise_options opt = GUISE_OPTIONS_INIT;
	char path[PATH_MAX];
	bool beside;

	opt.kernel = "guise-kernel-that-is-not-there";
	tap_fails(guise_image_find(&opt, path, sizeof(path), &beside), ENOENT,
		  "/guise-kernel-that-is-not-there: No such file");
	opt.kernel = "../guise-kernel";
	tap_fails(guise_image_find(&opt, path, sizeof(path), &beside), EINVAL, "a name without /");
}

static void check_privileged(void)
{
	const char *program = in_folder("program"), *theirs = in_folder("theirs");
	const char *beside = in_folder("guise-kernel"), *said;
	char elsewhere[128], name[160], fake[160];

	copy_self(program);
	chmod(folder, 0755);
	said = asked(program, program, theirs);
	tap(strstr(said, beside) && !strstr(said, theirs), "the environment says nothing: %s",
	    said);

	/* A folder of the caller's, with an image of the caller's. */
	snprintf(elsewhere, sizeof(elsewhere), "%s/elsewhere", folder);
	snprintf(name, sizeof(name), "%s/program", elsewhere);
	snprintf(fake, sizeof(fake), "%s/guise-kernel", elsewhere);
	if (mkdir(elsewhere, 0755))
		exit(1);
	write_file(name, STRANGER, 0755);
	write_file(fake, STRANGER, 0644);
	said = asked(program, name, NULL);
	tap(strstr(said, beside) && !strstr(said, elsewhere),
	    "the name it is called by neither: %s", said);

	write_file(beside, STRANGER, 0644);
	said = asked(program, program, NULL);
	tap(strstr(said, "belongs to user 65534") && strstr(said, "root's"),
	    "nor is the one beside it used: %s", said);
	write_file(beside, 0, 0644);
	said = asked(program, program, theirs);
	tap(!strcmp(said, beside), "root's is: %s", said);

	unlink(fake);
	unlink(name);
	rmdir(elsewhere);
}

int main(int argc, char **argv)
{
	struct statvfs fs;

	if (argc == 2 && !strcmp(argv[1], ASK))
		return tell();
	if (geteuid()) {
		printf("# giving files to another user takes root\n");
		return TEST_CANNOT_RUN;
	}
	unsetenv("GUISE_KERNEL");
	if (!mkdtemp(folder))
		return 1;
	check_named();
	check_beside();
	if (!statvfs(folder, &fs) && !(fs.f_flag & ST_NOSUID))
		check_privileged();
	for (int i = 0; i < 4; i++)
		unlink(in_folder(
			(const char *[]){ "mine", "theirs", "program", "guise-kernel" }[i]));
	rmdir(folder);
	return tap_end();
}
