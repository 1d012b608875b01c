/* SPDX-License-Identifier: GPL-2.0-only */
/* Services for getaddrinfo: which socket types and ports a question means. */
#ifndef GUISE_PRELOAD_SERVICE_H
#define GUISE_PRELOAD_SERVICE_H

#include <netdb.h>
#include <netinet/in.h>

#define SERVICES_MAX 8

struct service {
	int socktype, protocol;
	in_port_t port; /* network order */
};

/* Fills list for a service name (NULL: any) and hints: how many, or EAI_* (negative). */
int service_find(const char *name, const struct addrinfo *hints, struct service list[SERVICES_MAX]);

#endif
