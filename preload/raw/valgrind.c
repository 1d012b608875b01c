// SPDX-License-Identifier: GPL-2.0-only
/*
 * Valgrind translates a program's instructions and runs the translation; so also those of the
 * preload library in it. There guise does nothing: the holder could not finish what such a
 * program had begun in the stack, because the registers are Valgrind's, and Valgrind makes raw
 * system calls of its own. Valgrind itself is a static program, and noted as one that is on the
 * host's stack (outside.c); so the programs that it runs have to be there as well.
 *
 * A program can ask whether it runs on Valgrind by a series of instructions that otherwise does
 * nothing (preload/isa/; its manual: "The Client Request mechanism"; valgrind/valgrind.h).
 */
#include "preload/isa/isa.h"
#include "preload/preload.h"

#define RUNNING_ON_VALGRIND 0x1001

bool preload_on_valgrind(void)
{
	volatile unsigned long request[6] = { RUNNING_ON_VALGRIND };

	return preload_isa_valgrind(request);
}
