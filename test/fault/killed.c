// SPDX-License-Identifier: GPL-2.0-only
/*
 * Members of one stack end at random moments, and others go on:
 *
 *	killed HOW LOAD ROUNDS [SECONDS]
 *
 * HOW	kill	by SIGKILL from outside
 *	exit	by _exit() of one thread, others being inside
 *	exec	by exec, likewise
 *	thread	a thread of it by pthread_exit, others being inside; then it is killed
 *	stop	it is only stopped for a while, and goes on; the others must, too
 * LOAD	bulk	sends as fast as it can
 *	rr	a byte there, a byte back
 *	light	the same, with pauses
 *
 * This program serves; each round another process is the client, with two
 * connections and a thread for each. It ends after so many rounds or seconds.
 * Printed are the rounds, how often the holder had to finish a section, whether
 * the stack was lost, and what is there more than before: places of threads and
 * processes, sockets, KiB of memory.
 */
#include "../region/places.h"

#include "guise/guise.h"
#include "guise/syscall.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS 2
#define SECONDS     60 /* until what has to happen is taken for lost */
#define MEMBERS     3  /* when a process looks: the holder, this server, and that process */

static const char *load;
static uint64_t served; /* bytes: that the others go on */
static uint32_t open_here;

static bool serving; /* this is the process that counts */
static long n_rounds;
static pthread_t main_thread;
static pthread_t of_server[3]; /* threads that end only when the stack is lost */

static void count(bool lost)
{
	const struct guise_region *r = (const void *)(places_base() + GUISE_OFF_HEADER);

	printf("rounds %ld finished %u lost %d\n", n_rounds, r->vcpu->finished, lost);
}

static bool lost(void)
{
	const struct guise_region *r = (const void *)(places_base() + GUISE_OFF_HEADER);

	return r->dead;
}

/* When the stack is lost, threads that wait in it, or call it, get an error in time. */
static __attribute__((noreturn)) void end_lost(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += SECONDS;
	for (int i = 0; i < 3; i++)
		if (pthread_timedjoin_np(of_server[i], NULL, &until)) {
			fprintf(stderr, "killed: a thread is not told that the stack is lost\n");
			exit(1);
		}
	while (__atomic_load_n(&open_here, __ATOMIC_ACQUIRE) && time(NULL) < until.tv_sec)
		usleep(1000);
	if (open_here || socket(AF_INET, SOCK_STREAM, 0) >= 0 || errno != ENETDOWN) {
		fprintf(stderr, "killed: the stack is lost, %u connections wait, errno %d\n",
			open_here, errno);
		exit(1);
	}
	count(true);
	exit(0);
}

static void must(bool good, const char *what)
{
	if (good)
		return;
	if (lost() && !pthread_equal(pthread_self(), main_thread))
		pthread_exit(NULL);
	if (serving && lost())
		end_lost();
	fprintf(stderr, "killed: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void pause_ns(long ns)
{
	const struct timespec t = { 0, ns };

	nanosleep(&t, NULL);
}

/* ---- the client that ends -------------------------------------------------------------- */

static void *send_always(void *arg)
{
	static char buf[65536];
	int fd = *(int *)arg;

	for (;;) {
		if (!strcmp(load, "bulk")) {
			if (send(fd, buf, sizeof(buf), 0) < 0)
				return NULL;
			continue;
		}
		if (send(fd, buf, 1, 0) != 1 || recv(fd, buf, 1, 0) != 1)
			return NULL;
		if (!strcmp(load, "light"))
			pause_ns(100000);
	}
}

static void *leave(void *arg)
{
	send(*(int *)arg, "x", 1, 0);
	pthread_exit(NULL);
}

static void client(const char *how, int port, long pause)
{
	static int fd[CONNECTIONS + 1];
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	pthread_t thread;
	int on = 1;

	for (int i = 0; i <= CONNECTIONS; i++) {
		fd[i] = socket(AF_INET, SOCK_STREAM, 0);
		must(fd[i] >= 0 && !connect(fd[i], (struct sockaddr *)&to, sizeof(to)), "connect");
		setsockopt(fd[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	}
	for (int i = 0; i < CONNECTIONS; i++)
		must(!pthread_create(&thread, NULL, send_always, &fd[i]), "thread");
	must(write(1, "r", 1) == 1, "ready");
	pause_ns(pause);
	if (!strcmp(how, "exit"))
		_exit(0);
	if (!strcmp(how, "exec"))
		execl("/bin/true", "true", (char *)NULL);
	while (!strcmp(how, "thread"))
		if (!pthread_create(&thread, NULL, leave, &fd[CONNECTIONS]))
			pthread_join(thread, NULL);
	for (;;)
		pause_ns(500000000);
}

/* ---- the server that goes on ----------------------------------------------------------- */

static void *serve(void *arg)
{
	int fd = (int)(intptr_t)arg;
	static __thread char buf[65536];
	ssize_t n;

	while ((n = recv(fd, buf, sizeof(buf), 0)) > 0) {
		__atomic_add_fetch(&served, (uint64_t)n, __ATOMIC_RELAXED);
		if (n == 1 && send(fd, buf, 1, MSG_NOSIGNAL) != 1)
			break;
	}
	close(fd);
	__atomic_sub_fetch(&open_here, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void *accept_all(void *arg)
{
	int listener = *(int *)arg, fd;
	pthread_t thread;

	while ((fd = accept(listener, NULL, NULL)) >= 0) {
		__atomic_add_fetch(&open_here, 1, __ATOMIC_RELEASE);
		must(!pthread_create(&thread, NULL, serve, (void *)(intptr_t)fd), "thread");
		pthread_detach(thread);
	}
	return NULL;
}

/* Two threads of this process that never stop: whatever ends, they go on. */
static void *go_on(void *arg)
{
	struct sockaddr_in *to = arg;
	int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
	char c = 0;

	must(fd >= 0 && !connect(fd, (struct sockaddr *)to, sizeof(*to)), "connect");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	while (send(fd, &c, 1, 0) == 1 && recv(fd, &c, 1, 0) == 1)
		pause_ns(200000);
	return NULL;
}

/* ---- what there is --------------------------------------------------------------------- */

struct there {
	long sockets, kib;
	struct places places;
};

/* What the stack's kernel reports, read by a process of its own that joins by itself. */
static void look(void)
{
	char text[1024] = "", *at;
	struct guise_stack *s = guise_join(-1, NULL);
	struct places places;
	struct sysinfo info;
	long used = -1;

	must(s, "join");
	guise_read_file(s, "/proc/net/sockstat", text, sizeof(text));
	at = strstr(text, "sockets: used ");
	if (at)
		used = atol(at + 14);
	memset(&info, 0, sizeof(info));
	guise_call(s, GUISE_NR_sysinfo, (long)&info, 0, 0, 0, 0, 0);
	places = places_taken();
	printf("%ld %ld %u %u\n", used, (long)(info.freeram * info.mem_unit / 1024), places.slots,
	       places.procs);
}

static pid_t start(char *const words[], int *out, bool preloaded)
{
	int pipes[2];
	pid_t pid;

	must(!pipe2(pipes, O_CLOEXEC), "pipe");
	pid = fork();
	must(pid >= 0, "fork");
	if (!pid) {
		if (!preloaded)
			setenv("GUISE_PRELOAD", "off", 1);
		dup2(pipes[1], 1);
		execv("/proc/self/exe", words);
		_exit(127);
	}
	close(pipes[1]);
	*out = pipes[0];
	return pid;
}

static struct there what_is_there(void)
{
	char *const words[] = { "killed", "look", NULL };
	char text[64] = "";
	struct there t;
	int out, status;
	pid_t pid = start(words, &out, false);

	must(read(out, text, sizeof(text) - 1) > 0, "no look at the stack");
	close(out);
	waitpid(pid, &status, 0);
	must(sscanf(text, "%ld %ld %u %u", &t.sockets, &t.kib, &t.places.slots, &t.places.procs) ==
		     4,
	     "look");
	return t;
}

/* The same when all others are buried, which may take a moment. */
static struct there what_is_there_alone(void)
{
	double end = now() + SECONDS;
	struct there t;

	do {
		pause_ns(20000000);
		t = what_is_there();
	} while (t.places.procs > MEMBERS && now() < end);
	return t;
}

/* ---- rounds ---------------------------------------------------------------------------- */

/* The others go on: within the time their bytes move. */
static void others_go_on(void)
{
	uint64_t before = __atomic_load_n(&served, __ATOMIC_RELAXED);
	double end = now() + SECONDS;

	while (__atomic_load_n(&served, __ATOMIC_RELAXED) == before && !lost() && now() < end)
		pause_ns(50000);
	errno = ETIMEDOUT;
	must(__atomic_load_n(&served, __ATOMIC_RELAXED) != before, "the others stand still");
}

static void one(const char *how, int port, long random)
{
	char number[16], pause[16];
	char *const words[] = {
		"killed", "client", (char *)how, (char *)load, number, pause, NULL
	};
	int out, status;
	pid_t pid;
	char c;

	snprintf(number, sizeof(number), "%d", port);
	snprintf(pause, sizeof(pause), "%ld", random);
	pid = start(words, &out, true);
	must(read(out, &c, 1) == 1, "no client");
	if (!strcmp(how, "stop")) {
		for (int i = 0; i < 4; i++) {
			pause_ns(random / 4);
			kill(pid, SIGSTOP);
			must(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status),
			     "it does not stop");
			others_go_on();
			kill(pid, SIGCONT);
			must(waitpid(pid, &status, WCONTINUED) == pid && WIFCONTINUED(status),
			     "it does not go on");
		}
		kill(pid, SIGKILL);
	} else if (strcmp(how, "exit") && strcmp(how, "exec")) {
		pause_ns(random);
		kill(pid, SIGKILL);
	}
	must(waitpid(pid, &status, 0) == pid, "wait");
	close(out);
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct there before, after;
	socklen_t len = sizeof(at);
	int listener;
	long rounds;
	double end;

	main_thread = pthread_self();
	signal(SIGPIPE, SIG_IGN);
	if (argc == 2 && !strcmp(argv[1], "look")) {
		look();
		return 0;
	}
	if (argc == 6 && !strcmp(argv[1], "client")) {
		load = argv[3];
		client(argv[2], atoi(argv[4]), atol(argv[5]));
	}
	if (argc < 4) {
		fprintf(stderr, "usage: killed kill|exit|exec|thread|stop bulk|rr|light ROUNDS "
				"[SECONDS]\n");
		return 2;
	}
	load = argv[2];
	rounds = atol(argv[3]);
	end = now() + (argc > 4 ? atof(argv[4]) : 1e9);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	must(listener >= 0 && !bind(listener, (struct sockaddr *)&at, len) &&
		     !listen(listener, 64) && !getsockname(listener, (struct sockaddr *)&at, &len),
	     "listen");
	must(!pthread_create(&of_server[0], NULL, accept_all, &listener), "thread");
	for (int i = 1; i < 3; i++)
		must(!pthread_create(&of_server[i], NULL, go_on, &at), "thread");
	others_go_on();
	srandom((unsigned int)getpid());
	/* The first ones fill caches. */
	serving = true;
	for (int i = 0; i < 5; i++)
		one(argv[1], ntohs(at.sin_port), 1000000);
	before = what_is_there_alone();
	for (; n_rounds < rounds && now() < end; n_rounds++) {
		one(argv[1], ntohs(at.sin_port), random() % 3000000);
		others_go_on();
	}
	if (lost())
		end_lost();
	count(false);
	end = now() + SECONDS;
	do {
		after = what_is_there_alone();
	} while ((after.places.slots > before.places.slots ||
		  after.places.procs > before.places.procs || after.sockets > before.sockets) &&
		 now() < end);
	printf("threads %d processes %d sockets %ld KiB %ld\n",
	       (int)(after.places.slots - before.places.slots),
	       (int)(after.places.procs - before.places.procs), after.sockets - before.sockets,
	       before.kib - after.kib);
	return 0;
}
