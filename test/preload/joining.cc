// SPDX-License-Identifier: GPL-2.0-only
/*
 * Code that runs at the end of a program. It has a thread echo a datagram once more, stops it and
 * joins it: a static object or a destructor, of the program, of a library (LIBRARY is defined), of
 * one that was loaded later, or a function that exit() calls. `joining WHERE [LIBRARY]`.
 */
#include <arpa/inet.h>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <netinet/in.h>
#include <string>
#include <sys/socket.h>
#include <sys/time.h>
#include <thread>
#include <unistd.h>

namespace
{

class Echo {
	int fd[2] = { -1, -1 };
	std::atomic<bool> stop{ false };
	std::thread thread;

	void work()
	{
		char c;

		while (!stop)
			if (recv(fd[1], &c, 1, 0) == 1 && send(fd[1], &c, 1, 0) != 1)
				abort();
	}

    public:
	void begin()
	{
		struct sockaddr_in address[2] = {};
		struct timeval moment = { 0, 10000 };
		socklen_t length = sizeof(address[0]);

		for (int i = 0; i < 2; i++) {
			address[i].sin_family = AF_INET;
			address[i].sin_addr.s_addr = htonl(INADDR_LOOPBACK);
			fd[i] = socket(AF_INET, SOCK_DGRAM, 0);
			if (bind(fd[i], (struct sockaddr *)&address[i], length) ||
			    getsockname(fd[i], (struct sockaddr *)&address[i], &length))
				abort();
		}
		for (int i = 0; i < 2; i++)
			if (connect(fd[i], (struct sockaddr *)&address[!i], length))
				abort();
		setsockopt(fd[1], SOL_SOCKET, SO_RCVTIMEO, &moment, sizeof(moment));
		thread = std::thread(&Echo::work, this);
	}

	void finish(const char *where)
	{
		char c = 'x';
		bool echoed;

		if (!thread.joinable())
			return;
		echoed = send(fd[0], &c, 1, 0) == 1 && recv(fd[0], &c, 1, 0) == 1;
		stop = true;
		thread.join();
		printf("%s: %s and joined\n", where, echoed ? "echoed" : "did not echo");
		fflush(stdout);
	}
};

struct Static : Echo {
	~Static()
	{
		finish("a static object");
	}
};

Static object;
Echo *at_end, *at_call;

__attribute__((destructor)) void end()
{
	if (at_end)
		at_end->finish("a destructor");
}

void called()
{
	at_call->finish("a function that exit() calls");
}

void called_with(int, void *)
{
	called();
}

} // namespace

/* False: there is no such place here. */
extern "C" __attribute__((visibility("default"))) bool begin(const char *name)
{
	const std::string where = name;

	if (where == "static") {
		object.begin();
		return true;
	}
	if (where == "destructor") {
		at_end = new Echo;
		at_end->begin();
		return true;
	}
	if (where == "atexit")
		atexit(called);
	else if (where == "on_exit")
		on_exit(called_with, nullptr);
	else if (where == "quick_exit")
		at_quick_exit(called);
	else
		return false;
	at_call = new Echo;
	at_call->begin();
	return true;
}

#ifndef LIBRARY
int main(int argc, char **argv)
{
	void *library = argc > 2 ? dlopen(argv[2], RTLD_NOW) : nullptr;
	auto *function = library ? (bool (*)(const char *))dlsym(library, "begin") : begin;

	alarm(60);
	if (argc < 2 || (argc > 2 && !library) || !function(argv[1]))
		return 2;
	if (!strcmp(argv[1], "quick_exit"))
		quick_exit(3);
	return 0;
}
#endif
