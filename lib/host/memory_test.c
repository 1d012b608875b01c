// SPDX-License-Identifier: GPL-2.0-only
/* Memory for the length of a call, and handlers that interrupt calls. */
#include "host/memory.h"

#include "test/tap.h"

#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/time.h>

#define SMALL  1000
#define BIG    200000  /* the piece grows to it */
#define BIGGER 1000000 /* has pages of its own */

static volatile sig_atomic_t handled, overwritten;
static sigjmp_buf outside;

static bool use(size_t bytes, int depth)
{
	char *room = guise_room_take(bytes);
	bool good = room;

	if (room) {
		memset(room, depth, bytes);
		if (depth)
			good = use(bytes / 2 + 1, depth - 1);
		for (size_t i = 0; i < bytes; i++)
			good &= room[i] == depth;
		guise_room_give(room, bytes);
	}
	return good;
}

static void handle(int sig)
{
	(void)sig;
	handled++;
	overwritten |= !use(handled % 3 ? SMALL : BIG, 2);
}

static void jump(int sig)
{
	(void)sig;
	if (guise_room_take(SMALL))
		siglongjmp(outside, 1);
}

static void under_signals(void)
{
	struct itimerval t = { { 0, 50 }, { 0, 50 } }, never = { 0 };
	bool good = true;

	signal(SIGALRM, handle);
	setitimer(ITIMER_REAL, &t, NULL);
	while (handled < 1000) {
		good &= use(SMALL, 3);
		good &= use(BIG, 1);
		good &= use(BIGGER, 1);
		if (handled % 10 == 0)
			guise_room_end();
	}
	setitimer(ITIMER_REAL, &never, NULL);
	tap(good && !overwritten, "handlers at any time leave each room to whose it is");
}

int main(void)
{
	void *a, *b, *c;

	a = guise_room_take(SMALL);
	b = guise_room_take(SMALL);
	tap(a && b && a != b && !((uintptr_t)b % 16), "two rooms are two");
	guise_room_give(b, SMALL);
	c = guise_room_take(SMALL / 2);
	tap(c == b, "what was given back is taken again");
	guise_room_give(c, SMALL / 2);
	guise_room_give(a, SMALL);
	tap(use(BIG, 4) && use(BIGGER, 4), "big ones");
	tap(!guise_room_take(SIZE_MAX / 2), "what there is not is not given");

	signal(SIGUSR1, jump);
	a = guise_room_take(SMALL);
	if (!sigsetjmp(outside, 1))
		raise(SIGUSR1);
	guise_room_give(a, SMALL);
	b = guise_room_take(SMALL);
	tap(a == b, "what a handler had that left by a jump goes with the call's");
	guise_room_give(b, SMALL);

	under_signals();
	guise_room_end();
	a = guise_pages(SMALL);
	tap(a && !*(char *)a, "pages are zero");
	guise_pages_free(a, SMALL);
	guise_pages_free(NULL, SMALL);
	return tap_end();
}
