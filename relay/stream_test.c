// SPDX-License-Identifier: GPL-2.0-only
/*
 * TCP through the engine. At the near end of each stream is a program on a stack, at the far
 * end a program on this host's loopback. Each side sends a sequence of bytes of its own, so
 * that every byte that arrives can be checked.
 */
#include "relay/stream.h"

#include "relay/testing.h"

#include <errno.h>
#include <netinet/tcp.h>

#define SECONDS 30
#define MOST    2000
#define LIVE    60 /* streams at a time in the random test */
#define STEPS   6000
#define PIECE   100000 /* bytes that are sent or received at once, at most */
#define PERIOD  65521

/* A stream, and what the two programs at its ends have done; side 0 is on the stack. */
struct conversation {
	struct end program[2]; /* closed when the stream has ended */
	uint64_t sent[2], received[2];
	bool ended[2]; /* has shut down its direction */
	bool heard[2]; /* has received the end of the other direction */
};

static struct end listener[2];
static struct sockaddr_storage address[2];
static struct conversation conversation[MOST];
static unsigned int bad;

static const struct engine_ops ops;

/* The bytes that a side sends. They repeat after PERIOD, a prime number, so that the loss of a
 * whole block is seen. */
static uint8_t pattern[2][PERIOD + PIECE];

static void begin_pattern(void)
{
	for (int side = 0; side < 2; side++)
		for (unsigned int i = 0; i < PERIOD + PIECE; i++)
			pattern[side][i] = i < PERIOD ? (uint8_t)chance(256)
						      : pattern[side][i - PERIOD];
}

static const uint8_t *bytes_at(int side, uint64_t at)
{
	return pattern[side] + at % PERIOD;
}

static bool is_over(const struct conversation *c)
{
	return c->program[0].fd < 0;
}

static void turn(void)
{
	engine_timers(&engine);
	engine_turn(&engine, 0);
}

static void begin_listeners(void)
{
	struct sockaddr_storage lo = four(0x7f000001, 0);

	for (int k = 0; k < 2; k++) {
		listener[k] = testing_socket(!k, SOCK_STREAM, &lo);
		/* Accepted sockets inherit this small size, so that the engine has to keep data
		 * that does not fit. */
		end_option(&listener[k], SOL_SOCKET, SO_SNDBUF, 32768);
		end_call(&listener[k], listen, 4096, 0, 0, 0, 0);
		address[k] = testing_name(&listener[k]);
	}
}

/* A connected pair: the program's socket, and the one that is accepted. */
static bool connected(int side, struct end *program, struct end *accepted)
{
	time_t deadline = time(NULL) + SECONDS;
	long fd;

	*program = testing_socket(!side, SOCK_STREAM, NULL);
	end_option(program, SOL_SOCKET, SO_SNDBUF, 32768);
	end_call(program, connect, &address[side], address_length(&address[side]), 0, 0, 0);
	do {
		fd = end_call(&listener[side], accept4, 0, 0, SOCK_NONBLOCK | SOCK_CLOEXEC, 0, 0);
	} while (fd == -EAGAIN && !testing_late(deadline));
	end_init(accepted, &engine, !side, (int)fd, NULL, NULL);
	return fd >= 0;
}

static bool begin(struct conversation *c)
{
	struct end near, far;

	memset(c, 0, sizeof(*c));
	if (!connected(0, &c->program[0], &near) || !connected(1, &c->program[1], &far))
		return false;
	return stream_join(&near, &far, false);
}

static void over(struct conversation *c)
{
	end_close(&c->program[0]);
	end_close(&c->program[1]);
}

static void program_sends(struct conversation *c, int side, size_t n)
{
	long sent;

	if (c->ended[side])
		return;
	sent = end_call(&c->program[side], sendto, bytes_at(side, c->sent[side]), n,
			MSG_DONTWAIT | MSG_NOSIGNAL, 0, 0);
	if (sent > 0)
		c->sent[side] += (uint64_t)sent;
	else
		bad += sent != -EAGAIN;
}

static void program_receives(struct conversation *c, int side)
{
	static uint8_t buf[PIECE];
	long n = end_call(&c->program[side], recvfrom, buf, sizeof(buf), MSG_DONTWAIT, 0, 0);

	if (n > 0) {
		bad += memcmp(buf, bytes_at(!side, c->received[side]), (size_t)n) != 0;
		c->received[side] += (uint64_t)n;
	} else if (!n) {
		bad += !c->ended[!side] || c->received[side] != c->sent[!side];
		c->heard[side] = true;
	} else {
		bad += n != -EAGAIN;
	}
}

static void program_ends(struct conversation *c, int side)
{
	if (!c->ended[side])
		end_call(&c->program[side], shutdown, SHUT_WR, 0, 0, 0, 0);
	c->ended[side] = true;
}

/* The other program's socket must get the reset, too. */
static bool program_resets(struct conversation *c, int side)
{
	static uint8_t buf[PIECE];
	time_t deadline = time(NULL) + SECONDS;
	long n = 0;

	end_reset(&c->program[side]);
	while (n != -ECONNRESET && !testing_late(deadline)) {
		turn();
		n = end_call(&c->program[!side], recvfrom, buf, sizeof(buf), MSG_DONTWAIT, 0, 0);
		/* For that program the connection had ended before. */
		if (!n || n == -EPIPE)
			break;
	}
	over(c);
	return !testing_late(deadline);
}

/* Both sides shut down their direction, and all that was sent before arrives. */
static bool finish(struct conversation *c)
{
	time_t deadline = time(NULL) + SECONDS;

	program_ends(c, 0);
	program_ends(c, 1);
	while (!(c->heard[0] && c->heard[1]) && !bad && !testing_late(deadline)) {
		turn();
		for (int side = 0; side < 2; side++)
			if (!c->heard[side])
				program_receives(c, side);
	}
	over(c);
	return !bad && c->heard[0] && c->heard[1];
}

static bool all_gone(void)
{
	time_t deadline = time(NULL) + SECONDS;

	while (engine.n_streams && !testing_late(deadline))
		turn();
	return !engine.n_streams && !engine.busy && list_empty(&engine.streams);
}

static void many(unsigned int n)
{
	unsigned int before = testing_descriptors();
	struct conversation extra;
	bool good = true;

	engine.most_streams = n;
	for (unsigned int i = 0; i < n && good; i++)
		good = begin(&conversation[i]);
	tap(good && engine.n_streams == n && engine.busy == n, "%u streams", n);
	tap(!begin(&extra) && engine.n_streams == n, "one more is refused");
	over(&extra);
	for (unsigned int i = 0; i < n && good; i++)
		for (int side = 0; side < 2; side++)
			program_sends(&conversation[i], side, 1000 + i);
	for (unsigned int i = 0; i < n && good; i++)
		good = finish(&conversation[i]);
	tap(good && !bad, "each carries its own bytes, both ways, to their end");
	tap(all_gone() && testing_descriptors() == before, "nothing of them is left");
}

static bool do_one(struct conversation *c)
{
	int side = (int)chance(2);

	if (is_over(c))
		return begin(c);
	switch (chance(16)) {
	case 0:
		if (!chance(4))
			program_ends(c, side);
		return true;
	case 1:
		return chance(8) || finish(c);
	case 2:
		return chance(8) || program_resets(c, side);
	case 3: /* more than fits into the queues */
		for (int i = 0; i < 20; i++, turn())
			program_sends(c, side, PIECE);
		return true;
	case 4:
	case 5:
	case 6:
	case 7:
		program_sends(c, side, 1 + chance(5000));
		return true;
	default:
		if (!c->heard[side])
			program_receives(c, side);
		turn();
		return true;
	}
}

static void at_random(void)
{
	unsigned int before = testing_descriptors(), step;
	bool good = true;

	engine.most_streams = LIVE;
	for (unsigned int i = 0; i < LIVE; i++)
		conversation[i].program[0].fd = conversation[i].program[1].fd = -1;
	for (step = 0; step < STEPS && good && !bad; step++)
		good = do_one(&conversation[chance(LIVE)]);
	if (!tap(good && !bad, "they begin, halt, end and break in any order"))
		printf("# step %u: %u bad\n", step, bad);
	for (unsigned int i = 0; i < LIVE && good; i++)
		good = is_over(&conversation[i]) || finish(&conversation[i]);
	tap(good && all_gone() && testing_descriptors() == before, "nothing of them is left");
}

static void end_all(void)
{
	unsigned int before = testing_descriptors();
	bool good = true;

	for (unsigned int i = 0; i < LIVE; i++)
		good = good && begin(&conversation[i]);
	for (unsigned int i = 0; i < LIVE; i++)
		program_sends(&conversation[i], 1, PIECE);
	turn();
	stream_end_all(&engine);
	turn();
	tap(good && !engine.n_streams && !engine.busy, "all are ended at once");
	for (unsigned int i = 0; i < LIVE; i++)
		over(&conversation[i]);
	tap(testing_descriptors() == before, "without a descriptor left");
}

int main(void)
{
	unsigned int most = testing_begin("stream", &ops);

	begin_pattern();
	begin_listeners();
	many(MOST < most / 2 - 64 ? MOST : most / 2 - 64);
	at_random();
	end_all();
	engine_end(&engine);
	guise_leave(stack);
	return tap_end();
}
