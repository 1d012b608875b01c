// SPDX-License-Identifier: GPL-2.0-only
/*
 * Stacks that a process makes for itself. Usage: stacks WHAT
 *
 *	pair		two of them talk over a pair, each with sysctls of its own
 *	traceless	what descriptors and mappings are left after they have ended
 *	threads		whether the places of threads that ended are free again
 *	errors		what is said when something is asked for that cannot be
 *	image FILE	one with that kernel image
 *	bases N		where N of them lie that are made one after the other, and then those
 *			that have an index
 */
#include "places.h"

#include "guise/guise.h"
#include "guise/syscall.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#define SECONDS 20 /* until what has to happen is taken for lost */

static long must(long ret, const char *what)
{
	if (ret >= 0)
		return ret;
	fprintf(stderr, "stacks: %s: %s (%s)\n", what, strerror((int)-ret), guise_error());
	exit(1);
}

static struct guise_stack *create(const char *name)
{
	struct guise_options opt = GUISE_OPTIONS_INIT;
	struct guise_stack *s;
	int err;

	opt.name = name;
	opt.memory = 64 << 20;
	s = guise_create(&opt, &err);
	if (!s)
		must(err, "create");
	return s;
}

static void put_on(struct guise_stack *s, const char *addr, const char *cc)
{
	must(guise_addr_add(s, "eth0", addr), "address");
	must(guise_link_set(s, "eth0", 1), "up");
	must(guise_sysctl_set(s, "net.ipv4.tcp_congestion_control", cc), "sysctl");
}

/* size bytes from a to b, the receiver in this thread as the sender. */
static long converse(struct guise_stack *a, struct guise_stack *b, const char *to, long size)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(5001) };
	long sent = 0, got = 0, right = 0, n;
	char buf[16384];
	int out, in, listener;

	inet_pton(AF_INET, to, &at.sin_addr);
	must(listener = guise_socket(b, AF_INET, SOCK_STREAM, 0), "socket");
	must(guise_bind(b, listener, (struct sockaddr *)&at, sizeof(at)), "bind");
	must(guise_listen(b, listener, 1), "listen");
	must(out = guise_socket(a, AF_INET, SOCK_STREAM, 0), "socket");
	must(guise_connect(a, out, (struct sockaddr *)&at, sizeof(at)), "connect");
	must(in = guise_accept4(b, listener, NULL, NULL, 0), "accept");
	while (got < size) {
		if (sent < size) {
			for (long i = 0; i < (long)sizeof(buf); i++)
				buf[i] = (char)((sent + i) % 251);
			n = size - sent < (long)sizeof(buf) ? size - sent : (long)sizeof(buf);
			n = guise_sendto(a, out, buf, (size_t)n, MSG_DONTWAIT, NULL, 0);
			if (n != -EAGAIN)
				sent += must(n, "send");
		}
		n = guise_recvfrom(b, in, buf, sizeof(buf), sent < size ? MSG_DONTWAIT : 0, NULL,
				   NULL);
		if (n == -EAGAIN)
			continue;
		must(n - 1, "receive");
		for (long i = 0; i < n; i++)
			right += buf[i] == (char)((got + i) % 251);
		got += n;
	}
	guise_close(a, out);
	guise_close(b, in);
	guise_close(b, listener);
	return right;
}

static void pair(void)
{
	struct guise_stack *a = create("a"), *b = create("b");
	char one[64], other[64];

	must(guise_pair(a, "eth0", b, "eth0"), "pair");
	put_on(a, "10.0.0.1/24", "westwood");
	put_on(b, "10.0.0.2/24", "vegas");
	printf("right %ld\n", converse(a, b, "10.0.0.2", 1000000));
	printf("back %ld\n", converse(b, a, "10.0.0.1", 1000000));
	must(guise_sysctl_get(a, "net.ipv4.tcp_congestion_control", one, sizeof(one)), "get");
	must(guise_sysctl_get(b, "net/ipv4/tcp_congestion_control", other, sizeof(other)), "get");
	printf("sysctl %s %s\n", one, other);
	guise_leave(a);
	guise_leave(b);
}

/* ---- traces ---------------------------------------------------------------------------- */

static int count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (d && readdir(d))
		n++;
	closedir(d);
	return n;
}

static int count_guise_maps(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];
	int n = 0;

	while (f && fgets(line, sizeof(line), f)) {
		unsigned long from = strtoul(line, NULL, 16);

		n += strstr(line, "memfd:guise") || strstr(line, "guise-kernel") ||
		     (from >= 0x7e9000000000 && from < 0x7ed000000000);
	}
	if (f)
		fclose(f);
	return n;
}

static int count_threads(void)
{
	DIR *d = opendir("/proc/self/task");
	int n = 0;

	while (d && readdir(d))
		n++;
	closedir(d);
	return n - 2;
}

/* Beside this one. The host shows a thread for a moment more when it has been joined. */
static int threads_left(void)
{
	const struct timespec moment = { 0, 1000000 };
	time_t end = time(NULL) + SECONDS;

	while (count_threads() > 1 && time(NULL) < end)
		nanosleep(&moment, NULL);
	return count_threads() - 1;
}

static void traceless(void)
{
	int fds = count_fds();

	for (int round = 0; round < 5; round++) {
		struct guise_stack *a = create("a"), *b = create("b");

		must(guise_pair(a, "eth0", b, "eth0"), "pair");
		put_on(a, "10.0.0.1/24", "reno");
		put_on(b, "10.0.0.2/24", "reno");
		converse(a, b, "10.0.0.2", 100000);
		if (!round)
			printf("while there: descriptors %d mappings %d\n", count_fds() > fds,
			       count_guise_maps() > 0);
		guise_leave(a);
		guise_leave(b);
	}
	printf("left: descriptors %d mappings %d threads %d\n", count_fds() - fds,
	       count_guise_maps(), threads_left());
}

/* ---- threads --------------------------------------------------------------------------- */

#define THREADS 200

static struct guise_stack *shared;
static pthread_barrier_t barrier;
static struct places crowd;

static void *one_thread(void *unused)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);
	char c = 'x';
	int fd;

	(void)unused;
	must(fd = guise_socket(shared, AF_INET, SOCK_DGRAM, 0), "socket");
	must(guise_bind(shared, fd, (struct sockaddr *)&a, sizeof(a)), "bind");
	must(guise_getsockname(shared, fd, (struct sockaddr *)&a, &len), "getsockname");
	must(guise_sendto(shared, fd, &c, 1, 0, (struct sockaddr *)&a, sizeof(a)), "send");
	must(guise_read(shared, fd, &c, 1), "read");
	if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
		crowd = places_taken();
	pthread_barrier_wait(&barrier);
	must(guise_close(shared, fd), "close");
	return NULL;
}

static void threads(void)
{
	pthread_t thread[THREADS];
	struct places before, after;

	shared = create("threads");
	pthread_barrier_init(&barrier, NULL, THREADS);
	before = places_taken();
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < THREADS; i++)
			must(-pthread_create(&thread[i], NULL, one_thread, NULL), "thread");
		for (int i = 0; i < THREADS; i++)
			pthread_join(thread[i], NULL);
		after = places_taken();
		printf("more while they run %u, when they have ended %d\n",
		       crowd.slots - before.slots, (int)(after.slots - before.slots));
	}
	guise_leave(shared);
}

/* ---- errors ---------------------------------------------------------------------------- */

static void say(const char *what, long ret)
{
	printf("%s: %s: %s\n", what, ret < 0 ? strerrorname_np((int)-ret) : "done",
	       ret < 0 ? guise_error() : "");
}

static void errors(void)
{
	struct guise_options opt = GUISE_OPTIONS_INIT;
	struct guise_stack *s = create("errors");
	char text[64];
	int err;

	say("link", guise_link_add(s, "eth0", "carrier-pigeon:coop"));
	say("tap", guise_link_add(s, "eth0", "tap:fd=999"));
	say("unlink", guise_link_del(s, "eth7"));
	say("address", guise_addr_add(s, "lo", "300.1.2.3/24"));
	say("device", guise_addr_add(s, "eth7", "10.0.0.1/24"));
	say("route", guise_route_add(s, "default", "10.99.99.1", NULL, 0));
	say("qdisc", guise_qdisc_set(s, "lo", "teabag rate 1mbit"));
	say("word", guise_qdisc_set(s, "lo", "tbf rate ten burst 32kb latency 50ms"));
	say("sysctl", guise_sysctl_set(s, "net.ipv4.no_such_thing", "1"));
	say("value", guise_sysctl_set(s, "net.ipv4.tcp_congestion_control", "pigeon"));
	say("get", guise_sysctl_get(s, "net.ipv4.no_such_thing", text, sizeof(text)));
	say("file", guise_read_file(s, "/proc/net/no_such_file", text, sizeof(text)));
	say("endpoint", guise_mptcp_endpoint(s, "10.0.0.1", NULL, "upside-down"));
	say("socket", guise_socket(s, 77, SOCK_STREAM, 0));
	say("close", guise_close(s, 999));
	guise_leave(s);

	opt.memory = 1 << 20;
	guise_create(&opt, &err);
	say("memory", err);
	opt.memory = 0;
	opt.image = "/nowhere/guise-kernel";
	guise_create(&opt, &err);
	say("image", err);
	unsetenv("GUISE_STACK");
	guise_join(-1, &err);
	say("ticket", err);
}

static void image(const char *file)
{
	struct guise_options opt = GUISE_OPTIONS_INIT;
	int fds = count_fds(), err = 0;
	struct guise_stack *s;

	opt.image = file;
	s = guise_create(&opt, &err);
	say("create", s ? 0 : err);
	if (s)
		guise_leave(s);
	printf("left: descriptors %d mappings %d\n", count_fds() - fds, count_guise_maps());
}

static void say_base(int index)
{
	struct guise_options opt = GUISE_OPTIONS_INIT;
	struct guise_stack *s;
	int err;

	opt.memory = 32 << 20;
	opt.index = index;
	s = guise_create(&opt, &err);
	if (!s)
		must(err, "create");
	printf("%d %p\n", index, (const void *)places_base());
	guise_leave(s);
}

static void bases(int n)
{
	for (int i = 0; i < n; i++)
		say_base(-1);
	say_base(0);
	say_base(63);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "pair"))
		pair();
	else if (!strcmp(what, "traceless"))
		traceless();
	else if (!strcmp(what, "threads"))
		threads();
	else if (!strcmp(what, "errors"))
		errors();
	else if (!strcmp(what, "image") && argc == 3)
		image(argv[2]);
	else if (!strcmp(what, "bases") && argc == 3)
		bases(atoi(argv[2]));
	else {
		fprintf(stderr, "usage: stacks pair|traceless|threads|errors|image FILE|bases N\n");
		return 2;
	}
	return 0;
}
