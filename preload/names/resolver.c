// SPDX-License-Identifier: GPL-2.0-only
/*
 * Asking DNS over the stack.
 *
 * libc's resolver opens its sockets inside libc, where no hook sees them; so
 * its calls are answered here with c-ares, whose sockets go through the hooks
 * like the program's own. c-ares reads /etc/hosts, /etc/resolv.conf (servers,
 * search, ndots) and the "hosts:" line of /etc/nsswitch.conf. $GUISE_DNS, a
 * list "ADDR[:PORT],...", replaces the servers.
 *
 * The servers of the program's resolv.conf are addresses that the holder relays (files.c,
 * holder/relay/resolvers.c): here they are like any others.
 *
 * Each lookup reads the files anew: a laptop's servers change. Other sources
 * of /etc/nsswitch.conf (mdns, ldap, sss, myhostname) are not asked.
 */
#include "preload/names/resolver.h"

#include "preload/locks.h"
#include "preload/preload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void read_options(struct resolver_options *o)
{
	const char *words = secure_getenv("RES_OPTIONS");
	FILE *f = fopen("/etc/resolv.conf", "re");
	char line[512];

	while (f && fgets(line, sizeof(line), f))
		resolver_options_line(o, line);
	if (f)
		fclose(f);
	if (words)
		resolver_options_read(o, words);
}

/* ---- what c-ares does with sockets: through the hooks ---------------------- */

static ares_socket_t open_socket(int family, int type, int protocol, void *unused)
{
	(void)unused;
	return socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol);
}

static int close_socket(ares_socket_t fd, void *unused)
{
	(void)unused;
	return close(fd);
}

static int connect_socket(ares_socket_t fd, const struct sockaddr *addr, ares_socklen_t len,
			  void *unused)
{
	(void)unused;
	return connect(fd, addr, len);
}

static ares_ssize_t receive(ares_socket_t fd, void *buf, size_t n, int flags, struct sockaddr *addr,
			    ares_socklen_t *len, void *unused)
{
	(void)unused;
	return recvfrom(fd, buf, n, flags, addr, len);
}

static ares_ssize_t transmit(ares_socket_t fd, const struct iovec *iov, int n, void *unused)
{
	struct msghdr message = { .msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)n };

	(void)unused;
	return sendmsg(fd, &message, MSG_NOSIGNAL);
}

static const struct ares_socket_functions sockets = {
	open_socket, close_socket, connect_socket, receive, transmit,
};

/* ---- one lookup -------------------------------------------------------------- */

static void begin(void)
{
	ares_library_init(ARES_LIB_INIT_ALL);
}

int resolver_open(struct resolver *r, int flags)
{
	static bool begun;
	struct resolver_options o = RESOLVER_DEFAULTS;
	const char *servers = secure_getenv("GUISE_DNS");
	struct ares_options options;
	int status;

	guise_own_once(PRELOAD_LOCK_BEGIN, &begun, begin);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &r->cancel_state);
	read_options(&o);
	options = (struct ares_options){
		.flags = flags | (o.use_vc ? ARES_FLAG_USEVC : 0),
		.timeout = o.timeout_ms,
		.tries = o.attempts,
	};
	status = ares_init_options(&r->channel, &options,
				   ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES);
	if (status)
		goto restore;
	if (servers && *servers) {
		status = ares_set_servers_ports_csv(r->channel, servers);
		if (status) {
			preload_say("GUISE_DNS=%s is not a list ADDR[:PORT],...", servers);
			goto destroy;
		}
	}
	ares_set_socket_functions(r->channel, &sockets, NULL);
	resolver_reads_hosts(true);
	return ARES_SUCCESS;

destroy:
	ares_destroy(r->channel);
restore:
	pthread_setcancelstate(r->cancel_state, NULL);
	return status;
}

void resolver_run(struct resolver *r)
{
	for (;;) {
		ares_socket_t fd[ARES_GETSOCK_MAXNUM];
		struct pollfd p[ARES_GETSOCK_MAXNUM];
		/* c-ares' own macros shift a 1 into the sign. */
		unsigned int bits = (unsigned int)ares_getsock(r->channel, fd, ARES_GETSOCK_MAXNUM);
		struct timeval t, *left = ares_timeout(r->channel, NULL, &t);
		nfds_t n = 0;
		int ready;

		for (int i = 0; i < ARES_GETSOCK_MAXNUM; i++) {
			short events = (bits >> i & 1 ? POLLIN : 0) |
				       (bits >> (i + ARES_GETSOCK_MAXNUM) & 1 ? POLLOUT : 0);

			if (events)
				p[n++] = (struct pollfd){ .fd = fd[i], .events = events };
		}
		if (!n && !left)
			return;
		ready = poll(p, n, left ? (int)(t.tv_sec * 1000 + (t.tv_usec + 999) / 1000) : -1);
		if (ready <= 0) /* the time is up, or a signal */
			ares_process_fd(r->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
		for (nfds_t i = 0; ready > 0 && i < n; i++)
			if (p[i].revents)
				ares_process_fd(r->channel,
						p[i].events & POLLIN ? p[i].fd : ARES_SOCKET_BAD,
						p[i].events & POLLOUT ? p[i].fd : ARES_SOCKET_BAD);
	}
}

void resolver_close(struct resolver *r)
{
	resolver_reads_hosts(false);
	ares_destroy(r->channel);
	pthread_setcancelstate(r->cancel_state, NULL);
}

int resolver_eai(int status)
{
	switch (status) {
	case ARES_SUCCESS:
		return 0;
	case ARES_ENOTFOUND:
	case ARES_EBADNAME:
		return EAI_NONAME;
	case ARES_ENODATA:
		return EAI_NODATA;
	case ARES_ENOMEM:
		return EAI_MEMORY;
	case ARES_EFORMERR:
	case ARES_ENOTIMP:
	case ARES_EBADRESP:
		return EAI_FAIL;
	default: /* no answer, SERVFAIL, REFUSED */
		return EAI_AGAIN;
	}
}

int resolver_h_errno(int status)
{
	switch (resolver_eai(status)) {
	case 0:
		return NETDB_SUCCESS;
	case EAI_NONAME:
		return HOST_NOT_FOUND;
	case EAI_NODATA:
		return NO_DATA;
	case EAI_AGAIN:
		return TRY_AGAIN;
	default:
		return NO_RECOVERY;
	}
}
