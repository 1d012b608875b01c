/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The wires: ways to get a frame into a stack's receive path. Each opens a
 * link eth0 in a stack and holds its other end; one at a time in a process.
 */
#ifndef GUISE_FUZZ_WIRE_H
#define GUISE_FUZZ_WIRE_H

#include "frame.h"

#include "region/stack.h"

enum feed {
	FED,
	FEED_FULL,    /* no room now: let the stack take something */
	FEED_REFUSED, /* what carries the frame will not have it */
};

struct wire {
	const char *name;
	const char *what; /* for people */
	bool simulated;   /* works in simulated time, so a seed repeats a run exactly */
	bool exact;       /* what was fed is what arrives, in order, byte for byte */
	/* Whether the wire can be had here: NULL, or why not. Before there is a stack. */
	const char *(*missing)(void);
	/* The index of the link; -errno with guise_error()'s sentence. */
	int (*open)(struct guise_stack *s);
	enum feed (*feed)(const struct frame *f);
	/* What the stack sent, header included and perhaps cut short; -EAGAIN: nothing. */
	int64_t (*take)(uint8_t *buf, uint32_t size);
	/* As a malicious other end: leaves the wire in a state of any kind. */
	void (*sabotage)(struct rng *r);
	/* As an orderly other end takes over from the malicious one. */
	void (*repair)(void);
};

extern const struct wire wire_port, wire_tap, wire_pair, wire_packet, wire_host_tap;

/* Adds a link that the fuzzer itself is the backend of, or seems to be. */
int wire_plug(struct guise_stack *s, const struct guise_link_backend *backend, const int fd[2]);

#endif
