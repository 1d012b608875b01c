// SPDX-License-Identifier: GPL-2.0-only
/*
 * How often an idle stack wakes a processor: the voluntary context switches of all
 * threads of the holder and of one program in ten seconds. The program is a server to
 * which no client connects. The runs are made at the same time, each with a stack of
 * its own.
 */
#include "benchmark.h"
#include "holder.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define RUNS_MAX     99
#define SETTLE_MS    500
#define IDLE_SECONDS 10

struct subject {
	struct holder holder;
	struct worker worker;
	long before;
};

static long switches_of(pid_t pid)
{
	char path[300], line[128];
	struct dirent *d;
	long sum = 0, n;
	DIR *dir;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	if (!dir)
		return -1;
	while ((d = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/%d/task/%s/status", pid, d->d_name);
		f = d->d_name[0] == '.' ? NULL : fopen(path, "re");
		if (!f)
			continue;
		while (fgets(line, sizeof(line), f))
			if (sscanf(line, "voluntary_ctxt_switches: %ld", &n) == 1)
				sum += n;
		fclose(f);
	}
	closedir(dir);
	return sum;
}

static long switches(const struct subject *s)
{
	return switches_of(s->holder.pid) + switches_of(s->worker.pid);
}

static void pause_ms(long ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&ts, NULL);
}

bool measure_idle(const struct benchmark *b, enum way way, int n, double *value, char *why,
		  size_t size)
{
	static struct subject subjects[RUNS_MAX];
	char program[4200];
	bool good = true;
	double begun;
	int ready = 0;

	snprintf(program, sizeof(program), "%sguise-holder", programs);
	while (good && ready < n) {
		struct subject *s = &subjects[ready];

		good = holder_start(&s->holder, program, b->plan, NULL, 0, why, size);
		if (!good)
			break;
		good = worker_start(&s->worker, b, way, s->holder.ticket, -1, why, size);
		if (!good) {
			holder_stop(&s->holder);
			break;
		}
		ready++;
		good = worker_result(&s->worker, &begun, why, size);
	}
	if (good) {
		pause_ms(SETTLE_MS);
		for (int i = 0; i < n; i++)
			subjects[i].before = switches(&subjects[i]);
		pause_ms(IDLE_SECONDS * 1000);
		for (int i = 0; i < n; i++)
			value[i] = (double)(switches(&subjects[i]) - subjects[i].before);
	}
	for (int i = 0; i < ready; i++) {
		worker_stop(&subjects[i].worker);
		holder_stop(&subjects[i].holder);
	}
	return good;
}
