// SPDX-License-Identifier: GPL-2.0-only
/*
 * Name servers. Each server of a program's /etc/resolv.conf is an address of the stack that
 * stands for one of the host's, by its number (the plan's resolver lines). So the relay can
 * answer what is asked about guise's own names (names.c), and a stack outlives that a laptop
 * moves to another network: the host's file is looked at whenever somebody asks, and read anew
 * when it is another one than before.
 *
 * A server that only the host can reach, on its loopback or one of its links, is asked by the
 * host; any other one over the stack, as the program would.
 *
 * A stack whose links have name servers of their own (the change "nameservers", which the follower of
 * uplinks makes) asks these in place of the host's, each over its link: others may not be answered
 * there, and two links may have servers with one address. A connection to one that is not named any
 * more goes on.
 */
#include "holder/relay/resolvers.h"

#include "holder/carrier/ask.h"

#include "region/stack.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT_MOST 65536

static bool parse(const char *word, struct sockaddr_storage *a)
{
	struct sockaddr_in *in = (void *)a;
	struct sockaddr_in6 *in6 = (void *)a;
	char text[INET6_ADDRSTRLEN + IF_NAMESIZE + 1], *zone;

	memset(a, 0, sizeof(*a));
	if (strlen(word) >= sizeof(text))
		return false;
	strcpy(text, word);
	zone = strchr(text, '%');
	if (zone)
		*zone++ = '\0';
	if (inet_pton(AF_INET6, text, &in6->sin6_addr) == 1) {
		a->ss_family = AF_INET6;
		in6->sin6_port = htons(53);
		if (zone) {
			in6->sin6_scope_id = if_nametoindex(zone);
			if (!in6->sin6_scope_id)
				in6->sin6_scope_id = (uint32_t)strtoul(zone, NULL, 10);
		}
		return true;
	}
	if (zone || inet_pton(AF_INET, text, &in->sin_addr) != 1)
		return false;
	a->ss_family = AF_INET;
	in->sin_port = htons(53);
	return true;
}

void resolvers_read(struct resolvers *r, const char *text)
{
	char word[128];
	int length;

	r->n = 0;
	for (; r->n < RESOLVERS_MOST && *text; text += length, text += *text == '\n') {
		length = (int)strcspn(text, "\n");
		if (sscanf(text, "nameserver%*[ \t]%127[^ \t\r\n]", word) == 1 &&
		    parse(word, &r->server[r->n]))
			r->n++;
	}
	/* As the C library has it. */
	if (!r->n)
		r->n += parse("127.0.0.1", &r->server[0]);
}

static bool same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

const struct sockaddr_storage *resolvers_server(struct resolvers *r, unsigned int number)
{
	static char text[TEXT_MOST];
	struct stat now = { 0 };
	const int fd = ask_for_name_servers();
	FILE *f = NULL;
	size_t n;

	/* While another one is put in its place there is none for a moment. */
	if ((fd < 0 || fstat(fd, &now)) && r->n)
		goto known;
	if (r->n && same(&now, &r->read))
		goto known;
	f = fd < 0 ? NULL : fdopen(fd, "r");
	n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
	text[n] = '\0';
	resolvers_read(r, text);
	r->read = now;
known:
	if (f)
		fclose(f);
	else if (fd >= 0)
		close(fd);
	return &r->server[number % r->n];
}

int resolvers_set(struct resolvers *r, char **word, int words)
{
	struct resolvers_link link[RESOLVERS_MOST];
	unsigned int n = 0;

	if (words % 3 || words > 3 * RESOLVERS_MOST)
		return guise_fail(EINVAL, "nameservers: expected ADDR dev IFNAME for at most %d",
				  RESOLVERS_MOST);
	for (; n < (unsigned int)words / 3; n++, word += 3) {
		if (strcmp(word[1], "dev") || strlen(word[2]) >= IFNAMSIZ)
			return guise_fail(EINVAL, "nameservers: expected ADDR dev IFNAME");
		if (strchr(word[0], '%') || !parse(word[0], &link[n].server))
			return guise_fail(EINVAL, "nameservers: \"%s\" is no address", word[0]);
		strcpy(link[n].ifname, word[2]);
	}
	pthread_mutex_lock(&r->lock);
	memcpy(r->link, link, n * sizeof(*link));
	r->links = n;
	pthread_mutex_unlock(&r->lock);
	return 0;
}

bool resolvers_of_link(struct resolvers *r, unsigned int number, struct resolvers_link *link)
{
	bool has;

	pthread_mutex_lock(&r->lock);
	has = r->links > 0;
	if (has)
		*link = r->link[number % r->links];
	pthread_mutex_unlock(&r->lock);
	return has;
}

bool resolvers_is_hosts(const struct sockaddr_storage *server)
{
	const struct in_addr *four = &((const struct sockaddr_in *)server)->sin_addr;
	const struct in6_addr *six = &((const struct sockaddr_in6 *)server)->sin6_addr;

	if (server->ss_family == AF_INET) /* 127/8, 169.254/16 */
		return ntohl(four->s_addr) >> 24 == 127 || ntohl(four->s_addr) >> 16 == 0xa9fe;
	return IN6_IS_ADDR_LOOPBACK(six) || IN6_IS_ADDR_LINKLOCAL(six);
}
