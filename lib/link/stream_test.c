// SPDX-License-Identifier: GPL-2.0-only
/*
 * The stream link with real stacks. Two that are connected by a socket exchange bytes
 * through a buffer that is full most of the time. This test is a peer that sends frames
 * of any length, in parts. The link is lost when the peer ends, or uses another framing.
 */
#include "link/framing.h"

#include "host/sys.h"
#include "region/stack.h"
#include "region/wait.h"
#include "test/kernel.h"
#include "test/tap.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>

#define BYTES (8 << 20)

static void add_link(struct guise_stack *s, int fd, const char *addr, unsigned int mtu)
{
	char spec[64];

	snprintf(spec, sizeof(spec), "stream:fd=%d,mtu=%u", fd, mtu);
	tap_done(guise_link_add(s, "eth0", spec), "a stream becomes a link");
	tap_done(guise_addr_add(s, "eth0", addr), "an address");
	tap_done(guise_link_set(s, "eth0", 1), "the link is up");
}

static uint8_t byte_at(size_t i)
{
	return (uint8_t)(i * 2654435761u >> 16);
}

struct server {
	struct guise_stack *s;
	int listener;
	bool good;
};

/* Receives a stream of BYTES and sends it back. */
static void *serve(void *arg)
{
	static uint8_t buf[BYTES];
	struct server *v = arg;
	int fd = guise_accept4(v->s, v->listener, NULL, NULL, 0);
	size_t have = 0, sent = 0;
	ssize_t n;

	while (have < BYTES && (n = guise_read(v->s, fd, buf + have, BYTES - have)) > 0)
		have += (size_t)n;
	while (sent < have && (n = guise_write(v->s, fd, buf + sent, have - sent)) > 0)
		sent += (size_t)n;
	v->good = fd >= 0 && sent == BYTES;
	guise_close(v->s, fd);
	return NULL;
}

static bool exchange(struct guise_stack *s, const struct sockaddr_in *to)
{
	static uint8_t buf[BYTES];
	int fd = guise_socket(s, AF_INET, SOCK_STREAM, 0);
	size_t sent = 0, have = 0;
	ssize_t n;

	for (size_t i = 0; i < BYTES; i++)
		buf[i] = byte_at(i);
	if (guise_connect(s, fd, (const struct sockaddr *)to, sizeof(*to)))
		return false;
	while (sent < BYTES && (n = guise_write(s, fd, buf + sent, BYTES - sent)) > 0)
		sent += (size_t)n;
	memset(buf, 0, sizeof(buf));
	while (have < BYTES && (n = guise_read(s, fd, buf + have, BYTES - have)) > 0)
		have += (size_t)n;
	for (size_t i = 0; i < have; i++)
		if (buf[i] != byte_at(i))
			return false;
	guise_close(s, fd);
	return have == BYTES;
}

/* mtu: small ones are gathered, big ones written at once. */
static void two_stacks(unsigned int mtu)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(5001) };
	struct guise_stack *left = test_stack("left", 0), *right = test_stack("right", 0);
	struct server v = { .s = right };
	int fd[2], small = 4096;
	pthread_t thread;
	bool good;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd))
		abort();
	/* Small, so that it does not take everything at once. */
	for (int i = 0; i < 2; i++)
		setsockopt(fd[i], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	add_link(left, fd[0], "192.0.2.1/24", mtu);
	add_link(right, fd[1], "192.0.2.2/24", mtu);
	close(fd[0]);
	close(fd[1]);
	inet_pton(AF_INET, "192.0.2.2", &a.sin_addr);
	v.listener = guise_socket(right, AF_INET, SOCK_STREAM, 0);
	guise_bind(right, v.listener, (struct sockaddr *)&a, sizeof(a));
	guise_listen(right, v.listener, 1);
	if (pthread_create(&thread, NULL, serve, &v))
		abort();
	good = exchange(left, &a);
	pthread_join(thread, NULL);
	tap(good && v.good, "%d bytes and back in frames of %u, whole", BYTES, mtu);
	tap(!left->region->links[0].rx_malformed && !right->region->links[0].rx_malformed &&
		    left->region->links[0].tx_frames,
	    "no frame was malformed");
	guise_leave(left);
	guise_leave(right);
}

static bool send_all(int fd, const void *from, size_t bytes)
{
	const char *p = from;

	while (bytes) {
		ssize_t n = send(fd, p, bytes, MSG_NOSIGNAL);

		if (n <= 0)
			return false;
		p += n;
		bytes -= (size_t)n;
	}
	return true;
}

/* Waits until the counter is there; the pump takes its time on a busy machine. */
static bool reaches(struct guise_stack *s, const uint64_t *counter, uint64_t value)
{
	for (int i = 0; i < 2000; i++) {
		if (__atomic_load_n(counter, __ATOMIC_RELAXED) >= value)
			return true;
		guise_nanosleep(s, 10000000);
	}
	return false;
}

static bool is_lost(struct guise_stack *s)
{
	for (int i = 0; i < 2000; i++) {
		if (__atomic_load_n(&s->region->links[0].lost, __ATOMIC_RELAXED))
			return !guise_link_live(s, 0);
		guise_nanosleep(s, 10000000);
	}
	return false;
}

static struct guise_stack *beside(int *peer)
{
	struct guise_stack *s = test_stack("s", 0);
	int fd[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd))
		abort();
	add_link(s, fd[0], "192.0.2.1/24", 1500);
	close(fd[0]);
	*peer = fd[1];
	return s;
}

/* An Ethernet frame that is counted, and not answered. */
static void make_frame(uint8_t *to, uint32_t length)
{
	guise_framing_head(to, length);
	memset(to + 4, 0xff, 6); /* to all */
	memset(to + 10, 0x02, 6);
	to[16] = 0x88; /* an EtherType for experiments */
	to[17] = 0xb5;
}

static void odd_frames(void)
{
	static uint8_t stream[GUISE_FRAMING_SKIP + 64];
	const struct guise_link *link;
	struct guise_stack *s;
	int peer;

	s = beside(&peer);
	link = &s->region->links[0];
	make_frame(stream, 60);
	tap(send_all(peer, stream, 30) && send_all(peer, stream + 30, 34) &&
		    reaches(s, &link->rx_frames, 1),
	    "a frame in two parts arrives");
	memset(stream, 0, 4);
	tap(send_all(peer, stream, 4) && reaches(s, &link->rx_malformed, 1),
	    "a frame of 0 bytes is counted");
	make_frame(stream, 13);
	tap(send_all(peer, stream, 17) && reaches(s, &link->rx_malformed, 2), "so is one of 13");
	make_frame(stream, 65536);
	tap(send_all(peer, stream, 65540) && reaches(s, &link->rx_malformed, 3),
	    "so is one of 65536");
	make_frame(stream, 14);
	tap(send_all(peer, stream, 18) && reaches(s, &link->rx_frames, 2) &&
		    link->rx_malformed == 3,
	    "the shortest that there is arrives after them");
	close(peer);
	tap(is_lost(s), "a peer that has ended loses the link");
	tap(!link->reason, "for that reason");
	guise_leave(s);

	s = beside(&peer);
	tap(send_all(peer, "GET / HTTP/1.0\r\n\r\n", 18) && is_lost(s),
	    "a peer that speaks something else loses the link");
	tap(s->region->links[0].reason == 0x47455420, "for that reason");
	tap(recv(peer, stream, 1, MSG_PEEK) >= 0 || errno == ECONNRESET, "and hears of it");
	close(peer);
	guise_leave(s);
}

static void refused(void)
{
	struct guise_stack *sim = test_stack("sim", 1), *s = test_stack("s", 0);
	int datagram = socket(AF_UNIX, SOCK_DGRAM, 0);
	char spec[200];

	tap_fails(guise_link_add(s, "eth0", "stream"), EINVAL, "stream:PATH");
	tap_fails(guise_link_add(s, "eth0", "stream:/nowhere/at/all"), ENOENT, "/nowhere/at/all");
	tap_fails(guise_link_add(s, "eth0", "stream:fd=x"), EINVAL, "connected Unix stream socket");
	tap_fails(guise_link_add(s, "eth0", "stream:fd=1000"), ENOTSOCK,
		  "not a Unix stream socket");
	snprintf(spec, sizeof(spec), "stream:fd=%d", datagram);
	tap_fails(guise_link_add(s, "eth0", spec), ENOTSOCK, "not a Unix stream socket");
	tap_fails(guise_link_add(sim, "eth0", "stream:fd=0"), EINVAL, "simulated");
	memset(spec, 'x', sizeof(spec) - 1);
	memcpy(spec, "stream:", 7);
	spec[sizeof(spec) - 1] = '\0';
	tap_fails(guise_link_add(s, "eth0", spec), EINVAL, "too long");
	close(datagram);
	guise_leave(sim);
	guise_leave(s);
}

static void by_path(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	char spec[sizeof(a.sun_path) + 8], dir[] = "/tmp/guise-stream-XXXXXX";
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), peer;
	struct guise_stack *s = test_stack("s", 0);

	if (!mkdtemp(dir))
		abort();
	snprintf(a.sun_path, sizeof(a.sun_path), "%s/socket", dir);
	if (bind(listener, (struct sockaddr *)&a, sizeof(a)) || listen(listener, 1))
		abort();
	snprintf(spec, sizeof(spec), "stream:%s", a.sun_path);
	tap_done(guise_link_add(s, "eth0", spec), "a socket is found by its path");
	tap(s->region->links[0].mtu == 1500, "the MTU is what the list of kinds has");
	peer = accept(listener, NULL, NULL);
	tap(peer >= 0, "the peer has a visitor");
	tap_done(guise_link_del(s, "eth0"), "the link is taken away");
	tap(!recv(peer, spec, 1, 0), "and the peer hears of it");
	close(peer);
	close(listener);
	unlink(a.sun_path);
	rmdir(dir);
	guise_leave(s);
}

int main(void)
{
	test_find_kernel();
	two_stacks(1500);
	two_stacks(65520);
	odd_frames();
	refused();
	by_path();
	return tap_end();
}
