// SPDX-License-Identifier: GPL-2.0-only
/*
 * The position in a stream stays right when a thread that uses it is killed. A child sends or
 * receives frames, with the shared buffers. It is traced from one end of a system call to the
 * next, and killed at one of them, each time another one: also when the host's kernel has
 * moved bytes and their number was not stored yet. The next child continues like the holder,
 * with the same frame. At the other end of the socket all frames must be whole, and in order.
 */
#include "link/frame.h"
#include "link/framing.h"

#include "link/backends.h"
#include "region/stack.h"
#include "test/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define KILLS   600
#define STOPS   23 /* of a child, at the most */
#define NOTHING 65535u

/* Of all children, and this process. */
static struct shared {
	struct guise_region region;
	uint32_t frame;    /* the current one */
	uint32_t in_flush; /* what is done with it */
	uint32_t received, wrong;
	uint8_t from[GUISE_FRAME_MAX], to[GUISE_FRAME_MAX];
} *shared;

static struct guise_stack stack;
static struct guise_link_port port;

static uint32_t length_of(uint32_t number)
{
	static const uint32_t lengths[] = { 60, 65534, 1514, 40000, 14, 9014, 20000, 65534, 100 };

	return lengths[number % (sizeof(lengths) / sizeof(lengths[0]))];
}

static uint8_t byte_of(uint32_t number, uint32_t at)
{
	return at < 4 ? (uint8_t)(number >> 8 * at) : (uint8_t)(number * 31 + at * 7 + (at >> 8));
}

static uint32_t number_of(const uint8_t *frame)
{
	return frame[0] | (uint32_t)frame[1] << 8 | (uint32_t)frame[2] << 16 |
	       (uint32_t)frame[3] << 24;
}

static bool is_whole(const uint8_t *frame, uint32_t length)
{
	uint32_t number = number_of(frame), i = 4;

	while (i < length && frame[i] == byte_of(number, i))
		i++;
	return length == length_of(number) && i == length;
}

static void open_link(int fd)
{
	struct guise_link *link = &shared->region.links[0];

	memset(shared, 0, sizeof(*shared));
	strcpy(link->kind, "stream");
	stack.region = &shared->region;
	port.fd[0] = fd;
	port.fd[1] = memfd_create("stream", MFD_CLOEXEC);
	/* Larger than its buffers, which belong to the backend. */
	if (port.fd[1] < 0 || ftruncate(port.fd[1], 4 << 20))
		abort();
	tap_done(guise_link_stream.attach(&stack, link, &port), "a stream has buffers");
}

static void close_link(void)
{
	guise_link_stream.detach(&port);
	close(port.fd[1]);
	close(port.fd[0]);
}

/* ---- what a child does --------------------------------------------------------------------- */

static int64_t hand_over(void)
{
	uint32_t length = length_of(shared->frame);
	struct guise_iov iov[3] = { { NULL, GUISE_FRAME_HDR },
				    { shared->from, 10 },
				    { shared->from + 10, length - 10 } };

	for (uint32_t i = 0; i < length; i++)
		shared->from[i] = byte_of(shared->frame, i);
	return guise_link_stream.out(&port, iov, 3);
}

static void send_always(void)
{
	for (;;) {
		while (!shared->in_flush && hand_over() == -EAGAIN) {
			/* Like the port, which stops its queue meanwhile. */
			sched_yield();
			guise_link_stream.flush(&port);
		}
		shared->in_flush = 1;
		while (shared->frame % 3 == 0 && guise_link_stream.flush(&port) == -EAGAIN)
			sched_yield();
		shared->frame++;
		shared->in_flush = 0;
	}
}

static void receive_always(void)
{
	struct guise_iov iov[2] = { { shared->to, GUISE_FRAME_HDR },
				    { shared->to + GUISE_FRAME_HDR,
				      sizeof(shared->to) - GUISE_FRAME_HDR } };

	for (;;) {
		int64_t ret = guise_link_stream.in(&port, iov, 2);
		const uint8_t *frame = shared->to + GUISE_FRAME_HDR;

		if (ret == -EAGAIN) {
			sched_yield();
			continue;
		}
		if (ret < (int64_t)GUISE_FRAME_HDR + 4 ||
		    number_of(frame) != shared->received + 1 ||
		    !is_whole(frame, (uint32_t)ret - GUISE_FRAME_HDR))
			__atomic_store_n(&shared->wrong, 1, __ATOMIC_RELEASE);
		__atomic_store_n(&shared->received, shared->received + 1, __ATOMIC_RELEASE);
	}
}

/* ---- the other end ------------------------------------------------------------------------- */

static uint8_t pending[2 * (GUISE_FRAMING_MOST + GUISE_FRAMING_HEAD)];
static uint32_t n_pending, last_number, n_frames;
static bool in_step;

/* The reader: an odd part of what there is. A frame may come twice, as on a wire. */
static void read_some(int fd)
{
	static uint32_t part = 1;
	ssize_t got;

	part = part * 7 % 40009;
	if (part > sizeof(pending) - n_pending)
		part = (uint32_t)(sizeof(pending) - n_pending);
	got = recv(fd, pending + n_pending, part, MSG_DONTWAIT);
	if (got <= 0)
		return;
	n_pending += (uint32_t)got;
	while (in_step && n_pending >= GUISE_FRAMING_HEAD) {
		uint32_t length = (uint32_t)pending[2] << 8 | pending[3], number;
		const uint8_t *frame = pending + GUISE_FRAMING_HEAD;

		in_step = !pending[0] && !pending[1] && length >= GUISE_FRAMING_LEAST;
		if (n_pending < GUISE_FRAMING_HEAD + length)
			break;
		number = number_of(frame);
		in_step = in_step && is_whole(frame, length) &&
			  (number == last_number || number == last_number + 1);
		last_number = number;
		n_frames++;
		n_pending -= GUISE_FRAMING_HEAD + length;
		memmove(pending, frame + length, n_pending);
	}
}

/* The writer: frames 1, 2, 3, ..., in odd parts. */
static void write_some(int fd)
{
	static uint8_t frame[GUISE_FRAMING_HEAD + GUISE_FRAMING_MOST];
	static uint32_t part = 1, at, number, total;
	ssize_t sent;

	if (at == total) {
		uint32_t length = length_of(++number);

		guise_framing_head(frame, length);
		for (uint32_t i = 0; i < length; i++)
			frame[GUISE_FRAMING_HEAD + i] = byte_of(number, i);
		total = GUISE_FRAMING_HEAD + length;
		at = 0;
	}
	part = part * 7 % 40009;
	sent = send(fd, frame + at, part < total - at ? part : total - at,
		    MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sent > 0)
		at += (uint32_t)sent;
}

/* ---- kills --------------------------------------------------------------------------------- */

/* A child that stops at both ends of each system call; 0: the host does not allow to trace it. */
static pid_t start(void (*act)(void))
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
			_exit(77);
		raise(SIGSTOP);
		act();
	}
	if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
		return 0;
	return pid;
}

/* False: it ended by itself. */
static bool run_and_kill(pid_t pid, int stops, void (*meanwhile)(int), int fd)
{
	int status = 0;
	bool lived = true;

	for (int i = 0; lived && i < stops; i++) {
		meanwhile(fd);
		lived = !ptrace(PTRACE_SYSCALL, pid, NULL, NULL) &&
			waitpid(pid, &status, 0) == pid && WIFSTOPPED(status);
	}
	kill(pid, SIGKILL);
	return waitpid(pid, &status, 0) == pid && lived;
}

static int kill_many(void (*act)(void), void (*meanwhile)(int), int fd)
{
	int rounds = 0;

	fflush(stdout);
	for (; rounds < KILLS; rounds++) {
		pid_t pid = start(act);

		if (!pid || !run_and_kill(pid, 1 + rounds % STOPS, meanwhile, fd))
			break;
	}
	return rounds;
}

static void make_pair(int fd[2])
{
	int small = 4096;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd))
		abort();
	/* So that frames are sent in parts. */
	for (int i = 0; i < 2; i++)
		setsockopt(fd[i], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
}

static bool may_trace(void)
{
	pid_t pid = start(send_always);

	if (!pid)
		return false;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return true;
}

static void senders(void)
{
	int fd[2], rounds;

	make_pair(fd);
	open_link(fd[0]);
	in_step = true;
	last_number = NOTHING;
	shared->frame = NOTHING + 1;
	rounds = kill_many(send_always, read_some, fd[1]);
	tap(rounds == KILLS, "%d senders are killed", rounds);
	tap(in_step && n_frames > KILLS / 4, "they leave whole frames, in order: %u", n_frames);
	close(fd[1]);
	close_link();
}

static void receivers(void)
{
	int fd[2], rounds;

	make_pair(fd);
	open_link(fd[0]);
	rounds = kill_many(receive_always, write_some, fd[1]);
	tap(rounds == KILLS, "%d receivers are killed", rounds);
	tap(!shared->wrong && shared->received > KILLS / 4 && !shared->region.links[0].rx_malformed,
	    "they take in whole frames, in order: %u", shared->received);
	close(fd[1]);
	close_link();
}

int main(void)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		abort();
	if (!may_trace())
		return 77;
	senders();
	receivers();
	return tap_end();
}
