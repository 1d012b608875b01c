/* SPDX-License-Identifier: GPL-2.0-only */
/* Addresses with a port, which can be compared, printed and read. */
#ifndef GUISE_MPTCP_ADDRESS_H
#define GUISE_MPTCP_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define ADDRESS_TEXT 64 /* room for any as text */

struct address {
	uint8_t family; /* 4, 6, or 0: none */
	uint8_t bytes[16];
	uint16_t port;
};

/* An IPv4 address in IPv6 becomes the IPv4 address; another family gives none. */
struct address address_of(const void *sockaddr);
bool address_equal(const struct address *a, const struct address *b);
/* "192.0.2.1:80", "[2001:db8::1]:80" */
const char *address_text(const struct address *a, char text[ADDRESS_TEXT]);
bool address_read(struct address *a, const char *text);

/* Of the socket's own end, and of the other end. */
struct address address_local(int fd);
struct address address_remote(int fd);

#endif
