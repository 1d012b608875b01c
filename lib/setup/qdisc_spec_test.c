// SPDX-License-Identifier: GPL-2.0-only
/* Queueing disciplines as tc writes them: units, words, and what is refused. */
#include "setup/qdisc_spec.h"

#include "guise/guise.h"
#include "setup/units.h"
#include "test/tap.h"

#include <errno.h>
#include <locale.h>
#include <string.h>

typedef int (*unit_fn)(const char *word, const char *what, uint64_t *value);

static int size_unit(const char *word, const char *what, uint64_t *value)
{
	return guise_unit_size(word, what, UINT32_MAX, value);
}

static void unit(unit_fn fn, const char *word, uint64_t expected)
{
	uint64_t v = ~expected;
	int err = fn(word, "test", &v);

	tap(!err && v == expected, "%s is %llu (%llu)", word, (unsigned long long)expected,
	    (unsigned long long)v);
}

static void no_unit(unit_fn fn, const char *word, const char *names)
{
	uint64_t v;
	int err = fn(word, "test", &v);

	if (!tap(err == -EINVAL && strstr(guise_error(), names), "\"%s\" is refused, naming %s",
		 word, names))
		printf("# %s\n", guise_error());
}

static void units(void)
{
	unit(guise_unit_time, "20ms", 20000000);
	unit(guise_unit_time, "1.5s", 1500000000);
	unit(guise_unit_time, "100us", 100000);
	unit(guise_unit_time, "7ns", 7);
	unit(guise_unit_time, "0", 0);
	unit(guise_unit_time, ".5MSEC", 500000);
	unit(guise_unit_time, "3secs", 3000000000);
	no_unit(guise_unit_time, "20", "ms");
	no_unit(guise_unit_time, "20mss", "ms");
	no_unit(guise_unit_time, "ms", "ms");
	no_unit(guise_unit_time, ".", "ms");
	no_unit(guise_unit_time, "-1ms", "ms");
	no_unit(guise_unit_time, "nan", "ms");
	no_unit(guise_unit_time, "99999999999999999999s", "ms");

	unit(guise_unit_percent, "0%", 0);
	unit(guise_unit_percent, "100%", UINT32_MAX);
	unit(guise_unit_percent, "50", 2147483648);
	unit(guise_unit_percent, "0.2%", 8589935);
	no_unit(guise_unit_percent, "100.1%", "100%");
	no_unit(guise_unit_percent, "1%%", "100%");

	unit(guise_unit_rate, "100mbit", 12500000);
	unit(guise_unit_rate, "8", 1);
	unit(guise_unit_rate, "1gbit", 125000000);
	unit(guise_unit_rate, "1.5Mbit", 187500);
	unit(guise_unit_rate, "10kbps", 10000);
	unit(guise_unit_rate, "1mibit", 131072);
	unit(guise_unit_rate, "100gbit", 12500000000);
	no_unit(guise_unit_rate, "100mbits", "mbit");

	unit(size_unit, "1500", 1500);
	unit(size_unit, "32kb", 32768);
	unit(size_unit, "1mb", 1048576);
	unit(size_unit, "8kbit", 1024);
	no_unit(size_unit, "4gb", "4294967295");
	no_unit(size_unit, "big", "kb");

	unit(guise_unit_count, "4294967295", UINT32_MAX);
	no_unit(guise_unit_count, "4294967296", "4294967295");
	no_unit(guise_unit_count, "-1", "4294967295");
	no_unit(guise_unit_count, "7x", "4294967295");
	unit(guise_unit_seed, "18446744073709551615", UINT64_MAX);
	unit(guise_unit_seed, "0x10", 16);
	no_unit(guise_unit_seed, "18446744073709551616", "64 bits");
}

static void refuses(const char *text, const char *names)
{
	struct guise_qdisc q;
	int err = guise_qdisc_parse(text, &q);

	if (!tap(err == -EINVAL && strstr(guise_error(), names), "\"%s\" is refused, naming %s",
		 text, names))
		printf("# %s\n", guise_error());
}

static void specs(void)
{
	struct guise_qdisc q;

	tap(!guise_qdisc_parse("netem delay 20ms 2ms 25% loss 0.2% rate 100mbit limit 1000 seed 7",
			       &q) &&
		    q.kind == GUISE_QDISC_NETEM && !strcmp(q.name, "netem") &&
		    q.word[GUISE_Q_DELAY].v[0] == 20000000 &&
		    q.word[GUISE_Q_DELAY].v[1] == 2000000 &&
		    q.word[GUISE_Q_DELAY].v[2] == 1073741824 &&
		    q.word[GUISE_Q_LOSS].v[0] == 8589935 && !q.word[GUISE_Q_LOSS].v[1] &&
		    q.word[GUISE_Q_RATE].v[0] == 12500000 && q.word[GUISE_Q_LIMIT].v[0] == 1000 &&
		    q.word[GUISE_Q_SEED].v[0] == 7 && !q.word[GUISE_Q_ECN].set,
	    "a netem with all that a path needs");
	tap(!guise_qdisc_parse("  netem\tdelay 10ms loss .5 ecn reorder 25% 50% gap 5 ", &q) &&
		    q.word[GUISE_Q_ECN].set && q.word[GUISE_Q_GAP].v[0] == 5 &&
		    q.word[GUISE_Q_REORDER].v[1] == 2147483648,
	    "blanks of any kind, flags, optional values");
	tap(!guise_qdisc_parse("netem", &q) && !q.word[GUISE_Q_DELAY].set, "a netem alone");
	tap(!guise_qdisc_parse("tbf rate 10mbit burst 32kb latency 50ms", &q) &&
		    q.kind == GUISE_QDISC_TBF && q.word[GUISE_Q_BURST].v[0] == 32768 &&
		    q.word[GUISE_Q_LATENCY].v[0] == 50000000,
	    "a tbf");
	tap(!guise_qdisc_parse("fq", &q) && !guise_qdisc_parse("fq maxrate 1gbit nopacing", &q) &&
		    !guise_qdisc_parse("fq_codel target 5ms interval 100ms noecn", &q) &&
		    !guise_qdisc_parse("pfifo limit 100", &q) &&
		    !guise_qdisc_parse("bfifo limit 64kb", &q) && !guise_qdisc_parse("none", &q) &&
		    q.kind == GUISE_QDISC_NONE,
	    "fq, fq_codel, pfifo, bfifo, none");

	refuses("", "netem, fq, fq_codel, tbf, pfifo, bfifo, none");
	refuses("netm delay 1ms", "netem, fq, fq_codel, tbf, pfifo, bfifo, none");
	refuses("netem dealy 1ms", "delay, loss, duplicate, reorder, corrupt, gap, rate, limit, "
				   "seed, ecn");
	refuses("netem delay", "netem delay: needs a value");
	refuses("netem delay loss 1%", "\"loss\" is no time");
	refuses("netem delay 1ms delay 2ms", "given twice");
	refuses("netem loss 0.2%x", "0.2%x");
	refuses("netem reorder 25%", "delay 10ms");
	refuses("netem delay 1ms gap 5", "reorder");
	refuses("tbf rate 10mbit", "tbf rate 10mbit burst 32kb latency 50ms");
	refuses("tbf rate 10mbit burst 32kb latency 50ms limit 1mb", "one of latency and limit");
	refuses("tbf rate 0 burst 32kb latency 50ms", "needs rate");
	refuses("none at all", "none at all");
}

int main(void)
{
	/* Where there is one with a decimal comma, numbers still have a point. */
	setlocale(LC_ALL, "de_DE.UTF-8");
	units();
	specs();
	return tap_end();
}
