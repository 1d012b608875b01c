// SPDX-License-Identifier: GPL-2.0-only
/*
 * Batches of frames are fed until a round is full; then the stack is examined:
 *
 *	every frame met a fate that it may have, and none was lost (watch.h)
 *	TCP works over lo, and echoes come back over the link, IPv4 and IPv6
 *	a packet socket in the stack sees frames byte for byte
 *	the kernel has not warned
 *	the link does not wake a stack that has nothing to do
 *	memory is not used up
 *
 * The stack has no pump: this thread does all its work, when told to, so that
 * in simulated time a seed repeats a run to the byte.
 */
#include "run.h"

#include "console.h"
#include "far.h"
#include "inside.h"
#include "watch.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ROUND_BATCHES 48
#define MEMORY        (64ull << 20)
/* A batch that is not taken in after so many turns of the stack never will be. */
#define TURNS      5000
#define TURN_NS    1000
#define ECHO_TRIES 200
#define ECHO_NS    10000000
/* What may be in use for connections, neighbours, routes and fragments. */
#define MEMORY_LEFT (MEMORY / 1024 / 3)

static struct report *report;
static const struct wire *wire;
static struct guise_stack *s;
static struct watch *watch;
static struct far far;
static struct frame batch[RUN_BATCH];
static uint64_t memory_at_start;

__attribute__((format(printf, 1, 2))) static bool find(const char *format, ...)
{
	va_list ap;

	if (!report->finding[0]) {
		va_start(ap, format);
		vsnprintf(report->finding, sizeof(report->finding), format, ap);
		va_end(ap);
	}
	return false;
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* One turn of the stack: it looks at the link, and at its timers. */
static void turn(uint64_t ns)
{
	struct guise_region *r = s->region;

	__atomic_or_fetch(&r->vcpu->rx_pending, 1u, __ATOMIC_RELAXED);
	__atomic_or_fetch(&r->vcpu->tx_pending, 1u, __ATOMIC_RELAXED);
	__atomic_or_fetch(&r->vcpu->irq_pending, GUISE_IRQ_RX | GUISE_IRQ_TX, __ATOMIC_RELEASE);
	guise_nanosleep(s, ns);
	report->beat++;
}

/* What the stack sent goes to the far end. */
static void take_all(void)
{
	static uint8_t buf[4096];
	int64_t n;

	while ((n = wire->take(buf, sizeof(buf))) >= 0)
		far_see(&far, buf, (uint32_t)n);
	if (n != -EAGAIN)
		find("%s: what the stack sends cannot be read: %s", wire->name, strerror((int)-n));
}

static bool drain(void)
{
	for (int i = 0; i < TURNS; i++) {
		watch_drained();
		turn(TURN_NS);
		if (watch_drained())
			return true;
		/* It may wait for room to send. */
		take_all();
	}
	return find("the stack does not take in what it was fed, in %d turns", TURNS);
}

/* Feeds n frames, in order, and waits until the stack has taken them in. */
static bool feed(const struct frame *frames, uint32_t n)
{
	struct watch before = *watch;
	uint64_t met;
	uint32_t fed = 0, tries = 0;

	watch_expect(wire->exact ? frames : NULL, n);
	for (uint32_t i = 0; i < n;) {
		switch (wire->feed(&frames[i])) {
		case FED:
			fed++;
			i++;
			tries = 0;
			break;
		case FEED_REFUSED:
			if (wire->exact)
				return find("a frame of %u bytes cannot be fed: %s", frames[i].len,
					    strerror(errno));
			report->refused++;
			i++;
			break;
		case FEED_FULL:
			if (++tries > TURNS)
				return find("the link stays full");
			if (!drain())
				return false;
		}
	}
	if (!drain())
		return false;
	take_all();
	report->fed += fed;
	report->accepted += watch->accepted - before.accepted;
	report->malformed += watch->malformed - before.malformed;
	report->lost += watch->lost - before.lost;
	report->malformed_in_backend += watch->malformed_in_backend - before.malformed_in_backend;
	if (watch->finding[0])
		return find("%s", watch->finding);
	met = watch->accepted + watch->malformed + watch->lost - before.accepted -
	      before.malformed - before.lost;
	if (met != fed)
		return find("%u frames were fed, %llu were taken in", fed, (unsigned long long)met);
	return !report->finding[0];
}

/* What the far end has to say comes first. */
static bool feed_answers(void)
{
	uint32_t n = far.answers;

	far.answers = 0;
	return !n || feed(far.answer, n);
}

static bool feed_batch(struct rng *seed)
{
	struct rng r = { rng_next(seed) };
	/* Some batches are all well-formed, so that connections get somewhere. */
	uint32_t damaged = rng_one_in(&r, 4) ? 0 : 1 + rng_below(&r, 100);

	if (!feed_answers())
		return false;
	for (uint32_t i = 0; i < RUN_BATCH; i++) {
		frame_make(&batch[i], &r, far.flow);
		if (rng_below(&r, 100) < damaged)
			frame_mutate(&batch[i], &r);
	}
	report->batch++;
	if (!feed(batch, RUN_BATCH))
		return false;
	far_settle(&far);
	if (rng_one_in(&r, 4))
		inside_serve(s);
	return true;
}

/* Some frames, and in between another end that has gone mad. */
static bool sabotage(struct rng *seed)
{
	struct rng r = { rng_next(seed) };
	uint32_t n = rng_below(&r, 8);

	watch_expect(NULL, 0);
	for (uint32_t i = 0; i < n; i++) {
		frame_make(&batch[i], &r, far.flow);
		wire->feed(&batch[i]);
	}
	n = 1 + rng_below(&r, 4);
	while (n--) {
		wire->sabotage(&r);
		if (!drain())
			return false;
		take_all();
	}
	wire->repair();
	if (!drain())
		return false;
	take_all();
	report->sabotages++;
	return !watch->finding[0] || find("after sabotage: %s", watch->finding);
}

static bool echoes_come_back(void)
{
	static struct frame request[2];

	far.echo++;
	far.heard4 = far.heard6 = false;
	for (int i = 0; i < ECHO_TRIES; i++) {
		frame_echo(&request[0], false, FAR_ECHO_ID, far.echo);
		frame_echo(&request[1], true, FAR_ECHO_ID, far.echo);
		if (!feed_answers() || !feed(request, 2))
			return false;
		if (far.heard4 && far.heard6)
			return true;
		turn(ECHO_NS);
		take_all();
	}
	return find("no answer to an %s echo request over the link", far.heard4 ? "IPv6" : "IPv4");
}

/* All are fed before the first is looked at: none may be written over. */
static bool frames_arrive_as_sent(void)
{
	static const struct {
		uint32_t payload;
		bool partial;
	} sample[] = { { 1, true },    { 2, false },   { 300, true },
		       { 301, false }, { 8000, true }, { 40000, false } };
	const uint32_t n = sizeof(sample) / sizeof(sample[0]);
	const char *wrong = NULL;
	int fd = inside_listen(s);

	if (fd < 0)
		return find("no packet socket in the stack: %s", guise_error());
	for (uint32_t i = 0; i < n; i++)
		frame_datagram(&batch[i], sample[i].payload, sample[i].partial);
	if (feed(batch, n))
		for (uint32_t i = 0; i < n && !wrong; i++) {
			wrong = inside_heard(s, fd, &batch[i]);
			if (wrong)
				find("%s: a datagram of %u bytes", wrong, sample[i].payload);
		}
	guise_close(s, fd);
	return !report->finding[0];
}

static bool kernel_is_calm(void)
{
	const char *alarm = console_alarm(report->console, sizeof(report->console));

	return !alarm || find("the kernel says: %s", alarm);
}

/* Its descriptor must not stay readable, or whoever waits for it never sleeps. */
static bool link_is_quiet(void)
{
	struct pollfd p = { .fd = s->port[0].fd[0], .events = POLLIN };

	return p.fd < 0 || poll(&p, 1, 0) <= 0 ||
	       find("nothing is left in the link, but it wakes who waits for it");
}

static bool memory_is_left(void)
{
	uint64_t left = inside_memory_free(s);

	if (memory_at_start > left && memory_at_start - left > report->memory_used)
		report->memory_used = memory_at_start - left;
	return left > MEMORY_LEFT ||
	       find("the stack has %llu kB of memory left, of %llu", (unsigned long long)left,
		    (unsigned long long)memory_at_start);
}

static bool examine(void)
{
	const char *wrong = inside_loopback(s);

	report->examinations++;
	inside_serve(s);
	if (wrong)
		return find("%s", wrong);
	return echoes_come_back() && frames_arrive_as_sent() && link_is_quiet() &&
	       kernel_is_calm() && memory_is_left();
}

static bool create(void)
{
	struct guise_options opt = GUISE_OPTIONS_INIT;
	int err;

	opt.console_fd = console_open();
	if (opt.console_fd < 0)
		return find("no pipe for the kernel's messages: %s", strerror(errno));
	opt.name = "fuzz";
	opt.memory = MEMORY;
	opt.cmdline = "loglevel=5";
	opt.simulated = wire->simulated;
	opt.seed = report->seed;
	opt.no_pump = 1;
	s = guise_create(&opt, &err);
	if (!s)
		return find("no stack: %s", guise_error());
	if (wire->open(s) < 0)
		return find("no link: %s", guise_error());
	watch = watch_link(s, 0);
	if (inside_start(s))
		return find("the stack cannot be set up: %s", guise_error());
	take_all();
	memory_at_start = inside_memory_free(s);
	return examine();
}

static bool go_on(double began)
{
	return report->frames ? report->fed < report->frames : now() - began < report->seconds;
}

static bool round_of_batches(struct rng *seed)
{
	uint64_t ip4[2], ip6[2];

	if (inside_merge(s, !rng_one_in(seed, 4)))
		return find("merging of received packets cannot be set");
	inside_received(s, &ip4[0], &ip6[0]);
	for (int i = 0; i < ROUND_BATCHES; i++)
		if (!feed_batch(seed) || (wire->sabotage && rng_one_in(seed, 4) && !sabotage(seed)))
			return false;
	inside_received(s, &ip4[1], &ip6[1]);
	report->ip4 += ip4[1] - ip4[0];
	report->ip6 += ip6[1] - ip6[0];
	return examine();
}

int run_wire(const struct wire *w, struct report *into)
{
	struct rng seed = { into->seed };
	double began;

	wire = w;
	report = into;
	if (!create())
		goto out;
	began = now();
	while (go_on(began) && round_of_batches(&seed))
		;
	report->took = now() - began;
out:
	if (s) {
		kernel_is_calm();
		guise_leave(s);
	}
	return report->finding[0] != '\0';
}
