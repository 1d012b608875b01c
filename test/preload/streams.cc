// SPDX-License-Identifier: GPL-2.0-only
// C++'s own streams, after a socket has taken the numbers 0, 1 and 2. Prints what the other end of
// the socket and the streams got, to what was 1 before.
#include <arpa/inet.h>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <netinet/in.h>
#include <string>
#include <sys/socket.h>
#include <unistd.h>

static void must(bool condition, const char *what)
{
	if (condition)
		return;
	std::perror(what);
	std::exit(1);
}

static std::string received(int fd, size_t n)
{
	std::string text(n, ' ');

	must(recv(fd, &text[0], n, MSG_WAITALL) == static_cast<ssize_t>(n), "recv");
	return text;
}

int main(int argc, char **)
{
	sockaddr_in address = {};
	socklen_t length = sizeof(address);
	std::string word, line;
	int number = 0, c;

	if (argc > 1)
		std::ios::sync_with_stdio(false);
	address.sin_family = AF_INET;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	int listener = socket(AF_INET, SOCK_STREAM, 0), near = socket(AF_INET, SOCK_STREAM, 0);
	sockaddr *any = reinterpret_cast<sockaddr *>(&address);
	must(!bind(listener, any, length) && !listen(listener, 1), "listen");
	must(!getsockname(listener, any, &length), "getsockname");
	must(!connect(near, any, length), "connect");
	int far = accept(listener, nullptr, nullptr), kept = dup(1);
	must(far >= 0 && kept >= 0, "accept");

	for (int i = 0; i < 3; i++)
		must(dup2(near, i) == i, "dup2");
	std::cout << "to cout " << 42 << std::endl;
	std::cerr << "to cerr" << std::endl;
	std::clog << "to clog" << std::endl;
	std::cout.put('x').write("yz", 2).flush();
	dprintf(kept, "%s", received(far, 11 + 8 + 8 + 3).c_str());
	must(send(far, "word 17\nthe rest\nq", 19, 0) == 19, "send");
	std::cin >> word >> number;
	std::getline(std::cin, line);
	std::getline(std::cin, line);
	c = std::cin.get();
	dprintf(kept, "\n%s, %d, %s, %c\n", word.c_str(), number, line.c_str(), c);
	must(!shutdown(far, SHUT_WR), "shutdown");
	dprintf(kept, "%d at the end\n", std::cin.get());
	must(dup2(kept, 1) == 1, "dup2");
	std::cout << "on the host again" << std::endl;
	return 0;
}
