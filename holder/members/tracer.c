// SPDX-License-Identifier: GPL-2.0-only
/*
 * The tracer: a thread of the holder that has every member seized by ptrace(2).
 *
 * What it is for: a thread that is killed stops once more before anything of it is freed
 * (PTRACE_EVENT_EXIT). If it owns the virtual CPU, the tracer finishes its section
 * (region/finish.c) before it lets the thread die. And a thread that is stopped (SIGSTOP,
 * Ctrl-Z) while it owns the virtual CPU is let run until it has given that up.
 *
 * How a member notices: only by time. Nothing is ever injected or
 * held back:
 *
 *	a signal	is passed on at once; each costs the member a stop
 *	its own fault	likewise; except one that ends an init, see below
 *	a new thread	is traced from its first instruction; a new process is not
 *			(it is seized when it joins)
 *	exec		is let go; the new program may join
 *	job control	is left to run its course (PTRACE_LISTEN): its parent sees it
 *			stop and go on as without us
 *	death		its parent hears of it when we have
 *
 * When the owner of the virtual CPU is to stop with its process, the tracer continues this one
 * thread. As soon as it has given the virtual CPU up it is interrupted, and then stands still
 * with the others; if it has become the owner again by then, the same is done once more. A
 * thread that stands still leads no more; when it is continued, those calls end that would
 * on the host (slot->still; region/wait.c, region/call.c).
 *
 * An init, pid 1 of a PID namespace, gets no signal that would end it, except by its own
 * faults; and while it is traced these do not end it either: it would repeat the faulting
 * instruction for ever. So when a thread of an init stops for a fault without a handler, the
 * tracer sets it back to the instruction and lets go of it; then the fault ends it as on the
 * host.
 *
 * Requests (seize, let go) come from the thread that watches the members. This
 * one sleeps in wait4(2) meanwhile, which a signal interrupts; one that comes
 * just before the call would be lost, so it is sent until it is answered.
 *
 * Limits: a thread that waits for its vfork child cannot be stopped, so that
 * letting go of it takes until the child is done. The freezer of control groups
 * is not seen here: it freezes the owner of the virtual CPU, too.
 */
#include "holder/members/tracer.h"

#include "host/sys.h"
#include "isa/isa.h"
#include "region/finish.h"
#include "region/process.h"
#include "region/pump.h"
#include "region/vcpu.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

#define WAKE_SIGNAL SIGUSR1
#define WAKE_NS     1000000    /* how soon it is sent again */
#define LEAVING_NS  50000      /* how often a thread that is to stand still is looked at */
#define LEAVING_MAX 64         /* such threads at a time */
#define RELEASE_NS  20000000   /* for a thread that cannot be stopped to show as such */
#define RELEASE_MAX 5000000000 /* for one that can: on a busy machine it has to come to it */

/* How a thread's last stop is told from others: the upper half of its status. */
#define EVENT(status) ((status) >> 16)

enum order { NONE, SEIZE, RELEASE, END };

struct tracer {
	struct guise_stack *s;
	pthread_t thread;
	pid_t self, tid; /* the holder's, and this thread's: by that it is known as a tracer */
	/* Threads that run although their process stands still. */
	pid_t leaving[LEAVING_MAX];
	unsigned int n_leaving;
	unsigned int n_still; /* waits of threads that were stopped */

	pthread_mutex_t turn; /* held by a thread that gives an order */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	enum order order;
	pid_t pid;
	int result;
};

static long request(enum __ptrace_request what, pid_t tid, unsigned long addr, unsigned long data)
{
	return host_sys(SYS_ptrace, what, tid, addr, data);
}

/* The slot by which this thread owns the virtual CPU; NULL: it does not. */
static struct guise_slot *owned_by(const struct tracer *t, pid_t tid)
{
	uint32_t owner = guise_lock_owner(t->s->region);
	struct guise_slot *slot = &t->s->slots[owner];
	struct guise_thread st;

	if (!owner || !guise_thread_read(tid, &st) || st.inner != slot->tid ||
	    st.process != t->s->region->procs[slot->proc].pid)
		return NULL;
	return slot;
}

struct victim {
	pid_t tid;
};

static ssize_t read_victim(void *context, uint64_t from, void *to, size_t bytes)
{
	const struct victim *v = context;
	ssize_t done = 0;

	/* Piece by piece: what lies beyond the end of its memory is not read. */
	while (bytes) {
		size_t piece = 4096 - (from & 4095);
		struct iovec here, there;
		long n;

		piece = piece < bytes ? piece : bytes;
		here = (struct iovec){ (char *)to + done, piece };
		there = (struct iovec){ (void *)from, piece };
		n = host_sys(SYS_process_vm_readv, v->tid, &here, 1, &there, 1, 0);
		if (n <= 0)
			break;
		done += n;
		from += (size_t)n;
		bytes -= (size_t)n;
	}
	return done;
}

/* A thread that is about to end: nothing of it is torn down yet. */
static void ends(struct tracer *t, pid_t tid)
{
	struct guise_slot *slot = owned_by(t, tid);
	struct victim victim = { tid };
	struct guise_killed k = { .slot = slot, .read = read_victim, .context = &victim };
	struct iovec registers = { &k.regs, sizeof(k.regs) };

	if (!slot)
		return;
	if (request(PTRACE_GETREGSET, tid, NT_PRSTATUS, (unsigned long)&registers) ||
	    !guise_finish(t->s, &k)) {
		guise_declare_dead(t->s);
	}
}

static bool stops(int sig)
{
	return sig == SIGSTOP || sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU;
}

/* It may wait in the stack, as a leader for example, where others rely on it. */
static void tell_stack(struct tracer *t, pid_t tid, uint32_t still)
{
	struct guise_region *r = t->s->region;
	struct guise_thread st;

	if (!guise_thread_read(tid, &st))
		return;
	for (unsigned int i = 1; i < guise_slots_end(t->s); i++) {
		struct guise_slot *slot = &t->s->slots[i];

		if (!__atomic_load_n(&slot->used, __ATOMIC_ACQUIRE) || slot->tid != st.inner ||
		    r->procs[slot->proc].pid != st.process)
			continue;
		if (still == GUISE_STILL)
			t->n_still++;
		else if (__atomic_load_n(&slot->still, __ATOMIC_RELAXED) != GUISE_STILL)
			continue;
		else if (t->n_still)
			t->n_still--;
		__atomic_store_n(&slot->still, still, __ATOMIC_RELAXED);
	}
	guise_pump_wake(t->s);
}

static void stay(struct tracer *t, pid_t tid)
{
	if (t->n_leaving < LEAVING_MAX && owned_by(t, tid)) {
		t->leaving[t->n_leaving++] = tid;
		request(PTRACE_CONT, tid, 0, 0);
	} else {
		tell_stack(t, tid, GUISE_STILL);
		request(PTRACE_LISTEN, tid, 0, 0);
	}
}

/* Those that were let run although their process stands still. */
static void look_at_leaving(struct tracer *t)
{
	for (unsigned int i = 0; i < t->n_leaving;) {
		pid_t tid = t->leaving[i];

		if (owned_by(t, tid)) {
			i++;
			continue;
		}
		t->leaving[i] = t->leaving[--t->n_leaving];
		request(PTRACE_INTERRUPT, tid, 0, 0);
	}
}

/* Whether a signal comes from what the thread itself does, and is about to end an init. */
static bool ends_init(pid_t tid, int sig, const siginfo_t *info)
{
	const unsigned long faults = 1ul << SIGSEGV | 1ul << SIGBUS | 1ul << SIGILL |
				     1ul << SIGFPE | 1ul << SIGTRAP;
	struct guise_thread thread, first;

	/* A signal that a process has sent has no code above 0. */
	return faults >> sig & 1 && info->si_code > 0 && guise_thread_read(tid, &thread) &&
	       !(thread.caught >> (sig - 1) & 1) && guise_thread_read(thread.process, &first) &&
	       first.inner == 1;
}

/* Back to the instruction, where the signal came when it was over. */
static void back(pid_t tid, const siginfo_t *info)
{
	struct user_regs_struct regs;
	struct iovec registers = { &regs, sizeof(regs) };

	if (info->si_signo == SIGTRAP && info->si_code == SI_KERNEL &&
	    !request(PTRACE_GETREGSET, tid, NT_PRSTATUS, (unsigned long)&registers) &&
	    guise_isa_before_trap(&regs))
		request(PTRACE_SETREGSET, tid, NT_PRSTATUS, (unsigned long)&registers);
}

static void signalled(struct tracer *t, pid_t tid, int sig, enum __ptrace_request go_on)
{
	siginfo_t info;

	if (!request(PTRACE_GETSIGINFO, tid, 0, (unsigned long)&info) &&
	    ends_init(tid, sig, &info)) {
		ends(t, tid);
		back(tid, &info);
		go_on = PTRACE_DETACH;
	}
	request(go_on, tid, 0, (unsigned long)sig);
}

/* One stop of a thread, to which it is answered here; then it goes on, or is let go. */
static void stopped(struct tracer *t, pid_t tid, int status, bool release)
{
	enum __ptrace_request go_on = release ? PTRACE_DETACH : PTRACE_CONT;
	int sig = WSTOPSIG(status);

	switch (EVENT(status)) {
	case 0:
		signalled(t, tid, sig, go_on);
		break;
	case PTRACE_EVENT_EXIT:
		ends(t, tid);
		request(PTRACE_CONT, tid, 0, 0);
		break;
	case PTRACE_EVENT_EXEC:
		request(PTRACE_DETACH, tid, 0, 0);
		break;
	case PTRACE_EVENT_STOP:
		if (stops(sig) && !release) {
			stay(t, tid);
			break;
		}
		if (t->n_still)
			tell_stack(t, tid, GUISE_CONTINUED);
		/* fall through */
	default:
		request(go_on, tid, 0, 0);
	}
}

/* Calls f for each thread of a process; how many there are that it said yes to. */
static int each_thread(struct tracer *t, pid_t pid, bool (*f)(struct tracer *t, pid_t tid))
{
	char path[32];
	struct dirent *entry;
	int yes = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	if (!dir)
		return 0;
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			yes += f(t, (pid_t)atoi(entry->d_name));
	closedir(dir);
	return yes;
}

static bool seize_one(struct tracer *t, pid_t tid)
{
	const unsigned long options = PTRACE_O_TRACEEXIT | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC;
	struct guise_thread st;
	long ret = request(PTRACE_SEIZE, tid, 0, options);

	if (!ret)
		return true;
	/* One that a seized thread has made is ours already. */
	if (ret == -EPERM && guise_thread_read(tid, &st) && st.tracer == t->tid)
		return false;
	t->result = (int)ret;
	return false;
}

static int seize(struct tracer *t, pid_t pid)
{
	t->result = 0;
	/* Threads may come while we look. */
	while (each_thread(t, pid, seize_one))
		;
	return t->result;
}

/* As a thread does that waits for its vfork child. */
static bool cannot_stop(pid_t tid)
{
	struct guise_process st;

	return !guise_process_read(tid, &st) || st.state == 'D';
}

/* True while it is still ours. */
static bool release_one(struct tracer *t, pid_t tid)
{
	const struct timespec pause = { 0, LEAVING_NS };
	uint64_t since = guise_host_now(), waited = 0;
	struct guise_thread st;
	int status;

	if (!guise_thread_read(tid, &st) || st.tracer != t->tid)
		return false;
	request(PTRACE_INTERRUPT, tid, 0, 0);
	do {
		long got = host_sys(SYS_wait4, tid, &status, __WALL | WNOHANG, NULL);

		if (got == tid && WIFSTOPPED(status)) {
			stopped(t, tid, status, true);
			return EVENT(status) == PTRACE_EVENT_EXIT;
		}
		if (got == tid || got == -ECHILD)
			return false;
		host_sys(SYS_nanosleep, &pause, NULL);
		waited = guise_host_now() - since;
	} while (waited < RELEASE_NS || (waited < RELEASE_MAX && !cannot_stop(tid)));
	return false;
}

static int release(struct tracer *t, pid_t pid)
{
	struct guise_thread st;

	if (!guise_thread_read(pid, &st) || st.tracer != t->tid)
		return -ESRCH;
	while (each_thread(t, pid, release_one))
		;
	return guise_thread_read(pid, &st) && st.tracer == t->tid ? -EBUSY : 0;
}

/* Answers the order, if there is one; with nothing to trace, waits for one. False: end. */
static bool obey(struct tracer *t, bool idle)
{
	bool go_on = true;

	pthread_mutex_lock(&t->lock);
	while (idle && t->order == NONE)
		pthread_cond_wait(&t->changed, &t->lock);
	if (t->order != NONE) {
		go_on = t->order != END;
		t->result = t->order == SEIZE     ? seize(t, t->pid)
			    : t->order == RELEASE ? release(t, t->pid)
						  : 0;
		t->order = NONE;
		pthread_cond_broadcast(&t->changed);
	}
	pthread_mutex_unlock(&t->lock);
	return go_on;
}

static void *trace(void *arg)
{
	const struct timespec pause = { 0, LEAVING_NS };
	struct tracer *t = arg;
	bool idle = false;
	int status;

	pthread_mutex_lock(&t->lock);
	t->tid = (pid_t)host_sys(SYS_gettid);
	pthread_cond_broadcast(&t->changed);
	pthread_mutex_unlock(&t->lock);
	while (obey(t, idle)) {
		long tid = host_sys(SYS_wait4, -1, &status,
				    __WALL | __WNOTHREAD | (t->n_leaving ? WNOHANG : 0), NULL);

		idle = tid == -ECHILD;
		if (tid > 0 && WIFSTOPPED(status))
			stopped(t, (pid_t)tid, status, false);
		if (!t->n_leaving)
			continue;
		look_at_leaving(t);
		if (tid <= 0)
			host_sys(SYS_nanosleep, &pause, NULL);
	}
	return NULL;
}

static void wake_handler(int sig)
{
	(void)sig;
}

static int order(struct tracer *t, enum order what, pid_t pid)
{
	struct timespec until;
	int result;

	pthread_mutex_lock(&t->turn);
	pthread_mutex_lock(&t->lock);
	t->order = what;
	t->pid = pid;
	pthread_cond_broadcast(&t->changed);
	while (t->order != NONE) {
		host_sys(SYS_tgkill, t->self, t->tid, WAKE_SIGNAL);
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += WAKE_NS;
		if (until.tv_nsec >= 1000000000) {
			until.tv_nsec -= 1000000000;
			until.tv_sec++;
		}
		pthread_cond_timedwait(&t->changed, &t->lock, &until);
	}
	result = t->result;
	pthread_mutex_unlock(&t->lock);
	pthread_mutex_unlock(&t->turn);
	return result;
}

struct tracer *tracer_start(struct guise_stack *s)
{
	struct sigaction act = { .sa_handler = wake_handler };
	struct tracer *t = calloc(1, sizeof(*t));
	int err = t ? 0 : ENOMEM;

	if (t) {
		t->s = s;
		t->self = (pid_t)host_sys(SYS_getpid);
		pthread_mutex_init(&t->turn, NULL);
		pthread_mutex_init(&t->lock, NULL);
		pthread_cond_init(&t->changed, NULL);
		sigaction(WAKE_SIGNAL, &act, NULL);
		err = pthread_create(&t->thread, NULL, trace, t);
	}
	if (err) {
		guise_fail(err, "the tracer thread cannot be started: %s", strerror(err));
		free(t);
		return NULL;
	}
	pthread_mutex_lock(&t->lock);
	while (!t->tid)
		pthread_cond_wait(&t->changed, &t->lock);
	pthread_mutex_unlock(&t->lock);
	return t;
}

int tracer_seize(struct tracer *t, pid_t pid)
{
	return order(t, SEIZE, pid);
}

int tracer_release(struct tracer *t, pid_t pid)
{
	return order(t, RELEASE, pid);
}

void tracer_stop(struct tracer *t)
{
	if (!t)
		return;
	order(t, END, 0);
	pthread_join(t->thread, NULL);
	pthread_cond_destroy(&t->changed);
	pthread_mutex_destroy(&t->lock);
	pthread_mutex_destroy(&t->turn);
	free(t);
}
