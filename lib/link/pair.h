/* SPDX-License-Identifier: GPL-2.0-only */
/* Pairs for two processes; see pair.c. */
#ifndef GUISE_LINK_PAIR_H
#define GUISE_LINK_PAIR_H

/* Makes a pair: fd[0] is its memory, fd[1] and fd[2] are the bells of ends 0 and 1. */
int guise_cable_make(int fd[3]);

#endif
