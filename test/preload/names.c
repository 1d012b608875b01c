// SPDX-License-Identifier: GPL-2.0-only
/*
 * Names. A small DNS server runs in a thread, on 127.0.0.1 of whatever stack
 * the program is on; it knows the zone guise.test and the two networks of its
 * addresses. The driver has replaced /etc/hosts, /etc/resolv.conf (this server,
 * search guise.test) and /etc/nsswitch.conf.
 */
#include "case.h"

#include <netdb.h>
#include <resolv.h>
#include <sys/un.h>

#define DNS_PORT 53

static const struct record {
	const char *name;
	int type;
	const char *value;
} zone[] = {
	{ "one.guise.test", ns_t_a, "192.0.2.1" },
	{ "one.guise.test", ns_t_aaaa, "2001:db8::1" },
	{ "four.guise.test", ns_t_a, "192.0.2.4" },
	{ "six.guise.test", ns_t_aaaa, "2001:db8::6" },
	{ "alias.guise.test", ns_t_cname, "one.guise.test" },
	{ "text.guise.test", ns_t_txt, "some text" },
	{ "long.guise.test", ns_t_txt, "1" },
	{ "1.2.0.192.in-addr.arpa", ns_t_ptr, "one.guise.test" },
	{ "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa", ns_t_ptr,
	  "one.guise.test" },
};

#define RECORDS (sizeof(zone) / sizeof(*zone))

static int put_record(unsigned char *at, const unsigned char *end, const struct record *r)
{
	unsigned char *p = at;
	int n;

	n = ns_name_compress(r->name, p, (size_t)(end - p), NULL, NULL);
	MUST(n > 0);
	p += n;
	NS_PUT16(r->type, p);
	NS_PUT16(ns_c_in, p);
	NS_PUT32(60, p);
	p += 2;
	if (r->type == ns_t_a)
		n = inet_pton(AF_INET, r->value, p) * 4;
	else if (r->type == ns_t_aaaa)
		n = inet_pton(AF_INET6, r->value, p) * 16;
	else if (r->type == ns_t_txt) {
		n = (int)strlen(r->value);
		*p = (unsigned char)n;
		memcpy(p + 1, r->value, (size_t)n++);
	} else
		n = ns_name_compress(r->value, p, (size_t)(end - p), NULL, NULL);
	MUST(n > 0);
	p -= 2;
	NS_PUT16(n, p);
	return (int)(p + n - at);
}

/* The reply to a question, in place; its length. */
static int reply(unsigned char *message, int n, int room, bool tcp)
{
	unsigned char *p = message + n, *end = message + room;
	int rcode = ns_r_nxdomain, answers = 0;
	char name[NS_MAXDNAME];
	const char *wanted = name;
	ns_msg m;
	ns_rr rr;

	if (ns_initparse(message, n, &m) || ns_parserr(&m, ns_s_qd, 0, &rr))
		return 0;
	strcpy(name, ns_rr_name(rr));
	/* The question alone: what follows it (EDNS) goes. */
	p = message + NS_HFIXEDSZ;
	p += ns_name_skip((const unsigned char **)&p, message + n) ? 0 : NS_QFIXEDSZ;
	for (size_t i = 0; i < RECORDS; i++) {
		const struct record *r = &zone[i];

		if (strcasecmp(r->name, wanted))
			continue;
		rcode = ns_r_noerror;
		if (r->type != (int)ns_rr_type(rr) && r->type != ns_t_cname)
			continue;
		for (int k = 0; k < (strcmp(name, "long.guise.test") ? 1 : 100); k++) {
			p += put_record(p, end, r);
			answers++;
		}
		if (r->type == ns_t_cname) {
			wanted = r->value;
			i = (size_t)-1;
		}
	}
	if (!strcmp(name, "fail.guise.test"))
		rcode = ns_r_servfail;
	message[2] = 0x84 | (message[2] & 1);
	message[3] = (unsigned char)(0x80 | rcode);
	if (!tcp && p - message > NS_PACKETSZ) {
		message[2] |= 2; /* truncated: ask again over TCP */
		p = message + NS_HFIXEDSZ;
		p += ns_name_skip((const unsigned char **)&p, message + n) ? 0 : NS_QFIXEDSZ;
		answers = 0;
	}
	memset(message + 6, 0, 6);
	message[7] = (unsigned char)answers;
	return (int)(p - message);
}

static int server[2]; /* UDP, TCP */

static void *serve(void *unused)
{
	static unsigned char message[1 << 15];
	struct sockaddr_in from;
	socklen_t len;
	int n, fd;

	(void)unused;
	for (;;) {
		struct pollfd p[2] = { { .fd = server[0], .events = POLLIN },
				       { .fd = server[1], .events = POLLIN } };

		/* A handler for the process may run in this thread. */
		if (poll(p, 2, -1) < 0 && errno == EINTR)
			continue;
		if (p[0].revents) {
			len = sizeof(from);
			n = (int)recvfrom(server[0], message, 4096, 0, (struct sockaddr *)&from,
					  &len);
			n = reply(message, n, sizeof(message), false);
			sendto(server[0], message, (size_t)n, 0, (struct sockaddr *)&from, len);
		}
		if (p[1].revents) {
			fd = accept(server[1], NULL, NULL);
			MUST(fd >= 0);
			MUST(recv(fd, message, 2, MSG_WAITALL) == 2);
			n = message[0] << 8 | message[1];
			MUST(recv(fd, message + 2, (size_t)n, MSG_WAITALL) == n);
			n = reply(message + 2, n, sizeof(message) - 2, true);
			message[0] = (unsigned char)(n >> 8);
			message[1] = (unsigned char)n;
			MUST(send(fd, message, (size_t)n + 2, 0) == n + 2);
			close(fd);
		}
	}
	return NULL;
}

static void start_server(void)
{
	struct sockaddr_in addr = loopback(DNS_PORT);
	int on = 1;
	pthread_t thread;

	for (int i = 0; i < 2; i++) {
		server[i] = socket(AF_INET, i ? SOCK_STREAM : SOCK_DGRAM, 0);
		MUST(!setsockopt(server[i], SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)));
		MUST(!bind(server[i], (struct sockaddr *)&addr, sizeof(addr)));
	}
	MUST(!listen(server[1], 5));
	MUST(!pthread_create(&thread, NULL, serve, NULL));
	MUST(!pthread_detach(thread));
}

static void show_info(const char *host, const char *service, int family, int type, int protocol,
		      int flags)
{
	struct addrinfo hints = { .ai_family = family,
				  .ai_socktype = type,
				  .ai_protocol = protocol,
				  .ai_flags = flags },
			*list, *i;
	char text[INET6_ADDRSTRLEN], line[200], last[200] = "";
	int err = getaddrinfo(host, service, &hints, &list);

	printf("%s %s %d %d %d %x = %d\n", host ? host : "-", service ? service : "-", family, type,
	       protocol, flags, err);
	for (i = err ? NULL : list; i; i = i->ai_next) {
		const struct sockaddr_in *in = (const void *)i->ai_addr;
		const struct sockaddr_in6 *in6 = (const void *)i->ai_addr;

		inet_ntop(i->ai_family,
			  i->ai_family == AF_INET ? (const void *)&in->sin_addr : &in6->sin6_addr,
			  text, sizeof(text));
		snprintf(line, sizeof(line), "\t%d %d %d %u %x %s %d %u", i->ai_family,
			 i->ai_socktype, i->ai_protocol, i->ai_addrlen, i->ai_flags, text,
			 ntohs(in->sin_port), i->ai_family == AF_INET6 ? in6->sin6_scope_id : 0);
		/* For IPv4, libc counts ::1 of /etc/hosts as a second 127.0.0.1. */
		if (strcmp(line, last))
			printf("%s %s\n", line, i->ai_canonname ? i->ai_canonname : "");
		strcpy(last, line);
	}
	if (!err)
		freeaddrinfo(list);
}

CASE(names_forward)
{
	struct addrinfo *list;

	start_server();
	show_info("one", "80", AF_UNSPEC, SOCK_STREAM, 0, 0);
	show_info("one.guise.test", NULL, AF_UNSPEC, 0, 0, 0);
	show_info("one.guise.test.", NULL, AF_INET, SOCK_DGRAM, 0, 0);
	show_info("ONE.guise.TEST", NULL, AF_INET6, SOCK_DGRAM, 0, AI_CANONNAME);
	show_info("four", "http", AF_UNSPEC, SOCK_STREAM, 0, 0);
	show_info("four", "http", AF_INET6, SOCK_STREAM, 0, 0);
	show_info("four", "http", AF_INET6, SOCK_STREAM, 0, AI_V4MAPPED);
	show_info("one", NULL, AF_INET6, SOCK_STREAM, 0, AI_V4MAPPED | AI_ALL);
	show_info("six", "53", AF_INET, SOCK_DGRAM, 0, 0);
	show_info("alias", "443", AF_UNSPEC, SOCK_STREAM, 0, AI_CANONNAME);
	show_info("filed", "443", AF_UNSPEC, SOCK_STREAM, 0, AI_CANONNAME);
	show_info("filed6", "443", AF_UNSPEC, SOCK_STREAM, 0, 0);
	show_info("nothing", NULL, AF_UNSPEC, SOCK_STREAM, 0, 0);
	show_info("text", NULL, AF_UNSPEC, SOCK_STREAM, 0, 0);
	show_info("fail", NULL, AF_UNSPEC, SOCK_STREAM, 0, 0);
	show_info("one", NULL, AF_UNSPEC, SOCK_STREAM, 0, AI_NUMERICHOST);
	show_info("localhost", "80", AF_INET, SOCK_STREAM, 0, 0);
	show_info("localhost", "80", AF_INET6, SOCK_STREAM, 0, 0);
	show_info("localhost", "80", AF_UNSPEC, SOCK_STREAM, 0, 0);
	show_info("192.0.2.9", "http", AF_UNSPEC, 0, 0, AI_CANONNAME);
	show_info("192.0.2.9", "domain", AF_UNSPEC, 0, 0, 0);
	show_info("192.0.2.9", "domain", AF_UNSPEC, SOCK_DGRAM, 0, 0);
	show_info("192.0.2.9", "domain", AF_UNSPEC, 0, IPPROTO_TCP, 0);
	show_info("192.0.2.9", "nosuchservice", AF_UNSPEC, 0, 0, 0);
	show_info("192.0.2.9", "http", AF_UNSPEC, SOCK_STREAM, 0, AI_NUMERICSERV);
	show_info("192.0.2.9", "http", AF_UNSPEC, SOCK_RAW, 0, 0);
	show_info("192.0.2.9", NULL, AF_UNSPEC, SOCK_RAW, 1, 0);
	show_info("192.0.2.9", NULL, AF_UNSPEC, 77, 0, 0);
	show_info("192.0.2.9", NULL, AF_UNSPEC, 0, 99, 0);
	show_info("192.0.2.9", "70000", AF_UNSPEC, SOCK_STREAM, 0, 0);
	show_info("192.0.2.9", NULL, AF_INET6, SOCK_STREAM, 0, 0);
	show_info("192.0.2.9", NULL, AF_INET6, SOCK_STREAM, 0, AI_V4MAPPED);
	show_info("127.1", "1", AF_INET, SOCK_STREAM, 0, 0);
	show_info("0x7f.1", "1", AF_INET, SOCK_STREAM, 0, AI_NUMERICHOST);
	show_info("1.2.3.4 x", "1", AF_INET, SOCK_STREAM, 0, AI_NUMERICHOST);
	show_info("::1", "1234", AF_UNSPEC, SOCK_STREAM, 0, 0);
	show_info("::1", "1234", AF_INET, SOCK_STREAM, 0, 0);
	show_info("::ffff:192.0.2.3", "1234", AF_INET, SOCK_STREAM, 0, AI_V4MAPPED);
	show_info("fe80::1%lo", NULL, AF_UNSPEC, SOCK_STREAM, 0, AI_NUMERICHOST);
	show_info("fe80::1%7", NULL, AF_UNSPEC, SOCK_STREAM, 0, AI_NUMERICHOST);
	show_info("fe80::1%none0", NULL, AF_UNSPEC, SOCK_STREAM, 0, AI_NUMERICHOST);
	show_info("2001:db8::1%lo", NULL, AF_UNSPEC, SOCK_STREAM, 0, AI_NUMERICHOST);
	show_info(NULL, "80", AF_UNSPEC, SOCK_STREAM, 0, AI_PASSIVE);
	show_info(NULL, "80", AF_UNSPEC, SOCK_STREAM, 0, 0);
	show_info(NULL, "80", AF_INET6, SOCK_STREAM, 0, AI_PASSIVE);
	show_info(NULL, NULL, AF_INET6, SOCK_STREAM, 0, AI_PASSIVE);
	show_info(NULL, "80", AF_INET, SOCK_STREAM, 0, AI_CANONNAME);
	show_info("*", "80", AF_INET, SOCK_STREAM, 0, 0);
	show_info("one", NULL, AF_UNIX, SOCK_STREAM, 0, 0);
	show_info("one", NULL, AF_UNSPEC, SOCK_STREAM, 0, 0x8000);
	show_info("one", NULL, AF_INET, SOCK_STREAM, 0, AI_ADDRCONFIG);
	show_info("one", NULL, AF_UNSPEC, SOCK_STREAM, 0, AI_ADDRCONFIG);
	show_info("", "80", AF_UNSPEC, SOCK_STREAM, 0, 0);
	show_info("a..b", "80", AF_UNSPEC, SOCK_STREAM, 0, 0);
	SHOW(getaddrinfo("192.0.2.1", "80", NULL, &list));
	freeaddrinfo(list);
}

static void show_name(const char *address, uint32_t scope, int port, socklen_t room, int flags)
{
	union {
		struct sockaddr any;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} a = { .in6 = { .sin6_family = AF_INET6 } };
	socklen_t len = sizeof(a.in6);
	char host[NI_MAXHOST] = "", service[NI_MAXSERV] = "";
	int err;

	if (inet_pton(AF_INET6, address, &a.in6.sin6_addr) == 1) {
		a.in6.sin6_scope_id = scope;
	} else {
		len = sizeof(a.in);
		a.in.sin_family = AF_INET;
		MUST(inet_pton(AF_INET, address, &a.in.sin_addr) == 1);
	}
	a.in.sin_port = htons((uint16_t)port);
	err = getnameinfo(&a.any, len, host, room, service, sizeof(service), flags);
	printf("%s %d %u %x = %d", address, port, room, flags, err);
	if (err)
		printf("\n");
	else
		printf(" %s %s\n", host, service);
}

static const int families[] = { AF_UNSPEC, AF_INET, AF_INET6 };
static const int kinds[] = { 0,           AI_CANONNAME,         AI_PASSIVE,
			     AI_V4MAPPED, AI_V4MAPPED | AI_ALL, AI_NUMERICHOST };

static void show_in_every_way(const char *host)
{
	for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++)
		for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++)
			show_info(host, "80", families[i], SOCK_STREAM, 0, kinds[k]);
}

/* Texts that are not names: no server is asked. */
CASE(names_empty)
{
	show_in_every_way("");
	show_info("", NULL, AF_UNSPEC, SOCK_STREAM, 0, 0);
	show_info(" ", "80", AF_UNSPEC, SOCK_STREAM, 0, 0);
	start_server();
	show_in_every_way("");
	show_in_every_way(" ");
}

/* Whatever of it /etc/hosts has. */
CASE(names_localhost)
{
	struct hostent *h;

	start_server();
	show_in_every_way("localhost");
	show_in_every_way("LocalHost");
	show_in_every_way("localhost.");
	show_in_every_way("some.localhost");
	for (size_t i = 1; i < sizeof(families) / sizeof(*families); i++) {
		h = gethostbyname2("localhost", families[i]);
		printf("%d %s %d\n", families[i], h ? h->h_name : "-", h ? 0 : h_errno);
	}
}

CASE(names_backward)
{
	struct sockaddr_un local = { .sun_family = AF_UNIX, .sun_path = "/nowhere" };
	char host[100], service[100];

	start_server();
	show_name("192.0.2.1", 0, 80, 100, 0);
	show_name("192.0.2.1", 0, 80, 100, NI_NUMERICHOST);
	show_name("192.0.2.1", 0, 80, 100, NI_NUMERICSERV);
	show_name("192.0.2.1", 0, 80, 5, 0);
	show_name("192.0.2.1", 0, 80, 5, NI_NUMERICHOST);
	show_name("192.0.2.1", 0, 80, 100, NI_NOFQDN);
	show_name("192.0.2.77", 0, 53, 100, NI_DGRAM);
	show_name("192.0.2.200", 0, 60000, 100, 0);
	show_name("192.0.2.200", 0, 80, 100, NI_NAMEREQD);
	show_name("2001:db8::1", 0, 80, 100, 0);
	show_name("2001:db8::1", 0, 80, 100, NI_NUMERICHOST);
	show_name("fe80::1", 1, 80, 100, NI_NUMERICHOST);
	show_name("fe80::1", 4711, 80, 100, NI_NUMERICHOST);
	show_name("2001:db8::1", 1, 80, 100, NI_NUMERICHOST);
	show_name("192.0.2.1", 0, 80, 100, 0x4000);
	SHOW(getnameinfo((struct sockaddr *)&local, sizeof(local), host, 100, service, 100, 0));
	puts(service);
	SHOW(getnameinfo((struct sockaddr *)&local, 1, host, 100, service, 100, 0));
}

static void show_host(const char *question, const struct hostent *h)
{
	char text[INET6_ADDRSTRLEN];

	printf("%s:", question);
	if (!h) {
		printf(" h_errno %d\n", h_errno);
		return;
	}
	printf(" %s %d %d", h->h_name, h->h_addrtype, h->h_length);
	for (char **a = h->h_aliases; *a; a++)
		printf(" alias %s", *a);
	for (char **a = h->h_addr_list; *a; a++)
		printf(" %s", inet_ntop(h->h_addrtype, *a, text, sizeof(text)));
	printf("\n");
}

CASE(names_old_calls)
{
	struct hostent entry, *result;
	struct in6_addr in6;
	struct in_addr in;
	char room[1000];
	int error;

	start_server();
	show_host("one", gethostbyname("one"));
	show_host("alias", gethostbyname("alias"));
	show_host("filed", gethostbyname("filed"));
	show_host("number", gethostbyname("192.0.2.5"));
	show_host("nothing", gethostbyname("nothing"));
	show_host("six", gethostbyname("six"));
	show_host("fail", gethostbyname("fail"));
	show_host("one 6", gethostbyname2("one", AF_INET6));
	show_host("four 6", gethostbyname2("four", AF_INET6));
	SHOW(gethostbyname_r("one", &entry, room, sizeof(room), &result, &error));
	SHOW(result == &entry);
	show_host("one _r", result);
	SHOW(gethostbyname_r("one", &entry, room, 10, &result, &error));
	SHOW(result == NULL);
	SHOW(error);
	SHOW(gethostbyname_r("nothing", &entry, room, sizeof(room), &result, &error));
	SHOW(result == NULL);
	SHOW(error);
	SHOW(gethostbyname2_r("six", AF_INET6, &entry, room, sizeof(room), &result, &error));
	show_host("six _r", result);
	inet_pton(AF_INET, "192.0.2.1", &in);
	show_host("192.0.2.1", gethostbyaddr(&in, sizeof(in), AF_INET));
	SHOW(gethostbyaddr_r(&in, sizeof(in), AF_INET, &entry, room, sizeof(room), &result,
			     &error));
	show_host("192.0.2.1 _r", result);
	inet_pton(AF_INET, "192.0.2.77", &in);
	show_host("192.0.2.77", gethostbyaddr(&in, sizeof(in), AF_INET));
	inet_pton(AF_INET, "192.0.2.200", &in);
	show_host("192.0.2.200", gethostbyaddr(&in, sizeof(in), AF_INET));
	inet_pton(AF_INET6, "2001:db8::1", &in6);
	show_host("2001:db8::1", gethostbyaddr(&in6, sizeof(in6), AF_INET6));
}

static void show_message(const char *what, const unsigned char *message, int n)
{
	ns_msg m;

	if (n < 0)
		printf("%s = %d h_errno %d\n", what, n, h_errno);
	else if (ns_initparse(message, n, &m))
		printf("%s = bad message\n", what);
	else
		printf("%s = rcode %d, %d answers\n", what, ns_msg_getflag(m, ns_f_rcode),
		       ns_msg_count(m, ns_s_an));
}

CASE(names_raw)
{
	static unsigned char answer[1 << 16], query[512];
	struct __res_state state = { 0 };
	int n;

#define RAW(call) show_message(#call, answer, call)
	start_server();
	MUST(!res_ninit(&state));
	RAW(res_query("text.guise.test", ns_c_in, ns_t_txt, answer, sizeof(answer)));
	RAW(res_query("one.guise.test", ns_c_in, ns_t_a, answer, sizeof(answer)));
	RAW(res_query("one", ns_c_in, ns_t_a, answer, sizeof(answer)));
	RAW(res_search("one", ns_c_in, ns_t_a, answer, sizeof(answer)));
	RAW(res_search("nothing", ns_c_in, ns_t_a, answer, sizeof(answer)));
	RAW(res_query("six.guise.test", ns_c_in, ns_t_a, answer, sizeof(answer)));
	RAW(res_query("long.guise.test", ns_c_in, ns_t_txt, answer, sizeof(answer)));
	RAW(res_querydomain("one", "guise.test", ns_c_in, ns_t_a, answer, sizeof(answer)));
	RAW(res_nquery(&state, "text.guise.test", ns_c_in, ns_t_txt, answer, sizeof(answer)));
	RAW(res_nsearch(&state, "one", ns_c_in, ns_t_aaaa, answer, sizeof(answer)));
	RAW(res_nquerydomain(&state, "one", "guise.test", ns_c_in, ns_t_a, answer, sizeof(answer)));
	n = res_nmkquery(&state, ns_o_query, "nothing.guise.test", ns_c_in, ns_t_a, NULL, 0, NULL,
			 query, sizeof(query));
	MUST(n > 0);
	RAW(res_nsend(&state, query, n, answer, sizeof(answer)));
	RAW(res_send(query, n, answer, sizeof(answer)));
}

static volatile sig_atomic_t told;

static void tell(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	told = info->si_value.sival_int;
}

static volatile int threads_told;

static void tell_thread(union sigval value)
{
	__atomic_store_n(&threads_told, value.sival_int, __ATOMIC_RELEASE);
}

static void show_request(struct gaicb *r)
{
	struct sockaddr_in *in;

	SHOW(gai_error(r));
	if (gai_error(r))
		return;
	in = (struct sockaddr_in *)r->ar_result->ai_addr;
	printf("%s:%d\n", inet_ntoa(in->sin_addr), ntohs(in->sin_port));
	freeaddrinfo(r->ar_result);
}

/* Waits until all of them have an answer. */
static void await_all(struct gaicb *list[], int n)
{
	struct timespec long_enough = { .tv_sec = 20 };

	for (int i = 0; i < n; i++)
		while (list[i] && gai_error(list[i]) == EAI_INPROGRESS)
			gai_suspend((const struct gaicb *const *)&list[i], 1, &long_enough);
}

static void suspended(void *data)
{
	const struct gaicb *list[] = { data };

	gai_suspend(list, 1, NULL);
}

static volatile int interrupted;

static void interrupted_by_signal(void *data)
{
	const struct gaicb *list[] = { data };

	interrupted = gai_suspend(list, 1, &(struct timespec){ .tv_sec = 20 });
}

static void note(int sig)
{
	(void)sig;
}

/* A server that is silent: a thread that waits for its answer can be interrupted, not cancelled. */
CASE(names_suspended)
{
	struct addrinfo hints = { .ai_family = AF_INET };
	struct gaicb one = { .ar_name = "one", .ar_request = &hints }, *list[] = { &one };
	struct sigaction act = { .sa_handler = note };
	struct sockaddr_in addr = loopback(53);
	int silent = socket(AF_INET, SOCK_DGRAM, 0);
	struct worker w;
	void *end;

	MUST(!bind(silent, (void *)&addr, sizeof(addr)));
	MUST(!sigaction(SIGUSR1, &act, NULL));
	SHOW(getaddrinfo_a(GAI_NOWAIT, list, 1, NULL));
	start_and_await(&w, interrupted_by_signal, &one);
	SHOW(pthread_kill(w.thread, SIGUSR1));
	SHOW(pthread_join(w.thread, NULL));
	SHOW(interrupted == EAI_INTR);
	SHOW(gai_error(&one) == EAI_INPROGRESS);
	start_and_await(&w, suspended, &one);
	SHOW(pthread_cancel(w.thread));
	SHOW(pthread_join(w.thread, &end));
	SHOW(end == PTHREAD_CANCELED);
	SHOW(gai_error(&one) == EAI_AGAIN);
}

CASE(names_asynchronous)
{
	struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM };
	struct gaicb one = { .ar_name = "one", .ar_service = "80", .ar_request = &hints },
		     four = { .ar_name = "four.guise.test", .ar_request = &hints },
		     nothing = { .ar_name = "nothing", .ar_request = &hints },
		     *list[] = { &one, NULL, &nothing, &four };
	struct sigaction act = { .sa_sigaction = tell, .sa_flags = SA_SIGINFO };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL,
				  .sigev_signo = SIGUSR1,
				  .sigev_value.sival_int = 5 };
	struct timespec moment = { .tv_nsec = 1000000 };
	double deadline = now() + 20;

	start_server();
	SHOW(getaddrinfo_a(4711, list, 4, NULL) == EAI_SYSTEM);
	SHOW(errno == EINVAL);
	SHOW(getaddrinfo_a(GAI_WAIT, list, 4, NULL));
	show_request(&one);
	show_request(&nothing);
	show_request(&four);
	SHOW(gai_cancel(&one) == EAI_ALLDONE);
	MUST(!sigaction(SIGUSR1, &act, NULL));
	SHOW(getaddrinfo_a(GAI_NOWAIT, list, 4, &event));
	await_all(list, 4);
	while (!told && now() < deadline)
		nanosleep(&moment, NULL);
	SHOW(told);
	show_request(&one);
	show_request(&nothing);
	show_request(&four);
	event = (struct sigevent){ .sigev_notify = SIGEV_THREAD,
				   .sigev_notify_function = tell_thread,
				   .sigev_value.sival_int = 6 };
	SHOW(getaddrinfo_a(GAI_NOWAIT, list, 4, &event));
	await_all(list, 4);
	while (!__atomic_load_n(&threads_told, __ATOMIC_ACQUIRE) && now() < deadline)
		nanosleep(&moment, NULL);
	SHOW(threads_told);
	show_request(&one);
	show_request(&four);
	list[0] = list[2] = list[3] = NULL;
	SHOW(gai_suspend((const struct gaicb *const *)list, 4, NULL) == EAI_ALLDONE);
}
