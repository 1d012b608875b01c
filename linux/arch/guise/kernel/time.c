// SPDX-License-Identifier: GPL-2.0-only
/*
 * Time: the host service clock, in nanoseconds, and the word next_event in the region,
 * which says when the kernel has to be continued next. The thread that leads reads that
 * word before it sleeps. There is no timer that the port would have to set.
 */
#include <linux/clockchips.h>
#include <linux/clocksource.h>
#include <linux/init.h>
#include <linux/sched/clock.h>
#include <linux/timekeeping.h>

#include <asm/guise.h>

#define NEVER (~0ULL)

/* The host's clock when the kernel's own stood at 0. */
static u64 clock_offset;

static u64 guise_clock(struct clocksource *cs)
{
	return guise_host_do(clock, 0, 0, 0);
}

static struct clocksource guise_clocksource = {
	.name = "guise",
	.rating = 499,
	.read = guise_clock,
	.mask = CLOCKSOURCE_MASK(64),
	.flags = CLOCK_SOURCE_IS_CONTINUOUS,
};

unsigned long long notrace sched_clock(void)
{
	return guise_host_do(clock, 0, 0, 0);
}

void read_persistent_clock64(struct timespec64 *ts)
{
	*ts = ns_to_timespec64(guise_host_do(clock, 1, 0, 0));
}

static int guise_set_next(ktime_t expires, struct clock_event_device *dev)
{
	WRITE_ONCE(guise_region.vcpu->next_event, clock_offset + ktime_to_ns(expires));
	return 0;
}

static int guise_set_never(struct clock_event_device *dev)
{
	WRITE_ONCE(guise_region.vcpu->next_event, NEVER);
	return 0;
}

static struct clock_event_device guise_clockevent = {
	.name = "guise",
	.rating = 499,
	.features = CLOCK_EVT_FEAT_ONESHOT | CLOCK_EVT_FEAT_KTIME,
	.set_next_ktime = guise_set_next,
	.set_state_shutdown = guise_set_never,
	.set_state_oneshot_stopped = guise_set_never,
};

/* The host side has seen that next_event passed. It may have moved since: then do nothing. */
void guise_timer_interrupt(void)
{
	if (guise_host_do(clock, 0, 0, 0) < READ_ONCE(guise_region.vcpu->next_event))
		return;
	WRITE_ONCE(guise_region.vcpu->next_event, NEVER);
	guise_clockevent.event_handler(&guise_clockevent);
}

/*
 * Sets the wall clock again, exactly. Linux has set it during the boot, and it is late by
 * the time between reading and setting. Programs compare the time stamps of packets with
 * the host's clock, and a stamp must not be earlier than the moment of sending. From now
 * on both wall clocks advance with the host's monotonic clock.
 */
static int __init guise_set_wall_clock(void)
{
	struct timespec64 ts;
	u64 late;
	int i;

	for (i = 0; i < 3; i++) {
		late = ktime_get_real_ns();
		late = guise_host_do(clock, 1, 0, 0) - late;
		if ((s64)late >= 0 && late < 100)
			break;
		ts = ns_to_timespec64(guise_host_do(clock, 1, 0, 0) + 200);
		do_settimeofday64(&ts);
	}
	return 0;
}
late_initcall(guise_set_wall_clock);

void __init time_init(void)
{
	u64 before;

	guise_region.vcpu->next_event = NEVER;
	/* 1 GHz: the factor of a conversion is a power of two, so that it is exact. */
	clocksource_register_hz(&guise_clocksource, NSEC_PER_SEC);
	timekeeping_notify(&guise_clocksource);
	before = guise_host_do(clock, 0, 0, 0);
	clock_offset = before - ktime_to_ns(ktime_get());
	guise_clockevent.cpumask = cpumask_of(0);
	clockevents_config_and_register(&guise_clockevent, NSEC_PER_SEC, 1, LONG_MAX);
}
