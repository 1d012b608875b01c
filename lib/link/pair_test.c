// SPDX-License-Identifier: GPL-2.0-only
/*
 * The pair link, with real stacks at its ends, in one process and in two:
 * bytes arrive whole in both directions, through a ring that is full most of
 * the time; links come and go; and what cannot be is refused with a sentence.
 */
#include "link/pair.h"

#include "host/sys.h"
#include "region/stack.h"
#include "test/kernel.h"
#include "test/tap.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/wait.h>

#define BYTES (8 << 20)

/* The byte at a place in the stream. */
static uint8_t byte_at(size_t i)
{
	return (uint8_t)(i * 2654435761u >> 16);
}

static bool send_all(struct guise_stack *s, int fd)
{
	static uint8_t buf[BYTES];
	size_t sent = 0;

	for (size_t i = 0; i < BYTES; i++)
		buf[i] = byte_at(i);
	while (sent < BYTES) {
		ssize_t n = guise_write(s, fd, buf + sent, BYTES - sent);

		if (n <= 0)
			return false;
		sent += (size_t)n;
	}
	return !guise_shutdown(s, fd, SHUT_WR);
}

static bool receive_all(struct guise_stack *s, int fd)
{
	static uint8_t buf[BYTES + 1];
	size_t have = 0;
	ssize_t n;

	while ((n = guise_read(s, fd, buf + have, sizeof(buf) - have)) > 0)
		have += (size_t)n;
	for (size_t i = 0; i < have; i++)
		if (buf[i] != byte_at(i))
			return false;
	return !n && have == BYTES;
}

static struct sockaddr_in address(const char *text)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(5001) };

	inet_pton(AF_INET, text, &a.sin_addr);
	return a;
}

static int configure(struct guise_stack *s, const char *addr)
{
	int err = guise_addr_add(s, "eth0", addr);

	return err ? err : guise_link_set(s, "eth0", 1);
}

static int listen_on(struct guise_stack *s, const char *addr)
{
	struct sockaddr_in a = address(addr);
	int fd = guise_socket(s, AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || guise_bind(s, fd, (struct sockaddr *)&a, sizeof(a)) || guise_listen(s, fd, 1))
		return -1;
	return fd;
}

struct server {
	struct guise_stack *s;
	int listener;
	bool good;
};

/* Receives a stream, then sends one back. */
static void *serve(void *arg)
{
	struct server *v = arg;
	int fd = guise_accept4(v->s, v->listener, NULL, NULL, 0);
	struct linger delivered = { 1, 20 };

	/* close() then waits until the peer has received everything, so that the stack may end. */
	guise_setsockopt(v->s, fd, SOL_SOCKET, SO_LINGER, &delivered, sizeof(delivered));
	v->good = fd >= 0 && receive_all(v->s, fd) && send_all(v->s, fd);
	guise_close(v->s, fd);
	return NULL;
}

static bool exchange(struct guise_stack *s, const char *to)
{
	struct sockaddr_in a = address(to);
	int fd = guise_socket(s, AF_INET, SOCK_STREAM, 0);
	bool good;

	good = fd >= 0 && !guise_connect(s, fd, (struct sockaddr *)&a, sizeof(a)) &&
	       send_all(s, fd) && receive_all(s, fd);
	guise_close(s, fd);
	return good;
}

static void one_process(void)
{
	struct guise_stack *a = test_stack("a", 0), *b = test_stack("b", 0);
	struct server v = { .s = b };
	pthread_t thread;
	bool good;

	tap_done(guise_pair(a, "eth0", b, "eth0"), "a cable between two stacks");
	tap_done(configure(a, "192.0.2.1/24"), "an address at one end");
	tap_done(configure(b, "192.0.2.2/24"), "and at the other");
	v.listener = listen_on(b, "192.0.2.2");
	if (pthread_create(&thread, NULL, serve, &v))
		abort();
	good = exchange(a, "192.0.2.2");
	pthread_join(thread, NULL);
	tap(good && v.good, "%d bytes each way, whole", BYTES);
	tap(a->region->links[0].tx_frames && b->region->links[0].rx_frames &&
		    !a->region->links[0].rx_malformed && !b->region->links[0].rx_malformed,
	    "the links have counted %llu frames, none malformed",
	    (unsigned long long)a->region->links[0].tx_frames);

	tap_fails(guise_pair(a, "eth0", b, "eth1"), EEXIST, "has a link of this name");
	tap_fails(guise_pair(a, "eth1", b, "eth0"), EEXIST, "has a link of this name");
	tap_fails(guise_link_del(a, "eth1"), ENODEV, "no link of this name");
	tap_fails(guise_link_add(a, "eth1", "pair"), EINVAL, "guise_pair()");
	tap_fails(guise_link_add(a, "eth1", "pair:fd=900:901:902:0"), EBADF, "not open");
	tap_fails(guise_link_add(a, "eth1", "tap:fd=0"), ENOTTY, "not a tap descriptor");
	tap_fails(guise_link_add(a, "a/b", "pair"), EINVAL, "no interface name");
	tap_done(guise_link_del(a, "eth0"), "an end is taken away");
	tap_fails(guise_link_set(a, "eth0", 1), ENODEV, "no interface");
	tap_done(guise_link_del(b, "eth0"), "and the other");
	tap_done(guise_pair(a, "eth0", b, "eth0"), "there is a new cable");
	guise_leave(a);
	guise_leave(b);
}

static void limits(void)
{
	struct guise_stack *s = test_stack("sim", 1), *a = test_stack("a", 0);
	char name[16];
	int made = 0, fd[3];

	tap_fails(guise_pair(s, "eth0", a, "eth0"), EINVAL, "simulated");
	if (guise_cable_make(fd))
		abort();
	for (int i = 0; i <= GUISE_MAX_LINKS; i++) {
		char spec[64];

		snprintf(name, sizeof(name), "eth%d", i);
		snprintf(spec, sizeof(spec), "pair:fd=%d:%d:%d:0", fd[0], fd[1], fd[2]);
		if (guise_link_add(a, name, spec) < 0)
			break;
		made++;
	}
	tap(made == GUISE_MAX_LINKS && strstr(guise_error(), "at most 16"),
	    "a stack has so many links, and no more");
	for (int i = 0; i < 3; i++)
		host_sys(SYS_close, fd[i]);
	guise_leave(s);
	guise_leave(a);
}

/* Each process has a stack of its own; they share the pair's descriptors. */
static void two_processes(void)
{
	struct guise_stack *s;
	int fd[3], status;
	char spec[64];
	bool good;
	pid_t child;

	tap_done(guise_cable_make(fd), "a cable for two processes");
	child = fork();
	snprintf(spec, sizeof(spec), "pair:fd=%d:%d:%d:%d", fd[0], fd[1], fd[2], child ? 0 : 1);
	s = test_stack(child ? "parent" : "child", 0);
	if (guise_link_add(s, "eth0", spec) < 0 ||
	    configure(s, child ? "192.0.2.1/24" : "192.0.2.2/24")) {
		tap(false, "%s", guise_error());
		exit(1);
	}
	if (!child) {
		struct server v = { .s = s, .listener = listen_on(s, "192.0.2.2") };

		serve(&v);
		guise_leave(s);
		_exit(v.good ? 0 : 1);
	}
	/* The child may not listen yet: a refused connection is tried again. */
	for (int i = 0; i < 1000 && !(good = exchange(s, "192.0.2.2")); i++)
		guise_nanosleep(s, 50000000);
	tap(good, "%d bytes to another process and back, whole", BYTES);
	tap(waitpid(child, &status, 0) == child && !status, "which says so, too");
	guise_leave(s);
}

int main(void)
{
	test_find_kernel();
	two_processes();
	one_process();
	limits();
	return tap_end();
}
