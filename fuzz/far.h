/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The far end: who the stack thinks is on the link. It answers when asked for
 * an address (any: nothing that a frame talked the stack into may silence it),
 * hears answers to its echo requests, and follows its TCP connections.
 */
#ifndef GUISE_FUZZ_FAR_H
#define GUISE_FUZZ_FAR_H

#include "frame.h"

#define FAR_ANSWERS 8
#define FAR_ECHO_ID 0x6675

struct far {
	struct flow flow[FLOWS];
	struct frame answer[FAR_ANSWERS]; /* to be fed */
	uint32_t answers;
	uint16_t echo;       /* the number asked for */
	bool heard4, heard6; /* its answers */
};

/* A frame from the stack, perhaps cut short after the first hundred bytes. */
void far_see(struct far *far, const uint8_t *bytes, uint32_t len);

/* All that the stack sent was seen: connections go on from there. */
void far_settle(struct far *far);

#endif
