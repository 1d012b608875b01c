// SPDX-License-Identifier: GPL-2.0-only
/*
 * The virtual CPU's lock, of a region without a kernel: it excludes, and a
 * thread that was passed over for too long is next, whatever others come.
 */
#include "region/vcpu.h"

#include "host/sys.h"
#include "region/process.h"

#include "test/region.h"
#include "test/tap.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define TURNS   300
#define SOON_NS 100000 /* nobody starves after that */

static struct guise_stack stack;

static void make_stack(void)
{
	test_region(&stack);
	stack.region->vcpu->pump_alive = 1;
	stack.region->bells = 1;
}

static uint32_t get(const uint32_t *word)
{
	return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

/* ---- a starving thread is next ----------------------------------------------------------- */

static uint32_t turns, wanted, enough; /* of the one that waits */

static void *wait_for_it(void *arg)
{
	for (;;) {
		while (!get(&wanted) && !get(&enough))
			sched_yield();
		if (get(&enough))
			return NULL;
		__atomic_store_n(&wanted, 0, __ATOMIC_SEQ_CST);
		guise_lock(&stack, arg);
		__atomic_add_fetch(&turns, 1, __ATOMIC_SEQ_CST);
		guise_unlock(&stack);
	}
}

/* Keeps the lock until the other starves, then lets go and takes it at once. Where the
 * other is not let run by the host for long, this one starves as well, and may. */
static void one_starves(void)
{
	struct guise_region *r = stack.region;
	struct guise_slot *self = &stack.slots[2];
	int passed_over = 0, kept = 0;
	uint64_t then;
	pthread_t thread;

	guise_lock(&stack, self);
	pthread_create(&thread, NULL, wait_for_it, &stack.slots[3]);
	for (int i = 0; i < TURNS; i++) {
		uint32_t before = get(&turns);

		__atomic_store_n(&wanted, 1, __ATOMIC_SEQ_CST);
		while (!get(&r->vcpu->starving))
			sched_yield();
		kept += get(&turns) == before;
		guise_unlock(&stack);
		then = guise_host_now();
		guise_lock(&stack, self);
		passed_over += get(&turns) == before && guise_host_now() - then < SOON_NS;
	}
	__atomic_store_n(&enough, 1, __ATOMIC_SEQ_CST);
	guise_unlock(&stack);
	pthread_join(thread, NULL);
	tap(kept == TURNS, "nobody gets it while another has it");
	tap(!passed_over, "one that starves is not passed over, %d times of %d", passed_over,
	    TURNS);
	tap(!r->vcpu->starving && !(r->vcpu->lock & ~GUISE_LOCK_CONTENDED),
	    "at the end nobody starves");
}

/* ---- many ---------------------------------------------------------------------------------- */

#define THREADS 8

static long together, wrong; /* together: only changed with the lock held */
static uint32_t inside, stop;

struct one {
	struct guise_slot *slot;
	long turns;
};

static void *take_turns(void *arg)
{
	struct one *one = arg;

	while (!get(&stop)) {
		guise_lock(&stack, one->slot);
		wrong += __atomic_fetch_add(&inside, 1, __ATOMIC_SEQ_CST) != 0;
		one->turns++;
		together++;
		/* Long enough that others find it taken. */
		for (int i = 0; i < 200; i++)
			guise_isa_relax();
		__atomic_fetch_sub(&inside, 1, __ATOMIC_SEQ_CST);
		guise_unlock(&stack);
	}
	return NULL;
}

/* Runs until each has had a thousand turns; a lock that starves one never ends. */
static void many(void)
{
	struct one one[THREADS];
	pthread_t thread[THREADS];
	long sum = 0;
	bool all = false;

	for (int i = 0; i < THREADS; i++) {
		one[i] = (struct one){ &stack.slots[10 + i], 0 };
		pthread_create(&thread[i], NULL, take_turns, &one[i]);
	}
	while (!all) {
		usleep(1000);
		all = true;
		for (int i = 0; i < THREADS; i++)
			all &= __atomic_load_n(&one[i].turns, __ATOMIC_RELAXED) >= 1000;
	}
	__atomic_store_n(&stop, 1, __ATOMIC_SEQ_CST);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], NULL);
		sum += one[i].turns;
	}
	tap(!wrong && sum == together, "%d threads: never two at once", THREADS);
	tap(all, "each has its turns");
}

/* ---- processes that do nothing but call ------------------------------------------------- */

#define PROCESSES 16
#define RUNS      5 /* the host may be busy: a lock that passes a thread over does so in each */
#define RUN_NS    2000000000ull
#define LONG_NS   (RUN_NS / 4) /* what the host may do to one; the lock's own part is a hundredth */

struct caller {
	long turns;
	uint64_t longest; /* wait, ns */
};

static void call_and_call(struct guise_slot *slot, struct caller *c)
{
	const uint64_t end = guise_host_now() + RUN_NS;
	uint64_t then = guise_host_now(), now = then;

	for (; now < end; then = now) {
		guise_lock(&stack, slot);
		guise_unlock(&stack);
		now = guise_host_now();
		c->turns++;
		c->longest = now - then > c->longest ? now - then : c->longest;
	}
	_exit(0);
}

/* True when each had half of the mean or more, and none waited for long. */
static bool shared(struct caller *c)
{
	long least = INT32_MAX, mean = 0;
	uint64_t longest = 0;
	int i;

	fflush(stdout);
	memset(c, 0, PROCESSES * sizeof(*c));
	for (i = 0; i < PROCESSES; i++)
		if (!fork())
			call_and_call(&stack.slots[2 + i], &c[i]);
	while (wait(NULL) > 0)
		;
	for (i = 0; i < PROCESSES; i++) {
		least = c[i].turns < least ? c[i].turns : least;
		mean += c[i].turns / PROCESSES;
		longest = c[i].longest > longest ? c[i].longest : longest;
	}
	printf("# %ld turns or more, %ld in the mean, waits of up to %ld us\n", least, mean,
	       (long)(longest / 1000));
	return least > mean / 2 && longest < LONG_NS;
}

static void processes(void)
{
	struct caller *c = mmap(NULL, PROCESSES * sizeof(*c), PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	bool good = false;

	if (c == MAP_FAILED)
		abort();
	for (int i = 0; i < RUNS && !good; i++)
		good = shared(c);
	tap(good, "%d processes call and call: each has its share, and none waits for long",
	    PROCESSES);
	tap(!stack.region->vcpu->waiting && !stack.region->vcpu->starving,
	    "at the end nobody waits");
	munmap(c, PROCESSES * sizeof(*c));
}

/* ---- a stack that is lost -------------------------------------------------------------------- */

static void *wait_in_vain(void *arg)
{
	return (void *)(long)guise_lock(&stack, arg);
}

static void lost(void)
{
	pthread_t thread[2];
	void *got;
	int n = 0;

	guise_lock(&stack, &stack.slots[2]);
	for (int i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, wait_in_vain, &stack.slots[3 + i]);
	while (get(&stack.region->vcpu->starving) < 2)
		sched_yield();
	guise_declare_dead(&stack);
	for (int i = 0; i < 2; i++) {
		pthread_join(thread[i], &got);
		n += got != NULL;
	}
	tap(!n, "a lost stack's lock is waited for no longer, and not given");
}

/* ---- without a holder ------------------------------------------------------------------- */

/* As process 2 of a stack whose holder has the other end of a pipe. */
static void begin_as_member(int alive[2])
{
	if (pipe(alive))
		abort();
	stack.alive = alive[0];
	stack.proc = 2;
	stack.region->procs[2].pid = getpid();
}

static void end_as_member(const int alive[2])
{
	stack.slots[2].proc = stack.proc = 0;
	stack.holder_gone = false;
	stack.alive = -1;
	close(alive[0]);
}

/* The holder has died with the lock; one member waits for it. */
static void holder_dies(void)
{
	struct guise_region *r = stack.region;
	pthread_t thread;
	int alive[2];
	void *got;

	begin_as_member(alive);
	stack.slots[2].proc = 1;
	guise_lock(&stack, &stack.slots[2]);
	pthread_create(&thread, NULL, wait_in_vain, &stack.slots[3]);
	while (!get(&r->vcpu->starving))
		sched_yield();
	close(alive[1]);
	pthread_join(thread, &got);
	tap(got && guise_lock_owner(r) == 3, "the lock of a dead holder is taken over");
	guise_unlock(&stack);
	guise_lock(&stack, &stack.slots[2]);
	r->vcpu->entered = 1;
	pthread_create(&thread, NULL, wait_in_vain, &stack.slots[3]);
	pthread_join(thread, &got);
	tap(!got && r->dead, "one that has died inside loses the stack");
	r->vcpu->entered = r->dead = r->vcpu->lock = 0;

	stack.slots[2].proc = 3;
	stack.slots[2].tid = (int32_t)host_sys(SYS_gettid);
	r->procs[3].pid = getpid();
	guise_lock(&stack, &stack.slots[2]);
	pthread_create(&thread, NULL, wait_in_vain, &stack.slots[3]);
	/* It looks twice: what it thought at first is known then. */
	for (int i = 0; i < 2; i++) {
		__atomic_store_n(&stack.holder_gone, false, __ATOMIC_SEQ_CST);
		while (!__atomic_load_n(&stack.holder_gone, __ATOMIC_SEQ_CST))
			sched_yield();
	}
	tap(guise_lock_owner(r) == 2, "a member that is alive keeps it, holder or not");
	guise_unlock(&stack);
	pthread_join(thread, &got);
	guise_unlock(&stack);
	end_as_member(alive);
}

/* A member has died with the lock, and the holder is there but does nothing about it. */
static void holder_is_silent(void)
{
	struct guise_region *r = stack.region;
	struct guise_process process;
	pthread_t thread;
	int alive[2];
	pid_t dead;
	void *got;

	begin_as_member(alive);
	dead = fork();
	if (!dead)
		for (;;)
			pause();
	r->procs[3].pid = dead;
	tap(guise_process_read(dead, &process), "a process that lives can be read");
	r->procs[3].start_time = process.start_time;
	stack.slots[2].proc = 3;
	guise_lock(&stack, &stack.slots[2]);
	kill(dead, SIGKILL); /* and nobody waits for it: it stays as a zombie */
	pthread_create(&thread, NULL, wait_in_vain, &stack.slots[3]);
	pthread_join(thread, &got);
	tap(!got && r->dead, "the stack is lost when a holder does nothing about a dead owner");
	waitpid(dead, NULL, 0);
	r->dead = r->vcpu->lock = 0;
	end_as_member(alive);
	close(alive[1]);
}

/* A vfork child uses its parent's slot. */
static void vfork_child_dies(void)
{
	struct guise_region *r = stack.region;

	guise_lock(&stack, &stack.slots[2]);
	tap(guise_lock(&stack, &stack.slots[2]),
	    "the lock of a killed vfork child is its parent's");
	r->vcpu->entered = 1;
	tap(!guise_lock(&stack, &stack.slots[2]) && r->dead,
	    "if that was inside, the stack is lost");
	r->vcpu->entered = r->dead = r->vcpu->lock = 0;
}

/* A thread that starves was stopped: the lock is not kept for it call after call. */
static void starving_one_is_stopped(void)
{
	struct guise_region *r = stack.region;
	unsigned int calls = 0;

	r->vcpu->starving = 1;
	r->vcpu->lock = GUISE_LOCK_RESERVED;
	do {
		if (!guise_lock(&stack, &stack.slots[1]))
			break;
		guise_unlock(&stack);
	} while (++calls < 100 && r->vcpu->starving);
	tap(calls == 1 && !r->vcpu->starving && !r->vcpu->lock,
	    "one call waits for a starving thread that is stopped");
	r->vcpu->starving = r->vcpu->lock = 0;
}

int main(void)
{
	make_stack();
	one_starves();
	starving_one_is_stopped();
	many();
	processes();
	holder_dies();
	holder_is_silent();
	vfork_child_dies();
	lost();
	return tap_end();
}
