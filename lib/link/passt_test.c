// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the passt link does in addition to a stream. This test is the passt at its other end.
 * Frames that passt does not handle correctly are not sent to it. It learns of the end of the
 * stack; one that does not is killed.
 */
#include "link/backends.h"
#include "link/frame.h"
#include "link/framing.h"
#include "region/stack.h"
#include "test/tap.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define LENGTH 60u
#define SYN    0x02
#define ACK    0x10

static struct guise_region region;
static struct guise_stack stack;
static struct guise_link_port port;

/* Opens the link; the number of the other end, which this process has alone. */
static int open_link(void)
{
	int fd[2];
	char spec[32];

	memset(&region, 0, sizeof(region));
	port = (struct guise_link_port){ .fd = { -1, -1, -1 } };
	stack.region = &region;
	strcpy(region.links[0].kind, "passt");
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd))
		abort();
	snprintf(spec, sizeof(spec), "fd=%d", fd[0]);
	tap_done(guise_link_passt.open(&stack, &region.links[0], &port, spec), "a link to passt");
	close(fd[0]);
	return fd[1];
}

static void close_link(int peer)
{
	guise_link_passt.detach(&port);
	for (int i = 0; i < GUISE_LINK_FDS; i++)
		if (port.fd[i] >= 0)
			close(port.fd[i]);
	close(peer);
}

/* Whether the link takes the frame; it may still drop it. */
static bool send_frame(uint8_t *frame)
{
	struct guise_iov iov[2] = { { NULL, GUISE_FRAME_HDR }, { frame, LENGTH } };

	return guise_link_passt.out(&port, iov, 2) == (int64_t)(GUISE_FRAME_HDR + LENGTH) &&
	       guise_link_passt.flush(&port) == 0;
}

static bool send_tcp(uint8_t port_number, uint8_t flags)
{
	uint8_t frame[LENGTH] = { [12] = 0x08, [14] = 0x45, [23] = 6, [35] = port_number };

	frame[14 + 20 + 13] = flags;
	return send_frame(frame);
}

static bool send_ipv6(uint8_t source)
{
	uint8_t frame[LENGTH] = { [12] = 0x86, [13] = 0xdd, [14] = 0x60, [20] = 58 };

	frame[22] = source;
	return send_frame(frame);
}

/* Reads all frames that there are, and returns their number. */
static long arrived(int peer)
{
	static uint8_t bytes[64 * (GUISE_FRAMING_HEAD + LENGTH)];
	ssize_t n = recv(peer, bytes, sizeof(bytes), MSG_DONTWAIT);

	return n < 0 ? 0 : n / (long)(GUISE_FRAMING_HEAD + LENGTH);
}

static void not_sent(void)
{
	int peer = open_link();

	tap(send_tcp(1, SYN) && send_tcp(1, SYN) && arrived(peer) == 1,
	    "a SYN that is sent again before passt has read the first is not");
	tap(send_tcp(1, SYN) && arrived(peer) == 1, "one that is sent again later is");
	tap(send_tcp(2, SYN) && send_tcp(3, SYN) && arrived(peer) == 2,
	    "so are those of several connections");
	tap(send_tcp(4, SYN | ACK) && send_tcp(4, SYN | ACK) && send_tcp(4, ACK) &&
		    send_tcp(4, ACK) && arrived(peer) == 4,
	    "and what opens none");
	tap(send_ipv6(0) && arrived(peer) == 0, "a packet from :: is not");
	tap(send_ipv6(0xfd) && arrived(peer) == 1, "one from an address is");
	close_link(peer);
}

/* Waits until its first frame has come, by which its pid is known. */
static bool hear_from(void)
{
	static uint8_t bytes[GUISE_FRAME_MAX];
	struct guise_iov iov[2] = { { bytes, GUISE_FRAME_HDR },
				    { bytes + GUISE_FRAME_HDR, sizeof(bytes) - GUISE_FRAME_HDR } };

	for (int i = 0; i < 1000; i++) {
		int64_t ret = guise_link_passt.in(&port, iov, 2);

		if (ret != -EAGAIN)
			return ret == (int64_t)(GUISE_FRAME_HDR + LENGTH);
		usleep(10000);
	}
	return false;
}

/* The status of a passt that learns of the end, or does not. */
static int status_of(bool hears)
{
	uint8_t stream[GUISE_FRAMING_HEAD + LENGTH] = { 0 };
	int peer = open_link(), status = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		alarm(60);
		close_link(-1);
		guise_framing_head(stream, LENGTH);
		if (send(peer, stream, sizeof(stream), 0) != sizeof(stream))
			_exit(1);
		if (hears)
			_exit(recv(peer, stream, 1, 0) == 0 ? 0 : 2);
		for (;;)
			pause();
	}
	close(peer);
	tap(hear_from(), "its first frame arrives");
	guise_link_passt.end(&port);
	waitpid(pid, &status, 0);
	close_link(-1);
	return status;
}

static void the_end(void)
{
	int status = status_of(true);

	tap(WIFEXITED(status) && !WEXITSTATUS(status), "passt hears of the end, and ends itself");
	status = status_of(false);
	tap(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "or else by force");
}

int main(void)
{
	char text[256];

	not_sent();
	the_end();
	strcpy(region.links[0].name, "eth0");
	guise_link_passt.epitaph(&region.links[0], text, sizeof(text));
	tap(strstr(text, "link eth0 is lost: passt has ended"), "a lost link says what has ended");
	return tap_end();
}
