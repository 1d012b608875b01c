/* SPDX-License-Identifier: GPL-2.0-only */
/* For the engine's unit tests: a stack with an engine, and random numbers that can be repeated. */
#ifndef GUISE_RELAY_TESTING_H
#define GUISE_RELAY_TESTING_H

#include "relay/engine.h"

#include "test/kernel.h"
#include "test/tap.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <stdint.h>
#include <sys/resource.h>
#include <time.h>

static struct guise_stack *stack;
static struct engine engine;
static uint64_t chance_state = 1;

static inline uint32_t chance(uint32_t below)
{
	chance_state = chance_state * 6364136223846793005 + 1442695040888963407;
	return (uint32_t)((chance_state >> 33) % below);
}

static inline struct sockaddr_storage four(uint32_t address, unsigned int port)
{
	struct sockaddr_storage a = { .ss_family = AF_INET };
	struct sockaddr_in *in = (void *)&a;

	in->sin_addr.s_addr = htonl(address);
	in->sin_port = htons((uint16_t)port);
	return a;
}

static inline unsigned int port_of(const struct sockaddr_storage *a)
{
	return ntohs(((const struct sockaddr_in *)a)->sin_port);
}

/* Makes the stack, its loopback and the engine. Returns how many descriptors the host allows. */
static inline unsigned int testing_begin(const char *name, const struct engine_ops *ops)
{
	struct guise_options options = GUISE_OPTIONS_INIT;
	struct rlimit64 many = { 60000, 60000 };
	struct rlimit limit;

	test_find_kernel();
	options.name = name;
	options.memory = 256 << 20;
	stack = guise_create(&options, NULL);
	if (!tap(stack != NULL, "a stack")) {
		printf("# %s\n", guise_error());
		exit(1);
	}
	tap_done(guise_link_set(stack, "lo", 1), "the loopback is up");
	/* A socket reserves a page for what it receives: allow that for each of many sockets. */
	guise_sysctl_set(stack, "net.ipv4.udp_mem", "65536 65536 65536");
	guise_call(stack, GUISE_NR_prlimit64, 0, RLIMIT_NOFILE, (long)&many, 0, 0, 0);
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max < 60000 ? limit.rlim_max : 60000;
	setrlimit(RLIMIT_NOFILE, &limit);
	engine.ops = ops;
	tap_done(engine_begin(&engine, stack), "an engine");
	return (unsigned int)limit.rlim_cur;
}

/* How many descriptors of the host this process has. */
static inline unsigned int testing_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static inline bool testing_late(time_t deadline)
{
	return time(NULL) > deadline;
}

/* A socket for the test itself, of the stack or of the host; bound if there is an address. */
static inline struct end testing_socket(bool inside, int type, const struct sockaddr_storage *at)
{
	struct end e;

	end_init(&e, &engine, inside, -1, NULL, NULL);
	if (end_socket(&e, AF_INET, type, 0) < 0 ||
	    (at && (end_option(&e, SOL_SOCKET, SO_REUSEADDR, type == SOCK_STREAM) ||
		    end_call(&e, bind, at, address_length(at), 0, 0, 0)))) {
		printf("Bail out! no socket\n");
		exit(1);
	}
	return e;
}

static inline struct sockaddr_storage testing_name(struct end *e)
{
	struct sockaddr_storage a = { 0 };
	socklen_t len = sizeof(a);

	end_call(e, getsockname, &a, &len, 0, 0, 0);
	return a;
}

#endif
