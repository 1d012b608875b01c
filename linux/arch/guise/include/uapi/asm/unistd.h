/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/* The generic numbers, the same on every processor. */
#include <asm-generic/unistd.h>
