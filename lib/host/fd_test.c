// SPDX-License-Identifier: GPL-2.0-only
/* Descriptors that come from elsewhere are moved out of the program's way; shared memory. */
#include "host/fd.h"

#include "test/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOW 512 /* all of guise's own are above */

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static void all_are_moved(void)
{
	int null = open("/dev/null", O_RDWR), fd[6] = { 20, 21, 22, 30, 0, 900000 }, bad = 0;
	bool high = true, kept = false;

	for (int i = 0; i < 5; i++)
		if (dup2(null, fd[i]) != fd[i])
			bad++;
	dup2(null, 23);
	guise_fd_all_high(fd, 6);
	for (int i = 0; i < 5; i++)
		high &= fd[i] >= LOW && fcntl(fd[i], F_GETFD) == FD_CLOEXEC;
	tap(!bad && high, "all are high, and close-on-exec");
	tap(!is_open(20) && !is_open(21) && !is_open(22) && !is_open(30) && !is_open(0),
	    "their old numbers are closed, 0 as well");
	tap(is_open(23), "a number beside them is not");
	tap(fd[5] == -EBADF, "a bad one is -EBADF");
	for (int i = 0; i < 5; i++)
		for (int k = 0; k < i; k++)
			kept |= fd[i] == fd[k];
	tap(!kept, "each has a number of its own");
}

static void high_ones_stay(void)
{
	int fd = guise_fd_high(open("/dev/null", O_RDONLY)), again = guise_fd_high(fd);

	tap(fd >= LOW && again == fd && is_open(fd), "one that is high already stays");
}

static void all_end_at_exec(void)
{
	int null = open("/dev/null", O_RDWR);

	if (dup2(null, 40) != 40 || dup2(null, 41) != 41 || dup2(null, 700) != 700)
		return;
	guise_fd_end_at_exec(41);
	tap(fcntl(41, F_GETFD) == FD_CLOEXEC && fcntl(700, F_GETFD) == FD_CLOEXEC,
	    "from a number on all become close-on-exec");
	tap(!fcntl(40, F_GETFD) && !fcntl(0, F_GETFD), "those below do not");
}

static void shared_memory_keeps_its_size(void)
{
	const int fd = guise_fd_shared("guise-test", 8192);
	struct stat st = { 0 };

	tap(fd >= 0 && fcntl(fd, F_GETFD) == FD_CLOEXEC && !fstat(fd, &st) && st.st_size == 8192,
	    "shared memory has its size, and is close-on-exec");
	tap(ftruncate(fd, 4096) && errno == EPERM && ftruncate(fd, 16384) && errno == EPERM,
	    "nobody makes it smaller or larger");
	tap(pwrite(fd, "x", 1, 8191) == 1 && pwrite(fd, "x", 1, 8192) < 0 && errno == EPERM,
	    "it is written within its size");
	tap(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) && errno == EPERM,
	    "nobody keeps the others from writing");
	if (st.st_mode & 0111)
		tap_skip("nobody makes a program of it", "the host does not know how");
	else
		tap(fchmod(fd, 0777) && errno == EPERM, "nobody makes a program of it");
	close(fd);
}

int main(void)
{
	shared_memory_keeps_its_size();
	all_are_moved();
	high_ones_stay();
	all_end_at_exec();
	return tap_end();
}
