// SPDX-License-Identifier: GPL-2.0-only
/* Functions of libc that are looked up by name: by a handle of libc, and without one. */
#include "case.h"

#include <dlfcn.h>
#include <ifaddrs.h>
#include <link.h>
#include <net/if.h>

static char buf[8];

static void *const functions[] = { (void *)socket, (void *)getifaddrs, (void *)read,
				   (void *)syscall, (void *)dlsym };
static const char *const names[] = { "socket", "getifaddrs", "read", "syscall", "dlsym" };

/* Whether it is what the program gets that calls it by name. */
static void show_same(void *handle, const char *of)
{
	for (unsigned int i = 0; i < sizeof(names) / sizeof(*names); i++)
		printf("%s of %s: %d\n", names[i], of, dlsym(handle, names[i]) == functions[i]);
}

/* An echo over a connection whose calls are all found in libc. */
static void echo_by(void *libc)
{
	int (*make)(int, int, int) = dlsym(libc, "socket");
	int (*reach)(int, const struct sockaddr *, socklen_t) = dlsym(libc, "connect");
	int (*take)(int, struct sockaddr *, socklen_t *) = dlsym(libc, "accept");
	ssize_t (*put)(int, const void *, size_t) = dlsym(libc, "write");
	ssize_t (*get)(int, void *, size_t, int) = dlvsym(libc, "recv", "GLIBC_2.2.5");
	struct sockaddr_in addr;
	int listener = bound(SOCK_STREAM, &addr), c, a;

	if (!get) /* processors that came later */
		get = dlvsym(libc, "recv", "GLIBC_2.17");
	c = make(AF_INET, SOCK_STREAM, 0);
	SHOW(reach(c, (struct sockaddr *)&addr, sizeof(addr)));
	a = take(listener, NULL, NULL);
	SHOW(put(c, "x", 1));
	SHOW(get(a, buf, 1, MSG_WAITALL));
	close(a);
	close(c);
	close(listener);
}

CASE(by_handle)
{
	void *libc = dlopen("libc.so.6", RTLD_LAZY), *program = dlopen(NULL, RTLD_LAZY);
	void *resolver = dlopen("libresolv.so.2", RTLD_LAZY);
	void (*free_list)(struct ifaddrs *) = dlsym(libc, "freeifaddrs");
	int (*list)(struct ifaddrs **) = dlsym(libc, "getifaddrs");
	struct ifaddrs *all;
	bool known = true;

	SHOW(dlerror() == NULL);
	show_same(libc, "libc");
	show_same(program, "the program");
	show_same(resolver, "a library that needs libc");
	show_same(RTLD_DEFAULT, "all");
	show_same(RTLD_NEXT, "what comes behind the program");
	SHOW(dlerror() == NULL);
	echo_by(libc);
	echo_by(program);
	SHOW(list(&all));
	for (struct ifaddrs *i = all; i; i = i->ifa_next)
		known = known && if_nametoindex(i->ifa_name) > 0;
	SHOW(known);
	free_list(all);
}

static bool fails_with(const char *name)
{
	const char *error = dlerror();
	bool tells = error && strstr(error, name) && strstr(error, "undefined symbol");

	return tells && !dlerror();
}

CASE(lookup_errors)
{
	void *libc = dlopen("libc.so.6", RTLD_LAZY);

	SHOW(dlsym(libc, "no_such_function") == NULL);
	SHOW(fails_with("no_such_function"));
	SHOW(dlsym(RTLD_NEXT, "no_such_function") == NULL);
	SHOW(fails_with("no_such_function"));
	SHOW(dlsym(RTLD_DEFAULT, "no_such_function") == NULL);
	SHOW(fails_with("no_such_function"));
	SHOW(dlvsym(libc, "socket", "GLIBC_1.0") == NULL);
	SHOW(dlerror() != NULL);
	SHOW(dlvsym(RTLD_NEXT, "socket", "GLIBC_1.0") == NULL);
	SHOW(dlerror() != NULL);
	/* An error stays until it is asked for; what is found does not take it away. */
	SHOW(dlsym(libc, "no_such_function") == NULL);
	SHOW(dlsym(libc, "socket") != NULL);
	SHOW(dlerror() != NULL);
	SHOW(dlerror() == NULL);
	SHOW(dlsym(libc, "strlen") != NULL);
	SHOW(dlsym(libc, "environ") == (void *)&environ || !!dlsym(libc, "environ"));
}
