// SPDX-License-Identifier: GPL-2.0-only
#include "turns.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define SECONDS 60.0

static const struct turns *fuzzer;
static uint64_t number;

void turns_found(const char *format, ...)
{
	va_list ap;

	printf("FOUND in %s, turn %llu: ", fuzzer->where, (unsigned long long)number);
	va_start(ap, format);
	vprintf(format, ap);
	va_end(ap);
	putchar('\n');
	exit(1);
}

void turns_fail(const char *what, int64_t value)
{
	turns_found("%s (%lld)", what, (long long)value);
}

void turns_need(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "%s_fuzz: ", fuzzer->name);
	perror(what);
	exit(1);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static int usage(void)
{
	fprintf(stderr, "usage: %s_fuzz [--turns N | --seconds S] [--seed N]\n", fuzzer->name);
	return 2;
}

int turns_main(const struct turns *f, int argc, char **argv)
{
	static const struct option options[] = { { "turns", required_argument, NULL, 'n' },
						 { "seconds", required_argument, NULL, 't' },
						 { "seed", required_argument, NULL, 's' },
						 { 0 } };
	const char *given = getenv("FUZZ_SECONDS");
	double seconds = given ? strtod(given, NULL) : SECONDS, began = now();
	uint64_t turns = 0, seed = 1;
	struct rng rng;
	int c;

	fuzzer = f;
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'n')
			turns = strtoull(optarg, NULL, 10);
		else if (c == 't')
			seconds = strtod(optarg, NULL);
		else if (c == 's')
			seed = strtoull(optarg, NULL, 10);
		else
			return usage();
	}
	if (optind != argc)
		return usage();
	if (f->begin)
		f->begin();
	rng.state = seed;
	for (; turns ? number < turns : now() - began < seconds; number++)
		f->turn(&rng, number);
	printf("fuzz %s: seed=%llu turns=%llu", f->name, (unsigned long long)seed,
	       (unsigned long long)number);
	for (int i = 0; i < TURNS_SUMS && f->sums[i].name; i++)
		printf(" %s=%llu", f->sums[i].name, (unsigned long long)*f->sums[i].sum);
	printf(" seconds=%.1f findings=0\n", now() - began);
	if (f->end)
		f->end(&rng);
	return 0;
}
