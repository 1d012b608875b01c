/* SPDX-License-Identifier: GPL-2.0-only */
/* The host's name servers, as they are when somebody asks. */
#ifndef GUISE_HOLDER_RESOLVERS_H
#define GUISE_HOLDER_RESOLVERS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define RESOLVERS_MOST 3 /* as many as the C library asks */

struct resolvers {
	struct sockaddr_storage server[RESOLVERS_MOST]; /* port 53 */
	unsigned int n;
	struct stat read; /* the file, as it was then */
};

/* Reads the text of a resolv.conf. */
void resolvers_read(struct resolvers *r, const char *text);
/* The server of that number; where there are fewer, one that there is. */
const struct sockaddr_storage *resolvers_server(struct resolvers *r, unsigned int number);
/* Only the host itself can ask it. */
bool resolvers_is_hosts(const struct sockaddr_storage *server);

#endif
