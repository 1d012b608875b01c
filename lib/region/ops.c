// SPDX-License-Identifier: GPL-2.0-only
/*
 * The host contract's functions (guise/layout.h). They run on kernel stacks,
 * with the virtual CPU held: short, with little on the stack.
 */
#include "host/sys.h"
#include "region/additions.h"
#include "region/stack.h"
#include "region/vcpu.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct guise_stack *stack_of(struct guise_host_ops *self)
{
	return self->stack;
}

static uint64_t clock_real(struct guise_host_ops *self, uint32_t which)
{
	struct timespec ts;

	(void)self;
	clock_gettime(which ? CLOCK_REALTIME : CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

static uint64_t clock_sim(struct guise_host_ops *self, uint32_t which)
{
	struct guise_region *r = stack_of(self)->region;

	return which ? r->sim_epoch + r->sim_now : r->sim_now;
}

static void console(struct guise_host_ops *self, const char *text, uint64_t len)
{
	struct guise_stack *s = stack_of(self);

	host_sys(SYS_write, s->console_fd >= 0 ? s->console_fd : 2, text, len);
}

/* splitmix64 (Steele, Lea, Flood 2014) */
static void splitmix(uint64_t *state, char *p, uint64_t len)
{
	while (len) {
		uint64_t z = (*state += 0x9e3779b97f4a7c15ull);
		uint64_t n = len < 8 ? len : 8;

		z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
		z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
		z ^= z >> 31;
		memcpy(p, &z, n);
		p += n;
		len -= n;
	}
}

static void entropy_real(struct guise_host_ops *self, void *buf, uint64_t len)
{
	char *p = buf;

	(void)self;
	while (len) {
		long n = host_sys(SYS_getrandom, p, len, 0);

		if (n == -EINTR)
			continue;
		if (n <= 0)
			abort();
		p += n;
		len -= (uint64_t)n;
	}
}

/* All of a simulated stack's randomness. */
static void entropy_sim(struct guise_host_ops *self, void *buf, uint64_t len)
{
	splitmix(&stack_of(self)->region->seed_state, buf, len);
}

static int64_t frame_out(struct guise_host_ops *self, uint32_t link, const struct guise_iov *iov,
			 uint32_t n)
{
	struct guise_stack *s = stack_of(self);
	struct guise_link_port *port = guise_link_port(s, link);
	int64_t ret;

	/* A process that is behind leaves the frame to the leader. */
	if (__builtin_expect(!port, 0))
		ret = guise_links_stale(s) ? -EAGAIN : -ENODEV;
	else
		ret = port->backend->out(port, iov, n);
	if (ret == -EAGAIN && (!port || port->backend->room_by_pollout))
		__atomic_fetch_or(&s->region->vcpu->tx_blocked, 1u << link, __ATOMIC_RELAXED);
	return ret;
}

static int64_t frame_in(struct guise_host_ops *self, uint32_t link, const struct guise_iov *iov,
			uint32_t n)
{
	struct guise_link_port *port = guise_link_port(stack_of(self), link);

	return port ? port->backend->in(port, iov, n) : -EAGAIN;
}

static uint32_t processor_real(struct guise_host_ops *self)
{
	int cpu = sched_getcpu();

	(void)self;
	return cpu < 0 ? 0 : (uint32_t)cpu;
}

static uint32_t processor_sim(struct guise_host_ops *self)
{
	(void)self;
	return 0;
}

static void give_up(struct guise_host_ops *self, const char *text)
{
	struct guise_stack *s = stack_of(self);
	static const char before[] = "guise: the stack failed: ";

	host_sys(SYS_write, 2, before, sizeof(before) - 1);
	host_sys(SYS_write, 2, text, strlen(text));
	host_sys(SYS_write, 2, "\n", 1);
	guise_declare_dead(s);
	abort();
}

void guise_host_ops_init(struct guise_stack *s)
{
	bool sim = s->region->clock_mode == GUISE_CLOCK_SIM;

	s->ops->clock = sim ? clock_sim : clock_real;
	s->ops->console = console;
	s->ops->entropy = sim ? entropy_sim : entropy_real;
	s->ops->frame_out = frame_out;
	s->ops->frame_in = frame_in;
	s->ops->processor = sim ? processor_sim : processor_real;
	s->ops->panic = give_up;
	s->ops->stack = s;
}
