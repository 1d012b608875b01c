// SPDX-License-Identifier: GPL-2.0-only
/*
 * Huge pages of a stack that has many processes.
 *
 *	huge N		N processes come one after the other, make a socket each and stay.
 *			Prints how much of the stack's memory has huge pages in the last one,
 *			in KiB: of what is shared, and of the image
 *	huge able	whether the host makes huge pages of a memory file when it is asked to: 1
 *			or 0
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define MOST 256
#define HUGE 0x200000ul

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

static int made(int fd, const char *what)
{
	if (fd >= 0)
		return fd;
	fprintf(stderr, "huge: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* KiB of huge pages in the mappings whose line has the one text and not the other. */
static long huge_pages(const char *text, const char *no_text)
{
	static const char word[] = "ShmemPmdMapped:";
	FILE *f = fopen("/proc/self/smaps", "r");
	char line[512];
	bool in = false;
	long sum = 0;

	made(f ? 0 : -1, "smaps");
	while (fgets(line, sizeof(line), f)) {
		if (strchr(line, '/'))
			in = strstr(line, text) && !strstr(line, no_text);
		if (in && !strncmp(line, word, strlen(word)))
			sum += strtol(line + strlen(word), NULL, 10);
	}
	fclose(f);
	return sum;
}

static void crowd(int n)
{
	static pid_t pid[MOST];
	int told[2];
	char byte;

	made(pipe(told), "pipe");
	for (int i = 0; i < n; i++) {
		pid[i] = made(fork(), "fork");
		if (!pid[i]) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			made(socket(AF_INET, SOCK_STREAM, 0), "socket");
			if (i == n - 1) {
				printf("%ld %ld\n", huge_pages("memfd:guise ", "kernel"),
				       huge_pages("memfd:guise-kernel ", "\n\n"));
				fflush(stdout);
			}
			made((int)write(told[1], "t", 1), "write");
			pause();
		}
		made((int)read(told[0], &byte, 1), "read");
	}
	for (int i = 0; i < n; i++)
		kill(pid[i], SIGKILL);
}

static void able(void)
{
	const int reserve = MAP_PRIVATE | MAP_ANONYMOUS;
	uintptr_t at = (uintptr_t)mmap(NULL, 2 * HUGE, PROT_NONE, reserve, -1, 0);
	int fd = made(memfd_create("huge", 0), "memfd_create");
	void *page;

	at = (at + HUGE - 1) / HUGE * HUGE;
	made(ftruncate(fd, HUGE), "ftruncate");
	page = mmap((void *)at, HUGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
	made(page == MAP_FAILED ? -1 : 0, "mmap");
	memset(page, 1, HUGE);
	printf("%d\n", !madvise(page, HUGE, MADV_COLLAPSE));
}

int main(int argc, char **argv)
{
	int n = argc == 2 ? atoi(argv[1]) : 0;

	if (argc != 2 || n > MOST)
		return 2;
	if (n > 0)
		crowd(n);
	else
		able();
	return 0;
}
