// SPDX-License-Identifier: GPL-2.0-only
/*
 * Valgrind reads a program's instructions and runs others in their place, and so it does with
 * the library that the loader puts into it. There guise stays out: the holder could not
 * finish what such a program had begun in the stack, for its registers are Valgrind's, and
 * raw system calls are Valgrind's own. It is started as the static program that it is, and said
 * to be on the host's stack (outside.c); this makes that true of what it runs, too.
 *
 * To be asked, Valgrind gives a meaning to a series of instructions that has none
 * (preload/isa/; its manual: "The Client Request mechanism"; valgrind/valgrind.h).
 */
#include "preload/isa/isa.h"
#include "preload/preload.h"

#define RUNNING_ON_VALGRIND 0x1001

bool preload_on_valgrind(void)
{
	volatile unsigned long request[6] = { RUNNING_ON_VALGRIND };

	return preload_isa_valgrind(request);
}
