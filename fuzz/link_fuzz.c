// SPDX-License-Identifier: GPL-2.0-only
/*
 * The fuzzer of links' receive paths.
 *
 *	link_fuzz [--link WIRE] [--frames N | --seconds S] [--seed N] [--image FILE]
 *
 * Without --link, each wire in turn. $FUZZ_SECONDS is for all of them together.
 * A line for each says how many frames were fed, what became of them, and how
 * many reached ip_rcv() and ipv6_rcv(). Exit status: 0 nothing was found, 1
 * something was, 2 wrong usage, 77 nothing could be run here.
 *
 * Each wire runs in a process of its own, so that a crash or a hang is a
 * finding like any other. In simulated time (wires port and tap) the same seed
 * does the same again.
 */
#include "run.h"

#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECONDS 60.0
#define LOOK_MS 1000
/* Without progress for so long, by the watcher's own count: it hangs. */
#define HANGS_LOOKS 90
#define CANNOT_RUN  77

static const struct wire *const wires[] = { &wire_port, &wire_tap, &wire_pair, &wire_packet,
					    &wire_host_tap };

enum { N_WIRES = sizeof(wires) / sizeof(wires[0]) };

enum outcome { CLEAN, FOUND, SKIPPED };

/* Waits for the child, whose end of the pipe closes when it ends; its status. */
static int watch_over(pid_t child, int pipe_fd, struct report *r)
{
	struct pollfd p = { .fd = pipe_fd };
	uint64_t beat = 0;
	int looks = 0, status;

	while (!poll(&p, 1, LOOK_MS)) {
		looks = r->beat == beat ? looks + 1 : 0;
		beat = r->beat;
		if (looks == HANGS_LOOKS) {
			snprintf(r->finding, sizeof(r->finding), "nothing has moved for %d seconds",
				 HANGS_LOOKS * LOOK_MS / 1000);
			kill(child, SIGKILL);
		}
	}
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return status;
}

/* What the child's end says that the report does not. */
static enum outcome judge(int status, struct report *r)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT_RUN)
		return SKIPPED;
	if (r->finding[0])
		return FOUND;
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return CLEAN;
	if (WIFSIGNALED(status))
		snprintf(r->finding, sizeof(r->finding), "the process died of signal %d (%s)",
			 WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		snprintf(r->finding, sizeof(r->finding), "the process ended with status %d",
			 WEXITSTATUS(status));
	return FOUND;
}

static void print(const struct wire *w, const struct report *r)
{
	printf("fuzz %s: seed=%llu fed=%llu refused=%llu accepted=%llu malformed=%llu "
	       "malformed_in_backend=%llu lost=%llu ip_rcv=%llu ipv6_rcv=%llu examinations=%llu "
	       "sabotages=%llu memory_kb=%llu seconds=%.1f frames_per_second=%.0f findings=%d\n",
	       w->name, (unsigned long long)r->seed, (unsigned long long)r->fed,
	       (unsigned long long)r->refused, (unsigned long long)r->accepted,
	       (unsigned long long)r->malformed, (unsigned long long)r->malformed_in_backend,
	       (unsigned long long)r->lost, (unsigned long long)r->ip4, (unsigned long long)r->ip6,
	       (unsigned long long)r->examinations, (unsigned long long)r->sabotages,
	       (unsigned long long)r->memory_used, r->took,
	       r->took > 0 ? (double)r->fed / r->took : 0.0, r->finding[0] != '\0');
	if (!r->finding[0])
		return;
	printf("FOUND on %s, seed %llu, batch %llu (frame %llu or soon after): %s\n", w->name,
	       (unsigned long long)r->seed, (unsigned long long)r->batch,
	       (unsigned long long)r->fed, r->finding);
	if (r->console[0])
		printf("The kernel's last messages:\n%s\n", r->console);
}

static enum outcome fuzz(const struct wire *w, struct report *r)
{
	enum outcome outcome;
	int pipe_fd[2];
	pid_t child;

	fflush(stdout);
	if (pipe(pipe_fd) || (child = fork()) < 0) {
		perror("link_fuzz");
		return FOUND;
	}
	if (!child) {
		const char *missing;

		/* Not to go on when nobody waits for the outcome. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(pipe_fd[0]);
		missing = w->missing();
		if (!missing)
			_exit(run_wire(w, r));
		printf("fuzz %s: skipped: %s\n", w->name, missing);
		fflush(stdout);
		_exit(CANNOT_RUN);
	}
	close(pipe_fd[1]);
	outcome = judge(watch_over(child, pipe_fd[0], r), r);
	close(pipe_fd[0]);
	if (outcome != SKIPPED)
		print(w, r);
	return outcome;
}

static int usage(void)
{
	fprintf(stderr, "usage: link_fuzz [--link WIRE] [--frames N | --seconds S] [--seed N] "
			"[--image FILE]\n");
	for (size_t i = 0; i < N_WIRES; i++)
		fprintf(stderr, "  %-9s %s\n", wires[i]->name, wires[i]->what);
	return 2;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "link", required_argument, NULL, 'l' },
		{ "frames", required_argument, NULL, 'n' },
		{ "seconds", required_argument, NULL, 't' },
		{ "seed", required_argument, NULL, 's' },
		{ "image", required_argument, NULL, 'i' },
		{ 0 },
	};
	const char *link = NULL, *given = getenv("FUZZ_SECONDS");
	double seconds = (given ? strtod(given, NULL) : SECONDS) / N_WIRES;
	uint64_t frames = 0, seed = 1;
	unsigned int count[3] = { 0 };
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'l')
			link = optarg;
		else if (c == 'n')
			frames = strtoull(optarg, NULL, 10);
		else if (c == 't')
			seconds = strtod(optarg, NULL);
		else if (c == 's')
			seed = strtoull(optarg, NULL, 10);
		else if (c != 'i' || setenv("GUISE_KERNEL", optarg, 1))
			return usage();
	}
	if (optind != argc)
		return usage();
	for (size_t i = 0; i < N_WIRES; i++) {
		struct report *r;

		if (link && strcmp(link, wires[i]->name))
			continue;
		r = mmap(NULL, sizeof(*r), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
			 0);
		if (r == MAP_FAILED) {
			perror("link_fuzz: mmap");
			return 1;
		}
		r->seed = seed;
		r->frames = frames;
		r->seconds = seconds;
		count[fuzz(wires[i], r)]++;
		munmap(r, sizeof(*r));
	}
	if (!count[CLEAN] && !count[FOUND])
		return count[SKIPPED] ? CANNOT_RUN : usage();
	return count[FOUND] ? 1 : 0;
}
