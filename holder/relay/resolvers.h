/* SPDX-License-Identifier: GPL-2.0-only */
/* The name servers that a stack asks: the host's, as they are when somebody asks, or those of its
 * links. */
#ifndef GUISE_HOLDER_RESOLVERS_H
#define GUISE_HOLDER_RESOLVERS_H

#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define RESOLVERS_MOST 3 /* as many as the C library asks */

/* A server that one of the stack's links has, and which is asked over that link. */
struct resolvers_link {
	struct sockaddr_storage server; /* port 53 */
	char ifname[IFNAMSIZ];
};

struct resolvers {
	struct sockaddr_storage server[RESOLVERS_MOST]; /* port 53 */
	unsigned int n;
	struct stat read; /* the file, as it was then */

	pthread_mutex_t lock; /* of what follows, which changes while questions are asked */
	struct resolvers_link link[RESOLVERS_MOST];
	unsigned int links; /* 0: the host's are asked */
};

/* Reads the text of a resolv.conf. */
void resolvers_read(struct resolvers *r, const char *text);
/* The server of that number; where there are fewer, one that there is. */
const struct sockaddr_storage *resolvers_server(struct resolvers *r, unsigned int number);
/* From now on the servers of links are asked, as in "ADDR dev IFNAME ..."; without words the host's
 * again. 0 or -errno with a sentence. */
int resolvers_set(struct resolvers *r, char **word, int words);
/* The one of that number; where there are fewer, one that there is. False: the host's are asked. */
bool resolvers_of_link(struct resolvers *r, unsigned int number, struct resolvers_link *link);
/* Only the host itself can ask it. */
bool resolvers_is_hosts(const struct sockaddr_storage *server);

#endif
