// SPDX-License-Identifier: GPL-2.0-only
/*
 * The tracer: the warden has every member seized by ptrace(2).
 *
 * What it is for: a thread that is killed stops once more before anything of it is freed
 * (PTRACE_EVENT_EXIT). If it owns the virtual CPU, its section is finished (region/finish.c) before
 * the tracer lets it die. And a thread that is stopped (SIGSTOP,
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
 * The warden has no region. Which thread owns the virtual CPU it asks the carrier, who also
 * finishes the section: the warden passes on the thread's registers, and what lies on its stack
 * (carrier/sections.c). While it waits for an answer it does nothing else. A carrier that
 * gives none in ANSWER_NS (it is stopped, say) is done without, until it has given it.
 *
 * What the tracer sees of a process is told to the carrier, who has the rights of the stack's
 * user alone. So a warden with more rights traces only processes that this user could
 * trace itself (may_trace()).
 *
 * Limits: a thread that waits for its vfork child cannot be stopped, so that
 * letting go of it takes until the child is done. The freezer of control groups
 * is not seen here: it freezes the owner of the virtual CPU, too.
 */
#include "holder/warden/tracer.h"

#include "holder/warden/follower.h"

#include "holder/warden/wire.h"

#include "host/sys.h"
#include "isa/isa.h"
#include "region/process.h"
#include "region/vcpu.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif

#define LEAVING_NS  50000       /* how often a thread that is to stand still is looked at */
#define LEAVING_MAX 64          /* such threads at a time */
#define RELEASE_NS  20000000    /* for a thread that cannot be stopped to show as such */
#define RELEASE_MAX 5000000000  /* for one that can: on a busy machine it has to come to it */
#define ANSWER_NS   10000000000 /* for the carrier to answer */
#define PIECES      128         /* of a thread's memory, for one section */
#define TURN        64          /* stops, before requests are looked at */

/* How a thread's last stop is told from others: the upper half of its status. */
#define EVENT(status) ((status) >> 16)

static struct {
	int questions; /* the channel */
	struct isolation_user user;
	pid_t self;
	uint32_t number; /* of the last question */
	bool late;       /* its answer has not come yet */
	bool gone;       /* none will */
	uint32_t still;  /* threads that stand still, as the carrier counts */
	/* Threads that run although their process stands still. */
	pid_t leaving[LEAVING_MAX];
	unsigned int n_leaving;
	bool more; /* stops that wait to be looked at */
	int result;
} t;

static long request(enum __ptrace_request what, pid_t tid, unsigned long addr, unsigned long data)
{
	return host_sys(SYS_ptrace, what, tid, addr, data);
}

/* ---- questions ----------------------------------------------------------------------- */

/* The next message of that size; false: none came in time, or none will come. */
static bool hear(void *message, size_t size, uint64_t until)
{
	struct pollfd p = { .fd = t.questions, .events = POLLIN };
	struct timespec left;
	uint64_t now;
	sigset_t none;
	long n;

	sigemptyset(&none);
	for (;;) {
		n = host_sys(SYS_recvfrom, t.questions, message, size, MSG_DONTWAIT | MSG_TRUNC, 0,
			     0);
		if (n == (long)size)
			return true;
		if (n != -EAGAIN && n != -EINTR) {
			t.gone = true;
			return false;
		}
		now = guise_host_now();
		if (now >= until)
			return false;
		left = (struct timespec){ (time_t)((until - now) / 1000000000),
					  (long)((until - now) % 1000000000) };
		host_sys(SYS_ppoll, &p, 1, &left, &none, 8); /* a signal is passed on meanwhile */
	}
}

static bool say(const void *message, size_t size)
{
	if (host_sys(SYS_sendto, t.questions, message, size, MSG_NOSIGNAL | MSG_DONTWAIT, 0, 0) >=
	    0)
		return true;
	t.gone = true;
	return false;
}

/* Piece by piece: what lies beyond the end of its memory is not read. */
static int32_t read_memory(pid_t tid, uint64_t from, char *to, size_t bytes)
{
	int32_t done = 0;

	while (bytes) {
		size_t piece = 4096 - (from & 4095);
		struct iovec here, there;
		long n;

		piece = piece < bytes ? piece : bytes;
		here = (struct iovec){ to + done, piece };
		there = (struct iovec){ (void *)from, piece };
		n = host_sys(SYS_process_vm_readv, tid, &here, 1, &there, 1, 0);
		if (n <= 0)
			break;
		done += (int32_t)n;
		from += (size_t)n;
		bytes -= (size_t)n;
	}
	return done;
}

/* tid: a thread that has stopped, whose memory may be asked for; 0: none. */
static bool answered(struct warden_reply *r, pid_t tid)
{
	const uint64_t until = guise_host_now() + ANSWER_NS;
	struct warden_memory m;
	int pieces = 0;

	while (hear(r, sizeof(*r), until)) {
		if (r->number != t.number)
			continue; /* it is too late for that one */
		if (!r->bytes)
			return true;
		if (!tid || r->bytes > sizeof(m.data) || ++pieces > PIECES)
			return false;
		memset(&m, 0, sizeof(m));
		m.number = r->number;
		m.bytes = read_memory(tid, r->address, m.data, r->bytes);
		if (!say(&m, sizeof(m)))
			return false;
	}
	return false;
}

/* False: there is no answer. */
static bool ask(enum warden_question_what what, const struct warden_question *about, pid_t tid,
		struct warden_reply *r)
{
	struct warden_question q = { 0 };

	while (t.late && !t.gone) { /* whether it has come meanwhile */
		if (!hear(r, sizeof(*r), 0))
			return false;
		t.late = r->number != t.number || r->bytes;
	}
	if (t.gone)
		return false;
	if (about)
		q = *about;
	q.what = what;
	q.number = ++t.number;
	if (!say(&q, sizeof(q)))
		return false;
	t.late = !answered(r, tid);
	if (t.late)
		return false;
	t.still = r->still;
	return true;
}

/* Whether this thread owns the virtual CPU; which one it is. */
static bool owns(pid_t tid, struct warden_thread *which)
{
	struct warden_reply r;
	struct guise_thread st;

	if (!ask(WARDEN_OWNER, NULL, 0, &r) || !r.owner.process || !guise_thread_read(tid, &st))
		return false;
	*which = (struct warden_thread){ st.process, st.inner };
	return st.process == r.owner.process && st.inner == r.owner.inner;
}

/* A thread that is about to end: nothing of it is torn down yet. */
static void ends(pid_t tid)
{
	struct warden_question q = { 0 };
	struct iovec registers = { &q.regs, sizeof(q.regs) };
	struct warden_reply r;

	if (!owns(tid, &q.thread))
		return;
	/* Without its registers the carrier says that the stack is lost. */
	if (request(PTRACE_GETREGSET, tid, NT_PRSTATUS, (unsigned long)&registers))
		memset(&q.regs, 0, sizeof(q.regs));
	ask(WARDEN_ENDS, &q, tid, &r);
}

/* It may wait in the stack, as a leader for example, where others rely on it. */
static void tell_stack(pid_t tid, enum warden_question_what what)
{
	struct warden_question q = { 0 };
	struct warden_reply r;
	struct guise_thread st;

	if (!guise_thread_read(tid, &st))
		return;
	q.thread = (struct warden_thread){ st.process, st.inner };
	ask(what, &q, 0, &r);
}

/* ---- stops ----------------------------------------------------------------------------- */

static bool stops(int sig)
{
	return sig == SIGSTOP || sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU;
}

static void stay(pid_t tid)
{
	struct warden_thread which;

	if (t.n_leaving < LEAVING_MAX && owns(tid, &which)) {
		t.leaving[t.n_leaving++] = tid;
		request(PTRACE_CONT, tid, 0, 0);
	} else {
		tell_stack(tid, WARDEN_STILL);
		request(PTRACE_LISTEN, tid, 0, 0);
	}
}

/* Those that were let run although their process stands still. */
static void look_at_leaving(void)
{
	for (unsigned int i = 0; i < t.n_leaving;) {
		pid_t tid = t.leaving[i];
		struct warden_thread which;

		if (owns(tid, &which)) {
			i++;
			continue;
		}
		t.leaving[i] = t.leaving[--t.n_leaving];
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

static void signalled(pid_t tid, int sig, enum __ptrace_request go_on)
{
	siginfo_t info;

	if (!request(PTRACE_GETSIGINFO, tid, 0, (unsigned long)&info) &&
	    ends_init(tid, sig, &info)) {
		ends(tid);
		back(tid, &info);
		go_on = PTRACE_DETACH;
	}
	request(go_on, tid, 0, (unsigned long)sig);
}

/* One stop of a thread, to which it is answered here; then it goes on, or is let go. */
static void stopped(pid_t tid, int status, bool release)
{
	enum __ptrace_request go_on = release ? PTRACE_DETACH : PTRACE_CONT;
	int sig = WSTOPSIG(status);

	switch (EVENT(status)) {
	case 0:
		signalled(tid, sig, go_on);
		break;
	case PTRACE_EVENT_EXIT:
		ends(tid);
		request(PTRACE_CONT, tid, 0, 0);
		break;
	case PTRACE_EVENT_EXEC:
		request(PTRACE_DETACH, tid, 0, 0);
		break;
	case PTRACE_EVENT_STOP:
		if (stops(sig) && !release) {
			stay(tid);
			break;
		}
		if (t.still)
			tell_stack(tid, WARDEN_CONTINUED);
		/* fall through */
	default:
		request(go_on, tid, 0, 0);
	}
}

/* Calls f for each thread of a process; how many there are that it said yes to. */
static int each_thread(pid_t pid, bool (*f)(pid_t tid))
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
			yes += f((pid_t)atoi(entry->d_name));
	closedir(dir);
	return yes;
}

static bool seize_one(pid_t tid)
{
	const unsigned long options = PTRACE_O_TRACEEXIT | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC;
	struct guise_thread st;
	long ret = request(PTRACE_SEIZE, tid, 0, options);

	if (!ret)
		return true;
	/* One that a seized thread has made is ours already. */
	if (ret == -EPERM && guise_thread_read(tid, &st) && st.tracer == t.self)
		return false;
	t.result = (int)ret;
	return false;
}

static int seize(pid_t pid)
{
	t.result = 0;
	/* Threads may come while we look. */
	while (each_thread(pid, seize_one))
		;
	return t.result;
}

/* As a thread does that waits for its vfork child. */
static bool cannot_stop(pid_t tid)
{
	struct guise_process st;

	return !guise_process_read(tid, &st) || st.state == 'D';
}

/* True while it is still ours. */
static bool release_one(pid_t tid)
{
	const struct timespec pause = { 0, LEAVING_NS };
	uint64_t since = guise_host_now(), waited = 0;
	struct guise_thread st;
	int status;

	if (!guise_thread_read(tid, &st) || st.tracer != t.self)
		return false;
	request(PTRACE_INTERRUPT, tid, 0, 0);
	do {
		long got = host_sys(SYS_wait4, tid, &status, __WALL | WNOHANG, NULL);

		if (got == tid && WIFSTOPPED(status)) {
			stopped(tid, status, true);
			return EVENT(status) == PTRACE_EVENT_EXIT;
		}
		if (got == tid || got == -ECHILD)
			return false;
		host_sys(SYS_nanosleep, &pause, NULL);
		waited = guise_host_now() - since;
	} while (waited < RELEASE_NS || (waited < RELEASE_MAX && !cannot_stop(tid)));
	return false;
}

int tracer_release(pid_t pid)
{
	struct guise_thread st;

	if (!guise_thread_read(pid, &st) || st.tracer != t.self)
		return -ESRCH;
	while (each_thread(pid, release_one))
		;
	return guise_thread_read(pid, &st) && st.tracer == t.self ? -EBUSY : 0;
}

/* ---- whose they are --------------------------------------------------------------------- */

/* Four numbers of a line of status are all this one. */
static bool are_all(const char *text, const char *name, unsigned int number)
{
	const char *at = strstr(text, name);
	unsigned int n[4];

	return at && sscanf(at + strlen(name), "%u %u %u %u", n, n + 1, n + 2, n + 3) == 4 &&
	       n[0] == number && n[1] == number && n[2] == number && n[3] == number;
}

/* As ptrace(2) would decide for a process of the stack's user. Without rights of its own the
 * warden leaves it to the host's kernel. */
static bool may_trace(pid_t pid)
{
	char path[32], text[GUISE_PROCESS_BYTES];
	unsigned long long permitted;
	const char *at;
	struct stat st;
	size_t n;
	FILE *f;

	if (!t.user.uid || geteuid() == t.user.uid)
		return true;
	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	/* One that forbids to be looked at is root's here. */
	if (stat(path, &st) || st.st_uid != t.user.uid)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	at = strstr(text, "\nCapPrm:");
	return at && sscanf(at, "\nCapPrm: %llx", &permitted) == 1 && !permitted &&
	       are_all(text, "\nUid:", t.user.uid) && are_all(text, "\nGid:", t.user.gid);
}

int tracer_seize(pid_t pid, enum untraced *why)
{
	/* What is found by its number is the process that it was. */
	int process = (int)host_sys(SYS_pidfd_open, pid, 0), err;

	if (process == -ESRCH || process == -EINVAL) {
		*why = UNTRACED_REFUSED;
		return -ESRCH;
	}
	err = may_trace(pid) ? seize(pid) : -EPERM;
	/* It may have got other rights meanwhile. */
	if (!err && (!may_trace(pid) || (process >= 0 && host_sys(SYS_pidfd_send_signal, process, 0,
								  NULL, 0) == -ESRCH))) {
		tracer_release(pid);
		err = -EPERM;
	}
	if (process >= 0)
		host_sys(SYS_close, process);
	*why = err ? untraced_why(pid, t.user.uid) : UNTRACED_NOT;
	return err;
}

/* ---- the warden's turn ------------------------------------------------------------------- */

void tracer_begin(int questions, const struct isolation_user *user)
{
	t.questions = questions;
	t.user = *user;
	t.self = (pid_t)host_sys(SYS_getpid);
}

bool tracer_turn(pid_t child, int *how)
{
	int status;

	/* First: a stop that comes while the carrier answers is then still looked at below. Its
	 * signal is spent, hear() lets it through. */
	look_at_leaving();
	t.more = true;
	for (int i = 0; i < TURN && t.more; i++) {
		long tid = host_sys(SYS_wait4, -1, &status, __WALL | WNOHANG, NULL);

		t.more = tid > 0;
		if (!t.more)
			break;
		if (WIFSTOPPED(status)) {
			stopped((pid_t)tid, status, false);
		} else if (tid == child) {
			*how = status;
			return true;
		} else {
			follower_ended((pid_t)tid, status);
		}
	}
	return false;
}

long tracer_patience(void)
{
	return t.more ? 0 : t.n_leaving ? LEAVING_NS : -1;
}
