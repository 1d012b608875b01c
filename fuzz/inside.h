/* SPDX-License-Identifier: GPL-2.0-only */
/* What runs inside the stack under test: services that frames can reach, and examinations. */
#ifndef GUISE_FUZZ_INSIDE_H
#define GUISE_FUZZ_INSIDE_H

#include "frame.h"

#include "guise/guise.h"

/* Addresses, and services for TCP and UDP at FRAME_SERVICE; 0 or -errno. */
int inside_start(struct guise_stack *s);
/* Takes what came, answers some of it, lets old connections go. */
void inside_serve(struct guise_stack *s);

/* Merging of received packets, on or off. */
int inside_merge(struct guise_stack *s, bool on);

/* TCP over lo; NULL when all is well, else what is wrong. */
const char *inside_loopback(struct guise_stack *s);

/* A packet socket on eth0, to see frames with. */
int inside_listen(struct guise_stack *s);
/* Whether the next datagram that it saw is f, byte for byte, its checksum to be done where f
 * says; NULL, or what is wrong. */
const char *inside_heard(struct guise_stack *s, int fd, const struct frame *f);

/* Counters: packets that came to ip_rcv() and ipv6_rcv(); free memory in kB. */
void inside_received(struct guise_stack *s, uint64_t *ip4, uint64_t *ip6);
uint64_t inside_memory_free(struct guise_stack *s);

#endif
