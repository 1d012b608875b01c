// SPDX-License-Identifier: GPL-2.0-only
/*
 * Members of one stack. Runs under guise run without the preload library (env
 * GUISE_PRELOAD=off) and joins by itself; so do the programs that it starts, which
 * are itself again.
 *
 *	member churn N	N members connect and wait; every other one is killed
 *			while it sleeps in the stack. Prints how their
 *			connections ended, and the places in use before and after
 *	member fair N	two members make system calls as fast as they can, and a
 *			third sleeps in the stack again and again. Prints what
 *			each achieved in each of N rounds, and then in one in
 *			which the two make the host's calls
 *	member lost	one is killed in the moment it owns the virtual CPU; the
 *			others, each inside in another way, say what they get
 *	member threads	a thread uses what another has opened; another process
 *			is another one to the stack, too
 */
#include "places.h"

#include "guise/guise.h"
#include "guise/syscall.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SECONDS 20 /* until what has to happen is taken for lost */

static struct guise_stack *s;

static long must(long ret, const char *what)
{
	if (ret >= 0)
		return ret;
	fprintf(stderr, "member: %s: %s (%s)\n", what, strerror((int)-ret), guise_error());
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void pause_a_little(void)
{
	const struct timespec t = { 0, 2000000 };

	nanosleep(&t, NULL);
}

/* Another member: this program with two words; its stdin and stdout are given. */
static pid_t start(const char *what, long number, int in, int out)
{
	char text[32];
	pid_t pid;

	snprintf(text, sizeof(text), "%ld", number);
	pid = fork();
	if (pid < 0)
		must(-errno, "fork");
	if (!pid) {
		/* A test that fails half way leaves none behind. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (in >= 0)
			dup2(in, 0);
		if (out >= 0)
			dup2(out, 1);
		execl("/proc/self/exe", "member", what, text, NULL);
		_exit(127);
	}
	return pid;
}

/* ---- churn ----------------------------------------------------------------------------- */

/* Connects, says a byte, and waits for one. */
static void client(int port)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	char c = 'r';
	int fd;

	must(fd = guise_socket(s, AF_INET, SOCK_STREAM, 0), "socket");
	must(guise_connect(s, fd, (struct sockaddr *)&to, sizeof(to)), "connect");
	must(guise_write(s, fd, &c, 1), "write");
	must(guise_read(s, fd, &c, 1), "read");
}

static char state_of(pid_t pid)
{
	char path[64], text[512], *p = NULL;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "r");
	if (f && fgets(text, sizeof(text), f))
		p = strrchr(text, ')');
	if (f)
		fclose(f);
	return p ? p[2] : 0;
}

/* Looks twice: it should not be on its way. */
static void wait_until_asleep(pid_t pid)
{
	double end = now() + SECONDS;
	int seen = 0;

	while (seen < 2) {
		seen = state_of(pid) == 'S' ? seen + 1 : 0;
		if (now() > end)
			must(-ETIMEDOUT, "the client does not sleep");
		pause_a_little();
	}
}

static void churn(long n)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	long closed = 0, reset = 0, left = 0, killed = 0;
	struct pollfd ready = { .events = POLLIN };
	socklen_t len = sizeof(at);
	struct places before, after;
	int listener, fd, status;
	double end;
	char c;

	must(listener = guise_socket(s, AF_INET, SOCK_STREAM, 0), "socket");
	must(guise_bind(s, listener, (struct sockaddr *)&at, sizeof(at)), "bind");
	must(guise_listen(s, listener, 8), "listen");
	must(guise_getsockname(s, listener, (struct sockaddr *)&at, &len), "getsockname");
	before = places_taken();
	for (long i = 0; i < n; i++) {
		pid_t pid = start("client", ntohs(at.sin_port), -1, -1);
		long got;

		must(fd = guise_accept4(s, listener, NULL, NULL, 0), "accept");
		must(guise_read(s, fd, &c, 1) - 1, "read");
		wait_until_asleep(pid);
		if (i % 2)
			kill(pid, SIGKILL);
		else
			must(guise_write(s, fd, &c, 1), "write");
		ready.fd = fd;
		must(guise_poll(s, &ready, 1, SECONDS * 1000) - 1, "the end is not heard of");
		got = guise_read(s, fd, &c, 1);
		closed += got == 0;
		reset += got == -ECONNRESET;
		guise_close(s, fd);
		waitpid(pid, &status, 0);
		left += WIFEXITED(status) && !WEXITSTATUS(status);
		killed += WIFSIGNALED(status);
	}
	/* The holder may take a moment to bury the last ones. */
	end = now() + SECONDS;
	do {
		pause_a_little();
		after = places_taken();
	} while ((after.slots > before.slots || after.procs > before.procs) && now() < end);
	printf("left %ld killed %ld heard %ld\n", left, killed, closed + reset);
	printf("more slots %d more processes %d\n", (int)(after.slots - before.slots),
	       (int)(after.procs - before.procs));
}

/* ---- fairness -------------------------------------------------------------------------- */

#define ROUND 0.2 /* seconds */

/* A hundred calls, of the stack or of the host. */
static void make_calls(bool of_the_host)
{
	for (int i = 0; i < 100; i++)
		if (of_the_host)
			syscall(SYS_getppid);
		else
			guise_call(s, GUISE_NR_getppid, 0, 0, 0, 0, 0, 0);
}

/* A byte on stdout: ready. For each byte from stdin a round, and how far it came in it. */
static void at_once(bool sleeps)
{
	long count;
	char c = 'r';
	double end;

	must(guise_call(s, GUISE_NR_getppid, 0, 0, 0, 0, 0, 0), "getppid");
	if (write(1, &c, 1) != 1)
		must(-EIO, "no start");
	while (read(0, &c, 1) == 1) {
		for (count = 0, end = now() + ROUND; now() < end; count++)
			if (sleeps)
				must(guise_nanosleep(s, 1000000), "sleep");
			else
				make_calls(c == 'h');
		if (write(1, &count, sizeof(count)) != sizeof(count))
			exit(1);
	}
}

static void fair(long rounds)
{
	static const char *const what[] = { "sleep", "spin", "spin" };
	int go[3][2], result[3][2];
	pid_t pid[3];
	long count;
	char c;

	for (int i = 0; i < 3; i++) {
		if (pipe(go[i]) || pipe(result[i]))
			must(-errno, "pipe");
		pid[i] = start(what[i], 0, go[i][0], result[i][1]);
		if (read(result[i][0], &c, 1) != 1)
			must(-EIO, "no member");
	}
	for (long round = 0; round < 2 * rounds; round++) {
		for (int i = 0; i < 3; i++)
			if (write(go[i][1], round % 2 ? "h" : "s", 1) != 1)
				must(-EIO, "start");
		for (int i = 0; i < 3; i++) {
			if (read(result[i][0], &count, sizeof(count)) != sizeof(count))
				must(-EIO, "no result");
			printf("%ld%c", count, round % 2 && i == 2 ? '\n' : ' ');
		}
	}
	for (int i = 0; i < 3; i++) {
		kill(pid[i], SIGKILL);
		waitpid(pid[i], NULL, 0);
	}
}

/* ---- a lost stack ------------------------------------------------------------------------ */

/* What the virtual CPU's lock says of its owner: lib/region/vcpu.h. */
#define OWNER(lock) ((lock) & ~0xc0000000u)

/* A byte on stdout: about to. Then a call that only a lost stack ends, and what it gives. */
static void inside(char how)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	int socket, other, host_ready = 0;
	struct pollfd fd = { .events = POLLIN }, host = { .fd = 0, .events = 0 };
	long ret = 0;
	char c = 'r';

	must(socket = guise_socket(s, AF_INET, SOCK_DGRAM, 0), "socket");
	must(guise_bind(s, socket, (struct sockaddr *)&any, sizeof(any)), "bind");
	fd.fd = socket;
	if (write(1, &c, 1) != 1)
		must(-EIO, "no start");
	switch (how) {
	case 'r':
		ret = guise_read(s, socket, &c, 1);
		break;
	case 'p':
		ret = guise_poll(s, &fd, 1, -1);
		break;
	case 'h':
		ret = guise_call_polling(s, &host, 1, &host_ready, GUISE_NR_read, socket, (long)&c,
					 1, 0, 0, 0);
		break;
	case 'n':
		while (!ret)
			ret = guise_nanosleep(s, 1000000);
		break;
	default:
		while (ret >= 0)
			ret = guise_call(s, GUISE_NR_getppid, 0, 0, 0, 0, 0, 0);
	}
	/* Once more, from outside. */
	other = guise_socket(s, AF_INET, SOCK_STREAM, 0);
	printf("%s %s\n", strerrorname_np((int)-ret), strerrorname_np(-other));
}

/* Stops the member again and again until it is stopped inside, as the owner, and kills it there. */
static void kill_as_owner(pid_t pid)
{
	const char *base = places_base();
	const struct guise_region *r = (const void *)(base + GUISE_OFF_HEADER);
	const struct guise_slot *slot = (const void *)(base + GUISE_OFF_SLOTS);
	double end = now() + SECONDS;
	int status;

	for (;;) {
		kill(pid, SIGSTOP);
		if (waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status))
			must(-ECHILD, "the member ended by itself");
		if (slot[OWNER(__atomic_load_n(&r->vcpu->lock, __ATOMIC_SEQ_CST))].tid == pid &&
		    __atomic_load_n(&r->vcpu->entered, __ATOMIC_SEQ_CST))
			break;
		kill(pid, SIGCONT);
		if (now() > end)
			must(-ETIMEDOUT, "the member never owns the virtual CPU");
		pause_a_little();
	}
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
}

static void lost(void)
{
	static const char how[] = "rphnc";
	int out[sizeof(how)][2];
	char text[256], c;
	pid_t pid = 0;
	ssize_t n;

	for (int i = 0; how[i]; i++) {
		if (pipe(out[i]))
			must(-errno, "pipe");
		pid = start("inside", how[i], -1, out[i][1]);
		close(out[i][1]);
		if (read(out[i][0], &c, 1) != 1)
			must(-EIO, "no member");
		if (how[i] != 'c' && how[i] != 'n')
			wait_until_asleep(pid);
	}
	kill_as_owner(pid);
	for (int i = 0; how[i + 1]; i++) {
		n = read(out[i][0], text, sizeof(text) - 1);
		text[n > 0 ? n : 0] = '\0';
		printf("%c %s", how[i], text);
	}
}

/* ---- processes and threads --------------------------------------------------------------- */

static long identity(long nr)
{
	return must(guise_call(s, nr, 0, 0, 0, 0, 0, 0), "identity");
}

struct opened {
	int fd;
	long process, thread;
};

static void *open_one(void *arg)
{
	struct opened *o = arg;

	must(o->fd = guise_socket(s, AF_INET, SOCK_STREAM, 0), "socket");
	o->process = identity(GUISE_NR_getpid);
	o->thread = identity(GUISE_NR_gettid);
	return NULL;
}

static void threads(void)
{
	struct sockaddr_in a;
	socklen_t len = sizeof(a);
	struct opened o;
	pthread_t thread;
	int status;

	must(-pthread_create(&thread, NULL, open_one, &o), "thread");
	pthread_join(thread, NULL);
	must(guise_getsockname(s, o.fd, (struct sockaddr *)&a, &len), "another thread's socket");
	printf("process %d thread %d\n", o.process == identity(GUISE_NR_getpid),
	       o.thread == identity(GUISE_NR_gettid));
	fflush(stdout);
	waitpid(start("other", o.fd, -1, -1), &status, 0);
	must(guise_close(s, o.fd), "close");
	len = sizeof(a);
	printf("closed %s\n",
	       strerrorname_np(-guise_getsockname(s, o.fd, (struct sockaddr *)&a, &len)));
	printf("process %ld\n", o.process);
}

/* Another process, with the number of the first one's socket. */
static void other(int fd)
{
	struct sockaddr_in a;
	socklen_t len = sizeof(a);
	int err = guise_getsockname(s, fd, (struct sockaddr *)&a, &len);

	printf("other %s\nprocess %ld\n", strerrorname_np(-err), identity(GUISE_NR_getpid));
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	long number = argc > 2 ? atol(argv[2]) : 0;
	int err;

	s = guise_join(-1, &err);
	if (!s)
		must(err, "join");
	if (!strcmp(what, "churn"))
		churn(number);
	else if (!strcmp(what, "client"))
		client((int)number);
	else if (!strcmp(what, "fair"))
		fair(number);
	else if (!strcmp(what, "lost"))
		lost();
	else if (!strcmp(what, "inside"))
		inside((char)number);
	else if (!strcmp(what, "threads"))
		threads();
	else if (!strcmp(what, "other"))
		other((int)number);
	else if (!strcmp(what, "spin") || !strcmp(what, "sleep"))
		at_once(what[1] == 'l');
	else {
		fprintf(stderr, "usage: member churn N | fair N | lost | threads\n");
		return 2;
	}
	return 0;
}
